import { z } from 'zod';
import { type LineChart, type Mark, markedWith, marksIn } from '../charts/chart.js';
import { addDays, type DayRange } from '../day.js';
import { type Audience, audienceName, AUDIENCES } from '../format/audience.js';
import { dayRange, shortDayRange } from '../format/days.js';
import { counted, thousands } from '../format/numbers.js';
import { shownText } from '../format/text.js';
import { dayColumn } from '../columns.js';
import type { Row } from '../history/duckdb.js';
import { sum } from '../reports/weekly/comparison.js';
import type { Range } from './range.js';

/** The states of days whose numbers are not final, the worst first, in words. */
const STATES = [
  ['missing', 'not loaded'],
  ['provisional', 'may still change'],
] as const;

const number = z.number().nullable();
const periodRow = z.looseObject({
  first: dayColumn,
  last: dayColumn,
  days: z.int(),
  human: number,
  ai: number,
  share: number,
  human_before: number,
  ai_before: number,
  first_before: dayColumn.nullable(),
  last_before: dayColumn.nullable(),
  /** How many of its days are in each of these states. */
  missing: z.int(),
  provisional: z.int(),
});
type SeriesPeriod = z.infer<typeof periodRow>;

/** Views as a chart, with a dashed line for each audience in the days that they are compared with. */
function drawn(periods: readonly SeriesPeriod[], marks: readonly Mark[], isCompared: boolean): LineChart {
  const compared = isCompared ? AUDIENCES : [];
  const line = (audience: Audience, look: 'plain' | 'dashed', column: Audience | `${Audience}_before`) => ({
    label: audienceName(audience),
    color: audience,
    look,
    values: periods.map((period) => period[column]),
  });
  const said = (audience: Audience, views: number | null, { days }: SeriesPeriod, when = '') =>
    views === null ? [] : `${audienceName(audience)} ${thousands(views)}${days > 1 ? ' per day' : ''}${when}`;
  const saidAt = (period: SeriesPeriod) => {
    const { first_before: first, last_before: last } = period;
    const before = first === null || last === null ? '' : ` on ${shortDayRange({ first, last })}`;
    return [
      dayRange(period),
      ...AUDIENCES.flatMap((audience) => said(audience, period[audience], period)),
      ...compared.flatMap((audience) => said(audience, period[`${audience}_before`], period, before)),
      ...remarksOn(period, marks),
    ];
  };
  return {
    kind: 'lines',
    title: 'Human and AI views per day',
    unit: '',
    shaded: null,
    marks,
    points: periods.map((period) => ({
      first: period.first,
      last: period.last,
      said: saidAt(period),
      state: STATES.find(([state]) => period[state] > 0)?.[0] ?? null,
    })),
    lines: [
      ...compared.map((audience) => line(audience, 'dashed', `${audience}_before`)),
      ...AUDIENCES.map((audience) => line(audience, 'plain', audience)),
    ],
  };
}

/** Periods as a chart, as numbers, and how many of their days are not final. */
export function seriesOf(rows: Row[], { chart, compared }: Pick<Range, 'chart' | 'compared'>, events: Row[]) {
  const periods = z.array(periodRow).parse(rows);
  const marks = marksOn(periods, events);
  const isCompared = chart.about === null && periods.some(({ human_before }) => human_before !== null);
  return {
    states: Object.fromEntries(STATES.map(([state]) => [state, sum(periods.map((period) => period[state]))])),
    periods: periods.map((period) => ({ ...period, remarks: remarksOn(period, marks) })).reverse(),
    /** The days that the dashed lines show. */
    dashed: isCompared ? compared.before : null,
    picture: { ...drawn(periods, marks, isCompared), shaded: chart.about },
  };
}

const weekRow = z.object({
  week: dayColumn,
  audience: z.enum(['human', 'ai']),
  views: z.int(),
  low: number,
  high: number,
});

/** A chart of the weeks of a page, with the range in which each was expected; null if no week is loaded. */
export function weeksOf(rows: Row[], events: Row[]) {
  const weeks = z.array(weekRow).parse(rows);
  const points = [...new Set(weeks.map(({ week }) => week))].map((first) => ({
    first,
    last: addDays(first, 6),
  }));
  const marks = marksOn(points, events);
  const at = (first: string, audience: string) =>
    weeks.find((row) => row.week === first && row.audience === audience);
  const saidOf = (first: string) =>
    AUDIENCES.flatMap((audience) => {
      const week = at(first, audience);
      if (week === undefined) return [];
      const { views, low, high } = week;
      const usual = low === null || high === null ? '' : `, ${thousands(low)} to ${thousands(high)} expected`;
      return `${audienceName(audience)} ${thousands(views)}${usual}`;
    });
  const chart: LineChart = {
    kind: 'lines',
    title: 'Human and AI views per week, with their expected ranges',
    unit: '',
    shaded: null,
    marks,
    points: points.map((days) => ({
      ...days,
      said: [dayRange(days), ...saidOf(days.first), ...happenedIn(days, marks)],
    })),
    lines: AUDIENCES.map((audience) => ({
      label: audienceName(audience),
      color: audience,
      values: points.map(({ first }) => at(first, audience)?.views ?? null),
      range: {
        low: points.map(({ first }) => at(first, audience)?.low ?? null),
        high: points.map(({ first }) => at(first, audience)?.high ?? null),
      },
    })),
  };
  return points.length === 0 ? null : chart;
}

const markRows = z.array(z.object({ day: dayColumn, text: z.string(), is_break: z.boolean() }));

/** What happened on some days: agent jobs and notes. */
function marksOn(periods: readonly DayRange[], rows: readonly Row[]): Mark[] {
  const isDrawn = (day: string) => periods.some(({ first, last }) => first <= day && day <= last);
  const events = markRows
    .parse(rows)
    .filter(({ day }) => isDrawn(day))
    .map(({ day, text, is_break: isBreak }) => ({ day, text: shownText(text), isBreak }));
  // Notes about different pages may have the same text.
  return markedWith([...new Map(events.map((event) => [event.day + event.text, event])).values()]);
}

const MOST_MARKS = 3;

/** What the readout and the table say about a period besides its views: the state of its days, and its marks. */
function remarksOn(period: SeriesPeriod, marks: readonly Mark[]): string[] {
  const states = STATES.flatMap(([state, words]) => {
    if (period[state] === 0) return [];
    return period.days === 1 ? words : `${counted(period[state], 'day')} ${words}`;
  });
  return [...states, ...happenedIn(period, marks)];
}

function happenedIn(days: DayRange, marks: readonly Mark[]): string[] {
  const words = marksIn(days, marks);
  const more = words.length - MOST_MARKS;
  return more > 0 ? [...words.slice(0, MOST_MARKS), `and ${more} more`] : words;
}
