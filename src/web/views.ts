import { z } from 'zod';
import { mergedEffects } from '../agents/effect.js';
import { addDays, type Day } from '../day.js';
import { dayRange, longDay, shortDayRange } from '../format/days.js';
import { counted, percent, thousands } from '../format/numbers.js';
import { dayColumn } from '../warehouse/query.js';
import { type Asking, PAGES_SHOWN, type Range, type Row } from './asked.js';
import { drawLines, type LinesOptions, type Point } from './lines.js';

const periodRow = z.object({
  ...{ first: dayColumn, last: dayColumn },
  ...{ human_views: z.int(), ai_views: z.int(), human: z.number().nullable(), ai: z.number().nullable() },
  ...{ human_before: z.number().nullable(), ai_before: z.number().nullable() },
  ...{ share: z.number().nullable(), share_before: z.number().nullable() },
  ...{ days: z.int(), loaded: z.int(), missing: z.int(), provisional: z.int(), restated: z.int() },
});
type Period = z.infer<typeof periodRow>;

const VIEWS = { title: 'Human and AI views per day', lines: ['human', 'ai'] };
const AI_SHARE = { title: 'AI share of all views', lines: ['share'], unit: '%' };

/** Some periods as a picture, as numbers, and what is to be known of their days. */
function seriesOf(
  rows: Row[],
  { first, last, grain, shift }: Range,
  marks: readonly Mark[] = [],
  shown: LinesOptions = VIEWS,
) {
  const periods = z.array(periodRow).parse(rows);
  const isCompared = shift > 0 && periods.some(({ human_before }) => human_before !== null);
  const count = (state: 'missing' | 'provisional' | 'restated'): number =>
    periods.reduce((total, period) => total + period[state], 0);
  const markOf = (period: Period) => marks.filter(({ day }) => day >= period.first && day <= period.last);
  return {
    periods: periods.toReversed(),
    comparedWith: isCompared ? { first: addDays(first, -shift), last: addDays(last, -shift) } : null,
    states: { missing: count('missing'), provisional: count('provisional'), restated: count('restated') },
    picture: drawLines(
      periods.map((period) => pointOf(period, grain, markOf(period))),
      {
        ...shown,
        lines: [...(isCompared ? shown.lines.map((name) => `${name}_before`) : []), ...shown.lines],
      },
    ),
  };
}

function pointOf(period: Period, grain: Range['grain'], marks: readonly Mark[]): Point {
  const { first, days, missing, provisional, restated } = period;
  const { human, ai, human_before, ai_before, share, share_before } = period;
  const views = (name: string, value: number | null): string[] =>
    value === null ? [] : [`${name} ${thousands(value)}${days > 1 ? ' per day' : ''}`];
  const shareOf = (name: string, value: number | null): string[] =>
    value === null ? [] : [`${name} ${percent(value)}`];
  const inPercent = (value: number | null) => (value === null ? null : 100 * value);
  const state = (count: number, word: string): string[] =>
    count === 0 ? [] : [days === 1 ? word : `${counted(count, 'day')} ${word}`];
  return {
    values: {
      ...{ human, ai, human_before, ai_before },
      ...{ share: inPercent(share), share_before: inPercent(share_before) },
    },
    label: grain === 'month' ? longDay(first).replace(/^\d+ /, '') : shortDayRange({ first, last: first }),
    flag: missing > 0 ? 'missing' : provisional > 0 ? 'provisional' : restated > 0 ? 'restated' : undefined,
    isMarked: marks.length > 0,
    said: [
      dayRange(period),
      ...views('Human', human),
      ...views('AI', ai),
      ...shareOf('AI share', share),
      ...views('Human before', human_before),
      ...views('AI before', ai_before),
      ...shareOf('AI share before', share_before),
      ...state(missing, 'not loaded'),
      ...state(provisional, 'provisional'),
      ...state(restated, 'restated'),
      ...marks.map(({ words }) => words),
    ],
  };
}

export async function overview({ rows, range }: Asking): Promise<object> {
  const mostRead = { limit: 10, offset: 0, sort: 'total', search: '', section: '', readers: '' };
  const [[totals], series, moved, pages] = await Promise.all([
    rows('totals'),
    rows('series', { path: null }),
    rows('moved'),
    rows('pages', mostRead),
  ]);
  const week = { first: range.week, last: addDays(range.week, 6) };
  return { totals, moved, pages, count: countOf(pages), week, ...seriesOf(series, range) };
}

/** How many pages there are, of which some are shown. */
const countOf = ([first]: readonly Row[]): number => z.int().catch(0).parse(first?.['found']);

export async function pages({ rows, asked }: Asking): Promise<object> {
  const [found, sections] = await Promise.all([rows('pages'), rows('sections')]);
  const count = countOf(found);
  const first = (asked.page - 1) * PAGES_SHOWN;
  return {
    ...{ pages: found, sections, count, first: first + 1, last: first + found.length },
    previous: asked.page > 1 ? asked.page - 1 : null,
    next: first + found.length < count ? asked.page + 1 : null,
  };
}

const TABLE_COLUMNS = ['path', 'human', 'ai', 'share', 'human_change', 'ai_change'];

export async function allPages({ rows }: Asking): Promise<Row[]> {
  const found = await rows('pages', { limit: 1_000_000, offset: 0 });
  return found.map((row) => Object.fromEntries(TABLE_COLUMNS.map((name) => [name, row[name] ?? null])));
}

/** Something that happened to a page on a day. */
interface Mark {
  readonly day: Day;
  readonly words: string;
}

const jobRow = z.looseObject({
  id: z.int(),
  state: z.string(),
  day: dayColumn,
  merged_on: dayColumn.nullable(),
});
const weekRow = z.object({
  ...{ week: dayColumn, audience: z.enum(['human', 'ai']), views: z.int(), is_far: z.boolean() },
  ...{ expected: z.number().nullable(), low: z.number().nullable(), high: z.number().nullable() },
});

export async function page({ reader, rows, asked, range, project }: Asking): Promise<object> {
  const [[facts], series, weekRows, jobRows] = await Promise.all([
    rows('page'),
    rows('series'),
    rows('page-weeks'),
    rows('page-jobs'),
  ]);
  const jobs = z.array(jobRow).parse(jobRows);
  const effects = await mergedEffects(reader, project.id, jobs);
  const marks = jobs.map(({ id, state, day, merged_on }) => ({
    day,
    words: `Job ${id} ${merged_on === null ? state : 'merged'}`,
  }));
  const weeks = z.array(weekRow).parse(weekRows);
  return {
    ...{ facts, path: asked.path, ...seriesOf(series, range, marks) },
    weekPicture: drawWeeks(weeks, marks),
    far: weeks.filter(({ is_far }) => is_far).toReversed(),
    jobs: jobs.map((job) => ({ ...job, effect: effects.get(job.id) ?? null })),
  };
}

/** The weeks of a page, in the band where they were expected. */
function drawWeeks(weeks: readonly z.infer<typeof weekRow>[], marks: readonly Mark[]) {
  const points = [...new Set(weeks.map(({ week }) => week))].map((week): Point => {
    const days = { first: week, last: addDays(week, 6) };
    const happened = marks.filter(({ day }) => day >= days.first && day <= days.last);
    const ofWeek = weeks.filter((row) => row.week === week);
    return {
      values: Object.fromEntries(
        ofWeek.flatMap(({ audience, views, low, high }) => [
          [audience, views],
          [`${audience}_low`, low],
          [`${audience}_high`, high],
        ]),
      ),
      label: shortDayRange({ first: week, last: week }),
      isMarked: happened.length > 0,
      said: [
        dayRange(days),
        ...ofWeek.toReversed().map(({ audience, views, low, high }) => {
          const usual =
            low === null || high === null ? '' : `, ${thousands(low)} to ${thousands(high)} expected`;
          return `${audience === 'ai' ? 'AI' : 'Human'} ${thousands(views)}${usual}`;
        }),
        ...happened.map(({ words }) => words),
      ],
    };
  });
  return drawLines(points, {
    title: 'Human and AI views per week, and where they were expected',
    lines: ['human', 'ai'],
    bands: [
      ['human', 'human_low', 'human_high'],
      ['ai', 'ai_low', 'ai_high'],
    ],
  });
}

/** What AI reads and people hardly do, the reverse, and how that changes. */
export async function ai({ rows, range }: Asking): Promise<object> {
  const [[totals], series, oneSided, overtaken, leaving] = await Promise.all([
    rows('totals'),
    rows('series', { path: null }),
    rows('one-sided'),
    rows('overtaken'),
    rows('leaving'),
  ]);
  const isOf = (audience: string) => oneSided.filter(({ reader }) => reader === audience);
  const shares = seriesOf(series, range, [], AI_SHARE);
  return { totals, overtaken, leaving, ai: isOf('ai'), human: isOf('human'), ...shares };
}
