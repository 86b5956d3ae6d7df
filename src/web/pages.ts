import { z } from 'zod';
import type { ProjectSettings } from '../config/schema.js';
import { effectWords, readEffects } from '../agents/effect.js';
import { addDays, type Day } from '../day.js';
import { dayRange, longDay, shortDayRange } from '../format/days.js';
import { counted, percent, thousands } from '../format/numbers.js';
import { dayColumn, type Parameters, type Reader, readSql } from '../warehouse/query.js';
import type { Asked, Range } from './asked.js';
import { drawLines, type Point } from './lines.js';

const rowSchema = z.record(z.string(), z.json());
export type Row = z.infer<typeof rowSchema>;

/** A request for a page, with what most pages need to answer it. */
export interface Asking {
  readonly reader: Reader;
  readonly asked: Asked;
  readonly project: ProjectSettings;
  readonly range: Range;
  /** The rows of a query of `queries/`; it may name any parameter of the address and of the range. */
  readonly rows: (query: string, parameters?: Parameters) => Promise<Row[]>;
}

/** A page of the web app: its address, its name in the navigation, and what its template shows. */
export interface Page {
  readonly path: string;
  readonly title: string;
  readonly isInNavigation: boolean;
  readonly template: string;
  readonly model: (asking: Asking) => Promise<object>;
  /** What the page lists, as a table to take away. */
  readonly csv?: (asking: Asking) => Promise<Row[]>;
}

export const PAGES: readonly Page[] = [
  { path: '/', title: 'Overview', isInNavigation: true, template: 'web/overview', model: overview },
  {
    path: '/pages',
    title: 'Pages',
    isInNavigation: true,
    template: 'web/pages',
    model: pages,
    csv: allPages,
  },
  { path: '/page', title: 'Page', isInNavigation: false, template: 'web/page', model: page },
];

/** Rows of a list on one screen. */
const PAGES_SHOWN = 50;

const queryText = (name: string): string => readSql(import.meta.url, `queries/${name}.sql`);

/** What queries may name, from the address of a page and from its range. */
export function askWith(
  reader: Reader,
  project: ProjectSettings,
  asked: Asked,
  range: Range,
): Asking['rows'] {
  const { first: from, last: to, grain, shift, week } = range;
  const { search, section, readers, sort, path } = asked;
  const common = {
    ...{ project: project.id, from, to, grain, shift, week },
    ...{ search, section, readers, sort, path, limit: PAGES_SHOWN, offset: (asked.page - 1) * PAGES_SHOWN },
  };
  return (query, parameters = {}) => reader.query(queryText(query), rowSchema, { ...common, ...parameters });
}

const periodRow = z.object({
  ...{ first: dayColumn, last: dayColumn },
  ...{ human_views: z.int(), ai_views: z.int(), human: z.number().nullable(), ai: z.number().nullable() },
  ...{ human_before: z.number().nullable(), ai_before: z.number().nullable(), share: z.number().nullable() },
  ...{ days: z.int(), loaded: z.int(), missing: z.int(), provisional: z.int(), restated: z.int() },
});
type Period = z.infer<typeof periodRow>;

/** The views of some periods as a picture, as numbers, and what is to be known of their days. */
function seriesOf(rows: Row[], { first, last, grain, shift }: Range, marks: readonly Mark[] = []) {
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
        title: 'Human and AI views per day',
        lines: isCompared ? ['human_before', 'ai_before', 'human', 'ai'] : ['human', 'ai'],
      },
    ),
  };
}

function pointOf(period: Period, grain: Range['grain'], marks: readonly Mark[]): Point {
  const { first, days, missing, provisional, restated, share, human, ai, human_before, ai_before } = period;
  const views = (name: string, value: number | null): string[] =>
    value === null ? [] : [`${name} ${thousands(value)}${days > 1 ? ' per day' : ''}`];
  const state = (count: number, word: string): string[] =>
    count === 0 ? [] : [days === 1 ? word : `${counted(count, 'day')} ${word}`];
  return {
    values: { human, ai, human_before, ai_before },
    label: grain === 'month' ? longDay(first).replace(/^\d+ /, '') : shortDayRange({ first, last: first }),
    flag: missing > 0 ? 'missing' : provisional > 0 ? 'provisional' : restated > 0 ? 'restated' : undefined,
    isMarked: marks.length > 0,
    said: [
      dayRange(period),
      ...views('Human', human),
      ...views('AI', ai),
      ...(share === null ? [] : [`AI share ${percent(share)}`]),
      ...views('Human before', human_before),
      ...views('AI before', ai_before),
      ...state(missing, 'not loaded'),
      ...state(provisional, 'provisional'),
      ...state(restated, 'restated'),
      ...marks.map(({ words }) => words),
    ],
  };
}

async function overview({ rows, range }: Asking): Promise<object> {
  const mostRead = { limit: 10, offset: 0, sort: 'total', search: '', section: '', readers: '' };
  const [[totals], series, moved, pages] = await Promise.all([
    rows('totals'),
    rows('series'),
    rows('moved'),
    rows('pages', mostRead),
  ]);
  const week = { first: range.week, last: addDays(range.week, 6) };
  return { totals, moved, pages, week, ...seriesOf(series, range) };
}

async function pages({ rows, asked }: Asking): Promise<object> {
  const [found, sections] = await Promise.all([rows('pages'), rows('sections')]);
  const count = z.int().catch(0).parse(found[0]?.['found']);
  const first = (asked.page - 1) * PAGES_SHOWN;
  return {
    ...{ pages: found, sections, count, first: first + 1, last: first + found.length },
    previous: asked.page > 1 ? asked.page - 1 : null,
    next: first + found.length < count ? asked.page + 1 : null,
  };
}

const TABLE_COLUMNS = ['path', 'human', 'ai', 'share', 'human_change', 'ai_change'];

async function allPages({ rows }: Asking): Promise<Row[]> {
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

async function page({ reader, rows, asked, range, project }: Asking): Promise<object> {
  const [[facts], series, weekRows, jobRows] = await Promise.all([
    rows('page'),
    rows('page-series'),
    rows('page-weeks'),
    rows('page-jobs'),
  ]);
  const jobs = z.array(jobRow).parse(jobRows);
  const effects = jobs.some(({ merged_on }) => merged_on !== null)
    ? await readEffects(reader, project.id)
    : [];
  const marks = jobs.map(({ id, state, day, merged_on }) => ({
    day,
    words: `Job ${id} ${merged_on === null ? state : 'merged'}`,
  }));
  const weeks = z.array(weekRow).parse(weekRows);
  return {
    ...{ facts, path: asked.path, ...seriesOf(series, range, marks) },
    weekPicture: drawWeeks(weeks, marks),
    far: weeks.filter(({ is_far }) => is_far).toReversed(),
    jobs: jobs.map((job) => {
      const effect = effects.find(({ job: id, merged_on }) => id === job.id && merged_on !== null);
      return { ...job, effect: effect === undefined ? null : effectWords(effect) };
    }),
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
