import type { Chart } from '../charts/chart.js';
import { problemOf } from '../config/problems.js';
import { parseDay } from '../day.js';
import { ConfigurationError, ReadershipError } from '../errors.js';
import { longDay, moment } from '../format/days.js';
import { percent } from '../format/numbers.js';
import { inTitle, shownPath, shownText, valueText } from '../format/text.js';
import { type Parameters, type Reader, type Row, rowSchema } from '../history/duckdb.js';
import { type Query, type ReportDefinition, shows } from './definition.js';

/** The result of each query of a report: its single row, or all rows. */
export type QueryRows = Readonly<Record<string, Row | Row[]>>;

/** Runs the queries of a report. An error names the file of its query, and the line if DuckDB does. */
export async function runQueries(
  reader: Reader,
  queries: readonly Query[],
  parameters: Parameters,
): Promise<QueryRows> {
  const answers: Record<string, Row | Row[]> = {};
  for (const { name, file, sql, rows, columns = [] } of queries) {
    const found = await reader.query(sql, rowSchema, parameters).catch((cause: unknown) => {
      if (cause instanceof ReadershipError) throw cause;
      const [, problem, line] = /^(.*?)\n+LINE (\d+):/s.exec(problemOf(cause)) ?? [];
      const where = line === undefined ? `${file}: ${problemOf(cause)}` : `${file}:${line}  ${problem ?? ''}`;
      throw new ConfigurationError(where, { cause });
    });
    const [only] = found;
    const unknown = columns.find((column) => only !== undefined && !(column in only));
    if (unknown !== undefined)
      throw new ConfigurationError(
        `${file}: queries.${name}.columns names ${unknown}, but the columns are ${Object.keys(only ?? {}).join(', ')}`,
      );
    if (rows === 'many') answers[name] = found;
    else if (only !== undefined && found.length === 1) answers[name] = only;
    else
      throw new ConfigurationError(
        `${file}: returned ${found.length} rows, but report.yaml expects one; if it can return several, write ${name}: many`,
      );
  }
  return answers;
}

/** The rows of a query, whether it returns one or many. */
export const rowsOf = (answers: QueryRows, query: string): Row[] => [answers[query] ?? []].flat();

/** As many rows as email clients show without clipping the email. */
export const ROWS_IN_MAIL = 30;

/** Up to so many facts are in one row; more are in rows of two. */
const FACTS_IN_ROW = 3;

/** The results of a report as tables in the order of its queries, each with at most so many rows. */
export const tablesOf = (
  { queries }: ReportDefinition,
  answers: QueryRows,
  charts: Readonly<Record<string, Chart>>,
  timezone: string,
  mostRows: number,
) =>
  queries.map(({ name, title, show, columns }) => {
    const chart = charts[name] ?? null;
    const all = rowsOf(answers, name);
    const shownColumns = chart === null ? columns : undefined;
    const rows = all.slice(0, mostRows).map((row) => cellsOf(row, shownColumns, timezone));
    const [head = []] = rows;
    return {
      name,
      title,
      /** Drawn on the page and in emails. Plain text has its rows. */
      chart,
      isTable: chart === null || shows({ show }, 'table'),
      head,
      rows,
      /** How many rows are left out. */
      more: all.length - rows.length,
      /** For a query that returns one row: its values, each with a title, in rows. */
      facts: shows({ show }, 'facts') ? inRows(head) : null,
    };
  });

function inRows<Fact>(facts: readonly Fact[]): Fact[][] {
  const length = facts.length <= FACTS_IN_ROW ? FACTS_IN_ROW : 2;
  const rows = Math.ceil(facts.length / length);
  return Array.from({ length: rows }, (_, row) => facts.slice(row * length, (row + 1) * length));
}

/** The values of a row, as the built-in templates show them, each with the title of its column. */
const cellsOf = (row: Row, columns: readonly string[] = Object.keys(row), timezone: string) =>
  columns.map((column) => {
    const value = row[column] ?? null;
    return {
      column,
      title: labelOf(column),
      ...shown(column, value, timezone),
      /** The sort key, and the path itself. */
      value: typeof value === 'number' ? value : valueText(value),
    };
  });

/** `AI views` for `ai_views`. */
export const labelOf = (column: string): string => inTitle(column).replace(/\bai\b/gi, 'AI');

/** A column with fractions that are shown as percentages. */
export const isShare = (column: string): boolean => /(?:^|_)(?:share|ratio)$/.test(column);

const MIDNIGHT = 'T00:00:00.000Z';

interface ShownValue {
  readonly kind: 'path' | 'number' | 'date' | 'text';
  readonly text: string;
}

/**
 * A value as text: a dash for NULL, a path without unsafe characters, and days as in sentences. A
 * timestamp at midnight is the start of a day, week or month.
 */
export function shown(column: string, value: Row[string] = null, timezone: string): ShownValue {
  if (typeof value === 'number') return { kind: 'number', text: numberText(column, value) };
  const text = valueText(value);
  if (column === 'path' && value !== null) return { kind: 'path', text: shownPath(text) };
  const date = parseDay(text.endsWith(MIDNIGHT) ? text.slice(0, -MIDNIGHT.length) : text);
  if (date !== undefined) return { kind: 'date', text: longDay(date) };
  if (INSTANT.test(text)) return { kind: 'date', text: moment(new Date(text), timezone) };
  return { kind: 'text', text: shownText(text) || '–' };
}

/** A timestamp as queries return it. */
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Fractions in columns named for a share or ratio as percentages, others with up to two decimals. */
const numberText = (column: string, value: number): string =>
  isShare(column) ? percent(value) : value.toLocaleString('en-US', { maximumFractionDigits: 2 });
