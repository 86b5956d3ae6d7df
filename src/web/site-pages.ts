import { z } from 'zod';
import { readJobsWithEffects } from '../agents/job-effects.js';
import { addDays, daysBetween } from '../day.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { AUDIENCES } from '../format/audience.js';
import { plainDayRange } from '../format/days.js';
import { BYTE_ORDER_MARK, csvCell, shownPath, valueText } from '../format/text.js';
import { pageOf } from '../page.js';
import type { Parameters, Row } from '../history/duckdb.js';
import { proposalsOf } from './agents.js';
import { listOf, MOST_READ, scopeOf } from './query.js';
import { neighborsOf, type Range } from './range.js';
import { weeklyHref } from './reports.js';
import type { PageRequest } from './request.js';
import { seriesOf, weeksOf } from './series.js';

/** The rows of What moved, or of what made the difference, that the overview shows. */
const MOVED_MOST = 8;

/** What a chart is drawn from. Charts of more days than the range are compared with no others. */
const drawnDays = ({ chart }: Range) => ({
  from: chart.first,
  to: chart.last,
  ...(chart.about !== null && { before_from: null, before_to: null }),
});

/** The days that those of a range are compared with, if any of them is loaded. */
const comparedWith = ({ compared: { before } }: Range, totals: Row | undefined) =>
  before === null || totals?.['days_before'] === 0
    ? null
    : { ...before, days: daysBetween(before.first, before.last) + 1 };

/** The pages that moved, as a parameter of a list that marks them: in seven days, the only range that `movers` judges. */
const movedIn = async ({ rows, range }: Pick<PageRequest, 'rows' | 'range'>): Promise<Parameters> => ({
  moved: range.days === 7 ? JSON.stringify(await rows('movers')) : null,
});

/** The pages that moved in the weeks that a range judges, the latest first, each with its week. */
async function moversIn({ rows, range }: PageRequest): Promise<Row[]> {
  const weeks = range.judgedWeeks.map(async (week) =>
    (await rows('movers', { week })).map((row) => ({
      ...row,
      week: { first: week, last: addDays(week, 6) },
    })),
  );
  return (await Promise.all(weeks)).flat();
}

/** The site, or a section of it: totals, course, what moved and what is read most. */
export async function overview(request: PageRequest, section = ''): Promise<object> {
  const { rows, range, project, workspace } = request;
  const of = scopeOf(section);
  const isShort = range.days < 7;
  const days = { ...of, ...drawnDays(range) };
  const marked = await movedIn(request);
  const [[totals], series, marks, moved, pages] = await Promise.all([
    rows('totals', of),
    rows('series', days),
    rows('marks', days),
    isShort ? rows('day-differences', of) : moversIn(request),
    rows('pages', { ...MOST_READ, ...marked, section }),
  ]);
  const ofSection = moved.filter((page) => isShort || section === '' || page['section'] === section);
  const { previous, next } = neighborsOf(range);
  return {
    ...seriesOf(series, range, marks),
    template: 'overview',
    section,
    totals,
    comparedWith: comparedWith(range, totals),
    moved: ofSection.slice(0, MOVED_MOST * range.judgedWeeks.length),
    moreMoved: range.judgedWeeks.length === 1 && ofSection.length > MOVED_MOST,
    pages,
    marksMoved: range.days === 7,
    count: countOf(pages),
    week: { first: range.week, last: addDays(range.week, 6) },
    judgedWeeks: range.judgedWeeks.length,
    judged: { first: range.judgedWeeks.at(-1) ?? range.week, last: addDays(range.week, 6) },
    report:
      range.days === 7 && range.first === range.week ? weeklyHref(project, range.week, workspace) : null,
    isShort,
    /** As many days before and after these, if any of them is loaded. */
    previous: previous.last < range.extent.first ? null : previous,
    next: next.first > range.extent.last ? null : next,
  };
}

/** A section of the site, as the overview shows the whole. */
export const section = (request: PageRequest) => overview(request, request.query.section);

/** The number of all pages, of which `rows` are some. */
const countOf = ([first]: readonly Row[]): number => z.int().catch(0).parse(first?.['found']);

export async function pages(request: PageRequest): Promise<object> {
  const { rows, query } = request;
  let problem: string | null = null;
  const listed = await listedFor(request).catch((error: unknown) => {
    problem = messageOf(error);
    return {};
  });
  const [found, sections, [totals]] = await Promise.all([
    rows('pages', listed),
    rows('sections', { per: 'page' }),
    rows('totals', scopeOf('')),
  ]);
  const count = countOf(found);
  const { order, offset } = listOf(query);
  return {
    totals,
    comparedWith: comparedWith(request.range, totals),
    problem,
    all: found[0] ?? null,
    pages: found,
    marksMoved: request.range.days === 7 && query.per === 'page',
    sections,
    count,
    order,
    list: query.per === 'section' ? 'sections' : query.readers === 'ai' ? 'ai' : 'pages',
    /** The change that the list is sorted by is shown in views, because percentages favor small pages. */
    sortsByGain: query.sort.endsWith('_change'),
    otherOrder: order === 'asc' ? 'desc' : 'asc',
    first: offset + 1,
    last: offset + found.length,
    previous: query.page > 1 ? query.page - 1 : null,
    next: offset + found.length < count ? query.page + 1 : null,
  };
}

/** The pages that a list marks, and those of a list of pages without a view. Throws a `ReadershipError` if they are unknown. */
const listedFor = async (request: PageRequest): Promise<Parameters> => ({
  ...(await marksOf(request)),
  ...(request.query.only === 'unread' && (await request.proposals.listed(request.project))),
});

/** The pages that a list marks. Throws a `ConfigurationError` if it is to have no others, and it is not known which they are. */
export async function marksOf(question: Pick<PageRequest, 'rows' | 'range' | 'query'>): Promise<Parameters> {
  const { range, query } = question;
  if (query.only === 'moved' && query.per === 'section')
    throw new ConfigurationError('What moved is known for pages, not for sections: choose Pages.');
  if (query.only === 'moved' && range.days !== 7)
    throw new ConfigurationError(
      `What moved is known only for seven days: choose ${plainDayRange({ first: range.week, last: addDays(range.week, 6) })}, for example.`,
    );
  return movedIn(question);
}

const CSV_COLUMNS = [
  'path',
  'human',
  'ai',
  'ai_share',
  'human_change',
  'ai_change',
  'human_before',
  'ai_before',
  'days_loaded',
  'days_before',
  'human_moved',
  'ai_moved',
  'is_new',
];

/** All pages, not only those on one screen, for a spreadsheet. */
export async function pagesCsv(request: PageRequest): Promise<string> {
  const found = await request.rows('pages', { ...(await listedFor(request)), limit: 1_000_000, offset: 0 });
  const cell = (value: Row[string]) => csvCell(valueText(value), { isNumeric: typeof value === 'number' });
  const lines = found.map((row) => CSV_COLUMNS.map((name) => cell(row[name] ?? null)).join(','));
  return [BYTE_ORDER_MARK + CSV_COLUMNS.join(','), ...lines, ''].join('\n');
}

export async function page(request: PageRequest): Promise<object> {
  const { reader, rows, query, range, project, isSending } = request;
  const days = { section: '', ...drawnDays(range) };
  const [[facts], moved, addresses, series, weeks, marks, jobs, proposed] = await Promise.all([
    rows('page', { per: 'page' }),
    range.days === 7 ? rows('movers') : [],
    rows('addresses'),
    rows('series', days),
    rows('page-weeks', days),
    rows('marks', days),
    readJobsWithEffects(reader.state, reader, project.id),
    proposalsOf(request),
  ]);
  return {
    ...seriesOf(series, range, marks),
    weekPicture: weeksOf(weeks, marks),
    title: shownPath(query.path),
    facts,
    /** Whether its views by people and by AI are listed under What moved. */
    moved: Object.fromEntries(
      AUDIENCES.map((audience) => [
        audience,
        moved.some((row) => row['path'] === query.path && row['audience'] === audience),
      ]),
    ),
    /** Without others, the address of a page goes without saying. */
    addresses: addresses.length === 1 && addresses[0]?.['path'] === query.path ? [] : addresses,
    jobs: jobs.filter(({ path }) => pageOf(path) === query.path),
    ...proposed,
    whyNot: proposed.leftOut.find(({ path }) => path === query.path) ?? null,
    answer: null,
    waits: isSending,
  };
}
