import { z } from 'zod';
import type { BarChart, Chart, Event, LineChart } from '../charts/chart.js';
import { barsOf, dayColumnOf, drawableOf, isShare, linesOf, numberColumnsOf } from '../charts/rows.js';
import { ConfigurationError } from '../errors.js';
import { dayColumn, readSql } from '../columns.js';
import type { Reader, Row } from '../history/duckdb.js';
import { cellOf, type QueryRows, rowsOf } from './answers.js';
import { type Query, type ReportDefinition, shows } from './definition.js';

/** What the queries of a report show as lines or bars, by query. */
export function chartsOf(
  { queries }: ReportDefinition,
  answers: QueryRows,
  timezone: string,
  events: readonly Event[],
): Record<string, Chart> {
  const charts: Record<string, Chart> = {};
  for (const query of queries) {
    const rows = rowsOf(answers, query.name);
    if (rows.length === 0) continue;
    if (shows(query, 'lines')) charts[query.name] = linesFor(query, rows, events);
    if (shows(query, 'bars')) charts[query.name] = barsFor(query, rows, timezone);
  }
  return charts;
}

function linesFor(query: Query, rows: readonly Row[], events: readonly Event[]): LineChart {
  const days = dayColumnOf(rows);
  if (days === undefined)
    throw unfit(
      query,
      rows,
      'lines need a column with a different day in each row, such as day, week or month',
    );
  const shown = { title: query.title, columns: columnsOf(query, rows) };
  return linesOf(rows, days, shown, events);
}

function barsFor(query: Query, rows: readonly Row[], timezone: string): BarChart {
  const columns = columnsOf(query, rows);
  const others = Object.keys(rows[0] ?? {}).filter((column) => !columns.includes(column));
  const label = others.find((column) => !numberColumnsOf(rows).includes(column)) ?? others[0];
  if (label === undefined)
    throw unfit(query, rows, 'bars need a column that names each of them, such as path or section');
  const labels = rows.map((row) => cellOf(label, row[label] ?? null, timezone).text);
  return barsOf(rows, labels, { title: query.title, columns });
}

/** The columns that a chart draws: those that `report.yaml` names, or else those that one scale can show. */
function columnsOf(query: Query, rows: readonly Row[]): readonly string[] {
  const columns = query.columns ?? drawableOf(rows);
  if (columns.length === 0) throw unfit(query, rows, 'a chart needs a column of numbers');
  const wrong = columns.find((column) => !numberColumnsOf(rows).includes(column));
  if (wrong !== undefined) throw unfit(query, rows, `“${wrong}” is not a column of numbers`);
  if (columns.some(isShare) && !columns.every(isShare))
    throw unfit(
      query,
      rows,
      'shares and other numbers need separate charts, because they have different scales',
    );
  return columns;
}

function unfit({ name, file }: Query, rows: readonly Row[], problem: string): ConfigurationError {
  const columns = Object.keys(rows[0] ?? {}).join(', ');
  return new ConfigurationError(`${file}: queries.${name}: ${problem}. Its columns are ${columns}.`);
}

/** A row of the table `notes`. */
export const noteRow = z.object({
  day: dayColumn,
  text: z.string(),
  path: z.string(),
  is_break: z.boolean(),
});

/** A note as charts mark it. One that is not about the whole site says about which pages it is. */
export const eventOf = ({ day, text, path, is_break: isBreak }: z.infer<typeof noteRow>): Event => ({
  day,
  text: text + (path === '*' ? '' : ` (${path})`),
  isBreak,
});

/** The notes about a project, oldest first. */
export const readNotes = async (reader: Reader, project: string): Promise<Event[]> =>
  (await reader.query(readSql(import.meta.url, 'statements/notes.sql'), noteRow, { project })).map(eventOf);
