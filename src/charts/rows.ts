import { min, pairs } from 'd3-array';
import { addMonths, differenceInMonths } from 'date-fns';
import { UTCDateMini as UTCDate } from '@date-fns/utc/date/mini';
import { addDays, type Day, dayOf, type DayRange, daysBetween, parseDay, startOfDay } from '../day.js';
import { plainDayRange } from '../format/days.js';
import { inTitle } from '../format/text.js';
import type { Row } from '../history/duckdb.js';
import {
  type BarChart,
  type Event,
  type LineChart,
  markedWith,
  MOST_SERIES,
  numberText,
  SERIES_COLORS,
  type Unit,
} from './chart.js';

/** `AI views` for `ai_views`. */
export const labelOf = (column: string): string => inTitle(column).replace(/\bai\b/gi, 'AI');

/** A column with fractions that are shown as percentages. */
export const isShare = (column: string): boolean => /(?:^|_)(?:share|ratio)$/.test(column);

/** The day of a value: a date, or a timestamp at its midnight, as `date_trunc` makes it. */
const dayIn = (value: Row[string] = null): Day | undefined =>
  typeof value === 'string' ? parseDay(value.replace(/T00:00:00\.000Z$/, '')) : undefined;

const numberIn = (value: Row[string] = null): number | null => (typeof value === 'number' ? value : null);

/** The first column with a different day in every row; undefined if there is none. */
export const dayColumnOf = (rows: readonly Row[]): string | undefined =>
  Object.keys(rows[0] ?? {}).find((column) => {
    const days = rows.map((row) => dayIn(row[column]));
    return !days.includes(undefined) && new Set(days).size === rows.length;
  });

/** The columns with nothing but numbers and NULL. */
export const numberColumnsOf = (rows: readonly Row[]): string[] =>
  Object.keys(rows[0] ?? {}).filter(
    (column) =>
      rows.some((row) => typeof row[column] === 'number') &&
      rows.every((row) => row[column] === null || typeof row[column] === 'number'),
  );

/** The columns to draw if none are named: the first few that one scale can show. */
export function drawableOf(rows: readonly Row[]): string[] {
  const columns = numberColumnsOf(rows);
  const mostIn = (column: string) => Math.max(...rows.map((row) => Math.abs(numberIn(row[column]) ?? 0)));
  // A share beside thousands of views would be a flat line at zero.
  const least = Math.max(...columns.map(mostIn)) / 100;
  return columns.filter((column) => mostIn(column) >= least).slice(0, MOST_SERIES);
}

/** What a chart of rows shows. */
interface ShownColumns {
  readonly title: string;
  readonly columns: readonly string[];
}

/** Columns with their names and colors. Views by people and by AI have the same colors everywhere. */
function seriesOf(columns: readonly string[]) {
  const others = columns.filter((column) => audienceIn(column) === undefined);
  return columns.map((column) => ({
    column,
    label: labelOf(column),
    color: audienceIn(column) ?? SERIES_COLORS[others.indexOf(column)] ?? 'muted',
  }));
}

const audienceIn = (column: string): string | undefined => /^(human|ai)(?:_views|_share)?$/.exec(column)?.[1];

const unitOf = (columns: readonly string[]): Unit => (columns.every(isShare) ? '%' : '');

/** A value on the scale of a chart: shares are percentages. */
const scaled = (value: number | null, unit: Unit): number | null =>
  value === null || unit === '' ? value : value * 100;

/** Rows of days, weeks or months as lines, with what happened on their days. */
export function linesOf(
  rows: readonly Row[],
  dayColumn: string,
  { title, columns }: ShownColumns,
  events: readonly Event[] = [],
): LineChart {
  const unit = unitOf(columns);
  const byDay = new Map(rows.map((row) => [dayIn(row[dayColumn]), row]));
  const points = periodsOf([...byDay.keys()].flatMap((day) => day ?? []).sort());
  const marks = markedWith(events.filter(({ day }) => points.some((days) => isWithin(day, days))));
  const lines = seriesOf(columns).map(({ column, label, color }) => ({
    label,
    color,
    values: points.map(({ first }) => scaled(numberIn(byDay.get(first)?.[column]), unit)),
  }));
  const saidAt = (days: DayRange, index: number) => [
    plainDayRange(days),
    ...lines.flatMap(({ label, values }) => {
      const value = values[index] ?? null;
      return value === null ? [] : `${label} ${numberText(value, unit)}`;
    }),
    ...marks.filter(({ day }) => isWithin(day, days)).map(({ letter, text }) => `${letter}: ${text}`),
  ];
  return {
    kind: 'lines',
    title,
    unit,
    marks,
    lines,
    points: points.map((days, index) => ({ ...days, said: saidAt(days, index) })),
    shaded: null,
  };
}

const isWithin = (day: Day, { first, last }: DayRange): boolean => first <= day && day <= last;

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

/** The most rows of bars: an email shows them all. */
const MOST_ROWS = 30;

/** Rows as bars, in their order, each with its label. */
export function barsOf(
  rows: readonly Row[],
  labels: readonly string[],
  { title, columns }: ShownColumns,
): BarChart {
  const unit = unitOf(columns);
  return {
    kind: 'bars',
    title,
    unit,
    bars: seriesOf(columns).map(({ label, color }) => ({ label, color })),
    rows: rows.slice(0, MOST_ROWS).map((row, index) => ({
      label: labels[index] ?? '–',
      values: columns.map((column) => scaled(numberIn(row[column]), unit)),
    })),
    more: Math.max(0, rows.length - MOST_ROWS),
  };
}
