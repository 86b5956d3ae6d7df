import { z } from 'zod';
import { mergedEffects } from '../agents/effect.js';
import { addDays, type Day, type DayRange } from '../day.js';
import { ConfigurationError, ReadershipError } from '../errors.js';
import { dayRange, longDay, shortDayRange } from '../format/days.js';
import { counted, percent, thousands } from '../format/numbers.js';
import { shownPath } from '../format/text.js';
import { csvCellOf } from '../reports/answers.js';
import { dayColumn } from '../warehouse/query.js';
import { drawLines, type LinesOptions, type Point } from '../reports/lines.js';
import { type PageRequest, PAGES_SHOWN, type Range, type Row } from './request.js';

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

/** Something that happened to a page on a day. */
interface Mark {
  readonly day: Day;
  readonly words: string;
}

const wordsOn = (marks: readonly Mark[], { first, last }: DayRange): string[] =>
  marks.filter(({ day }) => day >= first && day <= last).map(({ words }) => words);

const VIEWS = { title: 'Human and AI views per day', lines: ['human', 'ai'] };
const AI_SHARE = { title: 'AI share of all views', lines: ['share'], unit: '%' };

/** Periods as a picture, as numbers, and the states of their days. */
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
  const before = isCompared ? shown.lines.map((name) => `${name}_before`) : [];
  return {
    periods: periods.toReversed(),
    comparedWith: isCompared ? { first: addDays(first, -shift), last: addDays(last, -shift) } : null,
    states: { missing: count('missing'), provisional: count('provisional'), restated: count('restated') },
    picture: drawLines(
      periods.map((period) => pointOf(period, grain, wordsOn(marks, period))),
      { ...shown, lines: [...before, ...shown.lines] },
    ),
  };
}

function pointOf(period: Period, grain: Range['grain'], happened: readonly string[]): Point {
  const { first, days, missing, provisional, restated } = period;
  const { human, ai, human_before, ai_before, share, share_before } = period;
  const views = (value: number) => `${thousands(value)}${days > 1 ? ' per day' : ''}`;
  const figures = [
    ['Human', human, views],
    ['AI', ai, views],
    ['AI share', share, percent],
    ['Human before', human_before, views],
    ['AI before', ai_before, views],
    ['AI share before', share_before, percent],
  ] as const;
  const states = [
    ['not loaded', missing],
    ['provisional', provisional],
    ['restated', restated],
  ] as const;
  const inPercent = (value: number | null) => (value === null ? null : 100 * value);
  return {
    values: {
      human,
      ai,
      human_before,
      ai_before,
      share: inPercent(share),
      share_before: inPercent(share_before),
    },
    label: grain === 'month' ? longDay(first).replace(/ \d+,/, '') : shortDayRange({ first, last: first }),
    flag: missing > 0 ? 'missing' : provisional > 0 ? 'provisional' : restated > 0 ? 'restated' : undefined,
    isMarked: happened.length > 0,
    said: [
      dayRange(period),
      ...figures.flatMap(([name, value, write]) => (value === null ? [] : `${name} ${write(value)}`)),
      ...states.flatMap(([word, count]) =>
        count === 0 ? [] : days === 1 ? word : `${counted(count, 'day')} ${word}`,
      ),
      ...happened,
    ],
  };
}

/** The first pages of a list, whatever filters the address has. */
const MOST_READ = {
  limit: 10,
  offset: 0,
  per: 'page',
  sort: 'total',
  order: 'desc',
  search: '',
  section: '',
  readers: '',
  only: '',
  min_share: 0,
  max_share: 1,
};

const WHOLE_SITE = { path: null, section: '' };

/** The site, or a section of it: totals, course, what moved and what is read most. */
export async function overview({ rows, range }: PageRequest, section = ''): Promise<object> {
  const of = { ...WHOLE_SITE, section };
  const [[totals], series, moved, pages] = await Promise.all([
    rows('totals', of),
    rows('series', of),
    rows('movers', of),
    rows('pages', { ...MOST_READ, section }),
  ]);
  const week = { first: range.week, last: addDays(range.week, 6) };
  return {
    ...seriesOf(series, range),
    template: 'overview',
    section,
    totals,
    moved: moved.slice(0, 8),
    pages,
    count: countOf(pages),
    week,
  };
}

/** The number of all pages, of which `rows` are some. */
const countOf = ([first]: readonly Row[]): number => z.int().catch(0).parse(first?.['found']);

export async function pages(request: PageRequest): Promise<object> {
  const { rows, query } = request;
  const { problem, ...listed } = await listedFor(request);
  const [found, sections, [totals]] = await Promise.all([
    rows('pages', listed),
    rows('sections'),
    rows('totals', WHOLE_SITE),
  ]);
  const count = countOf(found);
  const first = (query.page - 1) * PAGES_SHOWN;
  return {
    totals,
    problem,
    all: found[0] ?? null,
    pages: found,
    sections,
    count,
    ...orderOf(query),
    first: first + 1,
    last: first + found.length,
    previous: query.page > 1 ? query.page - 1 : null,
    next: first + found.length < count ? query.page + 1 : null,
  };
}

/** The pages of the sitemap, if the request is about those without a view, or why they are unknown. */
async function listedFor({ query, proposals, project, now }: PageRequest) {
  if (query.only !== 'unread') return { problem: null };
  try {
    const listed = await proposals.listed(project, now);
    const problem =
      'To list pages without a view, name the site’s sitemap: improve.sitemap in readership.yaml.';
    return listed === undefined ? { problem } : { problem: null, ...listed };
  } catch (error) {
    if (error instanceof ReadershipError) return { problem: error.message };
    throw error;
  }
}

/** Which way a list is sorted, for its header, and the other way, for a link that turns it. */
function orderOf({ sort, order }: PageRequest['query']) {
  const isAscending = order === '' ? sort === 'path' : order === 'asc';
  return {
    order: isAscending ? 'ascending' : 'descending',
    otherOrder: isAscending ? 'desc' : 'asc',
  };
}

const CSV_COLUMNS = [
  ...['path', 'human', 'ai', 'ai_share', 'human_change', 'ai_change', 'human_before', 'ai_before'],
  ...['days_loaded', 'days_before', 'human_low', 'human_high', 'ai_low', 'ai_high', 'is_new'],
];

/** All pages, not only those on one screen. */
export async function pagesCsv(request: PageRequest): Promise<string> {
  const { problem, ...listed } = await listedFor(request);
  if (problem !== null) throw new ConfigurationError(problem);
  const found = await request.rows('pages', { ...listed, limit: 1_000_000, offset: 0 });
  const lines = found.map((row) => CSV_COLUMNS.map((name) => csvCellOf(row[name] ?? null)).join(','));
  return [CSV_COLUMNS.join(','), ...lines, ''].join('\n');
}

const jobRow = z.looseObject({
  id: z.int(),
  state: z.string(),
  day: dayColumn,
  merged_on: dayColumn.nullable(),
});
const weekRow = z.object({
  week: dayColumn,
  audience: z.enum(['human', 'ai']),
  views: z.int(),
  is_far: z.boolean(),
  expected: number,
  low: number,
  high: number,
});

export async function page({ reader, rows, query, range, project }: PageRequest): Promise<object> {
  const [[facts], series, weekRows, jobRows] = await Promise.all([
    rows('page'),
    rows('series', { section: '' }),
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
    ...seriesOf(series, range, marks),
    title: shownPath(query.path),
    facts,
    path: query.path,
    weekPicture: drawWeeks(weeks, marks),
    far: weeks.filter(({ is_far }) => is_far).toReversed(),
    jobs: jobs.map((job) => ({ ...job, effect: effects.get(job.id) ?? null })),
  };
}

/** The weeks of a page, with the band in which each was expected. */
function drawWeeks(weeks: readonly z.infer<typeof weekRow>[], marks: readonly Mark[]) {
  const points = [...new Set(weeks.map(({ week }) => week))].map((week): Point => {
    const days = { first: week, last: addDays(week, 6) };
    const happened = wordsOn(marks, days);
    const ofWeek = weeks.filter((row) => row.week === week);
    const said = ofWeek.toReversed().map(({ audience, views, low, high }) => {
      const usual = low === null || high === null ? '' : `, ${thousands(low)} to ${thousands(high)} expected`;
      return `${audience === 'ai' ? 'AI' : 'Human'} ${thousands(views)}${usual}`;
    });
    const values = ofWeek.flatMap(({ audience, views, low, high }) => [
      [audience, views],
      [`${audience}_low`, low],
      [`${audience}_high`, high],
    ]);
    return {
      values: Object.fromEntries(values) as Point['values'],
      label: shortDayRange({ first: week, last: week }),
      isMarked: happened.length > 0,
      said: [dayRange(days), ...said, ...happened],
    };
  });
  const bands = [['human', 'human_low', 'human_high'] as const, ['ai', 'ai_low', 'ai_high'] as const];
  const title = 'Human and AI views per week, with their expected ranges';
  return drawLines(points, { title, lines: ['human', 'ai'], bands });
}

/** What AI reads and people seldom do, the reverse, and how that changes. */
export async function ai({ rows, range }: PageRequest): Promise<object> {
  const [[totals], series, oneSided, overtaken, leaving] = await Promise.all([
    rows('totals', WHOLE_SITE),
    rows('series', WHOLE_SITE),
    rows('one-sided'),
    rows('overtaken'),
    rows('leaving'),
  ]);
  const isOf = (audience: string) => oneSided.filter(({ reader }) => reader === audience);
  const shares = seriesOf(series, range, [], AI_SHARE);
  return { totals, overtaken, leaving, ai: isOf('ai'), human: isOf('human'), ...shares };
}
