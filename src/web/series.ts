import { z } from 'zod';
import { addDays, type DayRange, earlierBy } from '../day.js';
import { audienceName } from '../format/audience.js';
import { dayRange, shortDayRange } from '../format/days.js';
import { counted, percent, thousands } from '../format/numbers.js';
import { shownText } from '../format/text.js';
import { sum } from '../reports/weekly/comparison.js';
import { drawLines, type LinesOptions, type Point } from '../reports/lines.js';
import { dayColumn, type Row } from '../warehouse/query.js';
import type { Range } from './request.js';

const number = z.number().nullable();
const periodRow = z.looseObject({
  first: dayColumn,
  last: dayColumn,
  days: z.int(),
  human: number,
  ai: number,
  views: number,
  share: number,
  human_before: number,
  ai_before: number,
  share_before: number,
  missing: z.int(),
  provisional: z.int(),
  restated: z.int(),
});
type Period = z.infer<typeof periodRow>;

/** The states of days that are not final, the worst first, in words. */
const STATES = [
  ['missing', 'not loaded'],
  ['provisional', 'provisional'],
  ['restated', 'restated'],
] as const;

const markRows = z.array(z.object({ day: dayColumn, text: z.string() }));
const MOST_MARKS = 3;

/** Says what happened on some days: agent jobs, changes by others, and notes. */
function eventsIn(rows: Row[]): (days: DayRange) => string[] {
  const marks = markRows.parse(rows);
  return ({ first, last }) => {
    const words = marks.flatMap(({ day, text }) => (day >= first && day <= last ? shownText(text) : []));
    const more = words.length - MOST_MARKS;
    return more > 0 ? [...words.slice(0, MOST_MARKS), `and ${more} more`] : words;
  };
}

/** The periods of a course, with the states of their days and what happened on them. */
function periodsOf(rows: Row[], events: Row[]) {
  const happenedOn = eventsIn(events);
  const periods = z.array(periodRow).parse(rows);
  return periods.map((period) => {
    const happened = happenedOn(period);
    const states = STATES.flatMap(([state, words]) => {
      if (period[state] === 0) return [];
      return period.days === 1 ? words : `${counted(period[state], 'day')} ${words}`;
    });
    return {
      ...period,
      flag: STATES.find(([state]) => period[state] > 0)?.[0],
      isMarked: happened.length > 0,
      remarks: [...states, ...happened],
    };
  });
}

/** How many days of some periods are in each of these states. */
const statesOf = (periods: readonly Period[]) =>
  Object.fromEntries(STATES.map(([state]) => [state, sum(periods.map((period) => period[state]))]));

/** The value of a line at a point, and what the point says about it. */
type Figure = readonly [line: string, value: number | null, words?: string];

/** A point of a picture, which says its figures and remarks. */
const pointOf = (
  { first, last, flag, isMarked, remarks }: Omit<Point, 'values' | 'said'> & { remarks: readonly string[] },
  figures: readonly Figure[],
): Point => ({
  first,
  last,
  flag,
  isMarked,
  values: Object.fromEntries(figures.map(([line, value]) => [line, value])),
  said: [
    dayRange({ first, last }),
    ...figures.flatMap(([, value, words = []]) => (value === null ? [] : words)),
    ...remarks,
  ],
});

const viewsIn = ({ days }: Period, value: number | null): string =>
  `${thousands(value ?? 0)}${days > 1 ? ' per day' : ''}`;

/** The figures of the site, a section or a page in a period, and in the days it is compared with. */
function figuresOf(period: Period, shift: number): Figure[] {
  const { human, ai, share, human_before, ai_before, share_before } = period;
  const inPercent = (value: number | null) => (value === null ? null : 100 * value);
  const earlier = `on ${shortDayRange(earlierBy(shift, period))}`;
  return [
    ['human', human, `Human ${viewsIn(period, human)}`],
    ['ai', ai, `AI ${viewsIn(period, ai)}`],
    ['share', inPercent(share), `AI share ${percent(share ?? 0)}`],
    ['human_before', human_before, `Human ${viewsIn(period, human_before)} ${earlier}`],
    ['ai_before', ai_before, `AI ${viewsIn(period, ai_before)} ${earlier}`],
    ['share_before', inPercent(share_before), `AI share ${percent(share_before ?? 0)} ${earlier}`],
  ];
}

export const VIEWS: LinesOptions = { title: 'Human and AI views per day', lines: ['human', 'ai'] };
export const AI_SHARE: LinesOptions = { title: 'AI share of all views', lines: ['share'], unit: '%' };

/** Days that a picture has, and those of them that the page is about. */
type Shown = Pick<Range, 'first' | 'last' | 'shift'> & { readonly about?: DayRange | undefined };

/** Periods as a picture, as numbers, and how many of their days are not final. */
export function seriesOf(rows: Row[], { first, last, shift, about }: Shown, events: Row[], shown = VIEWS) {
  const periods = periodsOf(rows, events);
  const isCompared = shift > 0 && periods.some(({ human_before }) => human_before !== null);
  const before = isCompared ? shown.lines.map((name) => `${name}_before`) : [];
  const points = periods.map((period) => ({
    ...pointOf(period, figuresOf(period, shift)),
    isChosen: about !== undefined && period.last >= about.first && period.first <= about.last,
  }));
  return {
    states: statesOf(periods),
    periods: periods.toReversed(),
    /** The days that the dashed lines show. */
    dashed: isCompared ? earlierBy(shift, { first, last }) : null,
    picture: drawLines(points, { ...shown, lines: [...before, ...shown.lines] }),
  };
}

/** The course of several pages or sections, in one picture; the lines are `series-0` and so on. */
export function comparedSeries(
  subjects: readonly { readonly name: string; readonly rows: Row[] }[],
  events: Row[],
  readers: 'human' | 'ai' | 'views',
) {
  const courses = subjects.map(({ name, rows }) => ({ name, periods: periodsOf(rows, events) }));
  const points = (courses[0]?.periods ?? []).map((period, index) => {
    const figures = courses.map(({ name, periods }, at): Figure => {
      const value = periods[index]?.[readers] ?? null;
      return [`series-${at}`, value, `${name} ${viewsIn(period, value)}`];
    });
    return pointOf(period, figures);
  });
  return {
    states: statesOf(courses[0]?.periods ?? []),
    picture: drawLines(points, { title: 'Views per day', lines: Object.keys(points[0]?.values ?? {}) }),
  };
}

const weekRow = z.object({
  week: dayColumn,
  audience: z.enum(['human', 'ai']),
  views: z.int(),
  is_far: z.boolean(),
  expected: number,
  low: number,
  high: number,
});

/** The weeks of a page, with the band in which each was expected, and those far outside it. */
export function weeksOf(rows: Row[], events: Row[]) {
  const weeks = z.array(weekRow).parse(rows);
  const happenedOn = eventsIn(events);
  const points = [...new Set(weeks.map(({ week }) => week))].map((week) => {
    const days = { first: week, last: addDays(week, 6) };
    const remarks = happenedOn(days);
    const ofWeek = weeks.filter((row) => row.week === week).toReversed();
    const figures = ofWeek.flatMap(({ audience, views, low, high }): Figure[] => {
      const usual = low === null || high === null ? '' : `, ${thousands(low)} to ${thousands(high)} expected`;
      return [
        [audience, views, `${audienceName(audience)} ${thousands(views)}${usual}`],
        [`${audience}_low`, low],
        [`${audience}_high`, high],
      ];
    });
    return pointOf({ ...days, isMarked: remarks.length > 0, remarks }, figures);
  });
  const bands = [['human', 'human_low', 'human_high'] as const, ['ai', 'ai_low', 'ai_high'] as const];
  const title = 'Human and AI views per week, with their expected ranges';
  return {
    weekPicture: drawLines(points, { title, lines: ['human', 'ai'], bands }),
    far: weeks.filter(({ is_far }) => is_far).toReversed(),
  };
}
