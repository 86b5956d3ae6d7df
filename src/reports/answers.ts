import { parseDay } from '../day.js';
import { problemOf } from '../config/problems.js';
import { ConfigurationError, ReadershipError } from '../errors.js';
import { longDay, moment } from '../format/days.js';
import { percent } from '../format/numbers.js';
import { inTitle, shownPath, shownText, valueText } from '../format/text.js';
import { type Parameters, type Reader, type Row, rowSchema } from '../warehouse/query.js';
import type { Query, ReportDefinition } from './definition.js';

/** The result of each query of a report: its single row, or all rows. */
export type Answers = Readonly<Record<string, Row | Row[]>>;

/** Runs the queries of a report. An error names the file of its query, and the line if DuckDB does. */
export async function runQueries(
  reader: Reader,
  queries: readonly Query[],
  parameters: Parameters,
): Promise<Answers> {
  const answers: Record<string, Row | Row[]> = {};
  for (const { name, file, sql, rows } of queries) {
    const found = await reader.query(sql, rowSchema, parameters).catch((cause: unknown) => {
      if (cause instanceof ReadershipError) throw cause;
      const [, problem, line] = /^(.*?)\n+LINE (\d+):/s.exec(problemOf(cause)) ?? [];
      const where = line === undefined ? `${file}: ${problemOf(cause)}` : `${file}:${line}  ${problem ?? ''}`;
      throw new ConfigurationError(where, { cause });
    });
    const [only] = found;
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
export const rowsOf = (answers: Answers, query: string): Row[] => [answers[query] ?? []].flat();

/** No client clips an email below about 80 KB. */
const ROWS_IN_MAIL = 30;

/** The results of a report as tables in the order of its queries, for reports without their own template. */
export const tablesOf = ({ queries, pictures }: ReportDefinition, answers: Answers, timezone: string) =>
  queries.map(({ name, rows: expected, show }) => {
    const rows = rowsOf(answers, name).map((row) => cellsOf(row, timezone));
    const firstRows = rows.slice(0, ROWS_IN_MAIL);
    return {
      name,
      title: inTitle(name),
      /** Whether it is a table on the page and in emails, or only a chart. Plain text has no charts. */
      isOnPage: show === 'table',
      isInMail: show === 'table' || !pictures.some(({ query, mail }) => query === name && mail !== undefined),
      head: rows[0] ?? [],
      rows,
      /** The rows that fit into an email, and how many are left out. */
      firstRows,
      more: rows.length - firstRows.length,
      /** For a query that returns one row: its values, each with a title. */
      facts: expected === 'one' ? (rows[0] ?? null) : null,
    };
  });

/** The values of a row, as the built-in templates show them. */
const cellsOf = (row: Row, timezone: string) =>
  Object.entries(row).map(([column, value]) => ({
    column,
    title: inTitle(column).replace(/\bai\b/gi, 'AI'),
    ...shown(column, value, timezone),
    /** The sort key, and the path itself. */
    value: typeof value === 'number' ? value : valueText(value),
  }));

const MIDNIGHT = 'T00:00:00.000Z';

interface Shown {
  readonly kind: 'path' | 'number' | 'date' | 'text';
  readonly text: string;
}

/**
 * A value as text: a dash for NULL, a path without unsafe characters, and days as in sentences. A
 * timestamp at midnight is the start of a day, week or month.
 */
function shown(column: string, value: Row[string], timezone: string): Shown {
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
  /(?:^|_)(?:share|ratio)$/.test(column)
    ? percent(value)
    : value.toLocaleString('en-US', { maximumFractionDigits: 2 });
