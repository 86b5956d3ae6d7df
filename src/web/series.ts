import { z } from 'zod';
import { addDays, type Day, type DayRange } from '../day.js';
import { audienceName } from '../format/audience.js';
import { dayRange, shortDayRange } from '../format/days.js';
import { counted, percent, thousands } from '../format/numbers.js';
import { shownText } from '../format/text.js';
import { drawLines, type LinesOptions, type Point } from '../reports/lines.js';
import { dayColumn } from '../warehouse/query.js';
import type { Range } from './request.js';
import type { Row } from './sources.js';

const number = z.number().nullable();
const periodRow = z.object({
  first: dayColumn,
  last: dayColumn,
  days: z.int(),
  human_views: number,
  ai_views: number,
  human: number,
  ai: number,
  human_before: number,
  ai_before: number,
  share: number,
  share_before: number,
  loaded: z.int(),
  missing: z.int(),
  provisional: z.int(),
  restated: z.int(),
});
type Period = z.infer<typeof periodRow>;

const markRows = z.array(z.object({ day: dayColumn, text: z.string() }));
type Marks = z.infer<typeof markRows>;
const MOST_MARKS = 3;

/** What happened on some days: agent jobs, changes by others, and notes. */
function wordsOn(marks: Marks, { first, last }: DayRange): string[] {
  const words = marks.flatMap(({ day, text }) => (day >= first && day <= last ? shownText(text) : []));
  const more = words.length - MOST_MARKS;
  return more > 0 ? [...words.slice(0, MOST_MARKS), `and ${more} more`] : words;
}

export const VIEWS: LinesOptions = { title: 'Human and AI views per day', lines: ['human', 'ai'] };
export const AI_SHARE: LinesOptions = { title: 'AI share of all views', lines: ['share'], unit: '%' };

/** Days that a picture has, and those of them that the page is about. */
type Shown = Pick<Range, 'first' | 'last' | 'shift'> & { readonly about?: DayRange | undefined };

/** Periods as a picture, as numbers, and the states of their days. */
export function seriesOf(rows: Row[], { first, last, shift, about }: Shown, events: Row[], shown = VIEWS) {
  const periods = z.array(periodRow).parse(rows);
  const marks = markRows.parse(events);
  const happened = periods.map((period) => ({ ...period, happened: wordsOn(marks, period) }));
  const isCompared = shift > 0 && periods.some(({ human_before }) => human_before !== null);
  const before = isCompared ? shown.lines.map((name) => `${name}_before`) : [];
  return {
    states: statesOf(periods),
    periods: happened.toReversed(),
    /** The days that the dashed lines show. */
    dashed: isCompared ? { first: addDays(first, -shift), last: addDays(last, -shift) } : null,
    picture: drawLines(
      happened.map((period) => pointOf(period, shift, period.happened, about)),
      { ...shown, lines: [...before, ...shown.lines] },
    ),
  };
}

/** How many days of some periods are not as they should be. */
function statesOf(periods: readonly Period[]) {
  const count = (state: 'missing' | 'provisional' | 'restated'): number =>
    periods.reduce((total, period) => total + period[state], 0);
  return { missing: count('missing'), provisional: count('provisional'), restated: count('restated') };
}

/** What all pictures say about a period. */
function aboutPeriod(period: Period, happened: readonly string[], figures: readonly string[]) {
  const { first, last, days, missing, provisional, restated } = period;
  const states = [
    ['not loaded', missing],
    ['provisional', provisional],
    ['restated', restated],
  ] as const;
  return {
    first,
    last,
    flag: missing > 0 ? 'missing' : provisional > 0 ? 'provisional' : restated > 0 ? 'restated' : undefined,
    isMarked: happened.length > 0,
    said: [
      dayRange(period),
      ...figures,
      ...states.flatMap(([word, count]) =>
        count === 0 ? [] : days === 1 ? word : `${counted(count, 'day')} ${word}`,
      ),
      ...happened,
    ],
  } as const;
}

const viewsIn = ({ days }: Period, value: number): string =>
  `${thousands(value)}${days > 1 ? ' per day' : ''}`;

function pointOf(period: Period, shift: number, happened: readonly string[], about?: DayRange): Point {
  const { first, last, human, ai, human_before, ai_before, share, share_before } = period;
  const views = (value: number) => viewsIn(period, value);
  const earlier = ` on ${shortDayRange({ first: addDays(first, -shift), last: addDays(last, -shift) })}`;
  const figures = [
    ['Human', human, views, ''],
    ['AI', ai, views, ''],
    ['AI share', share, percent, ''],
    ['Human', human_before, views, earlier],
    ['AI', ai_before, views, earlier],
    ['AI share', share_before, percent, earlier],
  ] as const;
  const inPercent = (value: number | null) => (value === null ? null : 100 * value);
  const said = figures.flatMap(([name, value, write, when]) =>
    value === null ? [] : `${name} ${write(value)}${when}`,
  );
  return {
    ...aboutPeriod(period, happened, said),
    isChosen: about !== undefined && last >= about.first && first <= about.last,
    values: {
      human,
      ai,
      human_before,
      ai_before,
      share: inPercent(share),
      share_before: inPercent(share_before),
    },
  };
}

/** Whose views a comparison is about. */
type Readers = 'human' | 'ai' | '';

/** The course of several pages or sections, in one picture; the lines are `series-0` and so on. */
export function comparedSeries(
  subjects: readonly { readonly name: string; readonly rows: Row[] }[],
  events: Row[],
  readers: Readers,
) {
  const courses = subjects.map(({ name, rows }) => ({ name, periods: z.array(periodRow).parse(rows) }));
  const marks = markRows.parse(events);
  const valueOf = ({ human, ai }: Period): number | null =>
    human === null || ai === null ? null : readers === 'human' ? human : readers === 'ai' ? ai : human + ai;
  const periods = courses[0]?.periods ?? [];
  const points = periods.map((period, index): Point => {
    const values = courses.map((course) => valueOf(course.periods[index] ?? period));
    const said = values.flatMap((value, at) =>
      value === null ? [] : `${courses[at]?.name ?? ''} ${viewsIn(period, value)}`,
    );
    return {
      ...aboutPeriod(period, wordsOn(marks, period), said),
      values: Object.fromEntries(values.map((value, at) => [`series-${at}`, value])),
    };
  });
  const lines = courses.map((_, at) => `series-${at}`);
  return { states: statesOf(periods), picture: drawLines(points, { title: 'Views per day', lines }) };
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
  const marks = markRows.parse(events);
  const points = [...new Set(weeks.map(({ week }) => week))].map((week: Day): Point => {
    const days = { first: week, last: addDays(week, 6) };
    const happened = wordsOn(marks, days);
    const ofWeek = weeks.filter((row) => row.week === week);
    const said = ofWeek.toReversed().map(({ audience, views, low, high }) => {
      const usual = low === null || high === null ? '' : `, ${thousands(low)} to ${thousands(high)} expected`;
      return `${audienceName(audience)} ${thousands(views)}${usual}`;
    });
    const values = ofWeek.flatMap(({ audience, views, low, high }) => [
      [audience, views],
      [`${audience}_low`, low],
      [`${audience}_high`, high],
    ]);
    return {
      ...days,
      values: Object.fromEntries(values) as Point['values'],
      isMarked: happened.length > 0,
      said: [dayRange(days), ...said, ...happened],
    };
  });
  const bands = [['human', 'human_low', 'human_high'] as const, ['ai', 'ai_low', 'ai_high'] as const];
  const title = 'Human and AI views per week, with their expected ranges';
  return {
    weekPicture: drawLines(points, { title, lines: ['human', 'ai'], bands }),
    far: weeks.filter(({ is_far }) => is_far).toReversed(),
  };
}
