import { min, pairs } from 'd3-array';
import { addMonths, differenceInMonths } from 'date-fns';
import { UTCDateMini as UTCDate } from '@date-fns/utc/date/mini';
import { z } from 'zod';
import {
  type BarChart,
  type Chart,
  type Event,
  type LineChart,
  markedWith,
  marksIn,
  MOST_SERIES,
  numberText,
  SERIES_COLORS,
  type Unit,
} from '../charts/chart.js';
import { dayColumn, readSql } from '../columns.js';
import { addDays, type Day, dayOf, type DayRange, daysBetween, parseDay, startOfDay } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { plainDayRange } from '../format/days.js';
import type { Reader, Row } from '../history/duckdb.js';
import { isShare, labelOf, type QueryRows, rowsOf, shown } from './answers.js';
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
    if (shows(query, 'lines')) charts[query.name] = linesOf(query, rows, events);
    if (shows(query, 'bars')) charts[query.name] = barsOf(query, rows, timezone);
  }
  return charts;
}

type ChartQuery = Pick<Query, 'name' | 'file' | 'title' | 'columns'>;

/** Rows of days, weeks or months as lines, with what happened on their days. */
export function linesOf(query: ChartQuery, rows: readonly Row[], events: readonly Event[] = []): LineChart {
  const dayColumn = columnsIn(rows).find((column) => {
    const days = rows.map((row) => dayIn(row[column]));
    return !days.includes(undefined) && new Set(days).size === rows.length;
  });
  if (dayColumn === undefined)
    throw unfit(
      query,
      rows,
      'lines need a column with a different day in each row, such as day, week or month',
    );
  const series = seriesOf(query, rows);
  const unit = unitOf(series);
  const byDay = new Map(rows.map((row) => [dayIn(row[dayColumn]), row]));
  const points = periodsOf([...byDay.keys()].flatMap((day) => day ?? []).sort());
  const marks = markedWith(
    events.filter(({ day }) => points.some(({ first, last }) => first <= day && day <= last)),
  );
  const lines = series.map(({ column, label, color }) => ({
    label,
    color,
    values: points.map(({ first }) => valueIn(byDay.get(first), column, unit)),
  }));
  const saidAt = (days: DayRange, index: number) => [
    plainDayRange(days),
    ...lines.flatMap(({ label, values }) => {
      const value = values[index] ?? null;
      return value === null ? [] : `${label} ${numberText(value, unit)}`;
    }),
    ...marksIn(days, marks),
  ];
  return {
    kind: 'lines',
    title: query.title,
    unit,
    marks,
    lines,
    points: points.map((days, index) => ({ ...days, said: saidAt(days, index) })),
    shaded: null,
  };
}

/** The most rows of bars: an email shows them all. */
const MOST_ROWS = 30;

/** Rows as bars, in their order. Each is named by its first column that has text, or else one that is not drawn. */
export function barsOf(query: ChartQuery, rows: readonly Row[], timezone: string): BarChart {
  const series = seriesOf(query, rows);
  const unit = unitOf(series);
  const others = columnsIn(rows).filter((name) => series.every(({ column }) => column !== name));
  const labels = others.find((column) => !hasNumbers(rows, column)) ?? others[0];
  if (labels === undefined)
    throw unfit(query, rows, 'bars need a column that names each of them, such as path or section');
  return {
    kind: 'bars',
    title: query.title,
    unit,
    bars: series.map(({ label, color }) => ({ label, color })),
    rows: rows.slice(0, MOST_ROWS).map((row) => ({
      label: shown(labels, row[labels], timezone).text,
      values: series.map(({ column }) => valueIn(row, column, unit)),
    })),
    more: Math.max(0, rows.length - MOST_ROWS),
  };
}

/**
 * The columns that a chart draws, with their names and colors: those that `report.yaml` names, or else the first few that
 * one scale can show. Views by people and by AI have the same colors everywhere.
 */
function seriesOf(query: ChartQuery, rows: readonly Row[]) {
  const columns = query.columns ?? drawableIn(rows);
  if (columns.length === 0) throw unfit(query, rows, 'a chart needs a column of numbers');
  const wrong = columns.find((column) => !hasNumbers(rows, column));
  if (wrong !== undefined) throw unfit(query, rows, `“${wrong}” is not a column of numbers`);
  if (columns.some(isShare) && !columns.every(isShare))
    throw unfit(
      query,
      rows,
      'shares and other numbers need separate charts, because they have different scales',
    );
  const others = columns.filter((column) => audienceIn(column) === undefined);
  return columns.map((column) => ({
    column,
    label: labelOf(column),
    color: audienceIn(column) ?? SERIES_COLORS[others.indexOf(column)] ?? 'muted',
  }));
}

const audienceIn = (column: string): string | undefined => /^(human|ai)(?:_views|_share)?$/.exec(column)?.[1];

function drawableIn(rows: readonly Row[]): string[] {
  const columns = columnsIn(rows).filter((column) => hasNumbers(rows, column));
  const mostIn = (column: string) => Math.max(...rows.map((row) => Math.abs(valueIn(row, column, '') ?? 0)));
  // A share beside thousands of views would be a flat line at zero.
  const least = Math.max(...columns.map(mostIn)) / 100;
  return columns.filter((column) => mostIn(column) >= least).slice(0, MOST_SERIES);
}

function unfit({ name, file }: ChartQuery, rows: readonly Row[], problem: string): ConfigurationError {
  return new ConfigurationError(
    `${file}: queries.${name}: ${problem}. Its columns are ${columnsIn(rows).join(', ')}.`,
  );
}

const columnsIn = (rows: readonly Row[]): string[] => Object.keys(rows[0] ?? {});

/** Whether a column has numbers, and nothing else but NULL. */
const hasNumbers = (rows: readonly Row[], column: string): boolean =>
  rows.some((row) => typeof row[column] === 'number') &&
  rows.every((row) => row[column] === null || typeof row[column] === 'number');

const unitOf = (series: readonly { readonly column: string }[]): Unit =>
  series.every(({ column }) => isShare(column)) ? '%' : '';

/** A value on the scale of a chart: shares are percentages. */
function valueIn(row: Row | undefined, column: string, unit: Unit): number | null {
  const value = row?.[column];
  if (typeof value !== 'number') return null;
  return unit === '%' ? value * 100 : value;
}

/** The day of a value: a date, or a timestamp at its midnight, as `date_trunc` makes it. */
const dayIn = (value: Row[string] = null): Day | undefined =>
  typeof value === 'string' ? parseDay(value.replace(/T00:00:00\.000Z$/, '')) : undefined;

/** The days, weeks or months that begin on some days, as often as most of them follow each other, and the gaps between. */
function periodsOf(firsts: readonly Day[]): DayRange[] {
  const isMonthly = firsts.length > 1 && firsts.every((first) => first.endsWith('-01'));
  const distance = (from: Day, to: Day) =>
    isMonthly
      ? differenceInMonths(new UTCDate(startOfDay(to)), new UTCDate(startOfDay(from)))
      : daysBetween(from, to);
  const step = min(pairs(firsts, distance)) ?? 1;
  const nextOf = (first: Day) =>
    isMonthly ? dayOf(addMonths(new UTCDate(startOfDay(first)), step)) : addDays(first, step);
  return firsts.flatMap((first, index) => {
    const next = nextOf(first);
    const following = firsts[index + 1] ?? next;
    const period = { first, last: addDays(next, -1) };
    return following > next ? [period, { first: next, last: addDays(following, -1) }] : [period];
  });
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
