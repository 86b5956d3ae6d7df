import { z } from 'zod';
import { readJobsWithEffects } from '../agents/job-effects.js';
import { addDays, earlierBy } from '../day.js';
import { messageOf } from '../errors.js';
import { BYTE_ORDER_MARK, csvCell, shownPath, valueText } from '../format/text.js';
import { pageOf } from '../page.js';
import type { Parameters, Row } from '../history/duckdb.js';
import { listOf, MOST_READ, type Range, scopeOf } from './query.js';
import { weeklyHref } from './reports.js';
import type { PageRequest } from './request.js';
import { seriesOf, weeksOf } from './series.js';

const WHOLE_SITE = scopeOf('');

/** What a chart is drawn from. Charts of more days than the range are compared with no others. */
const drawnDays = ({ chart, shift }: Range) => ({
  from: chart.first,
  to: chart.last,
  shift: chart.about === null ? shift : 0,
});

/** The site, or a section of it: totals, course, what moved and what is read most. */
export async function overview(request: PageRequest, section = ''): Promise<object> {
  const { rows, range, project, workspace } = request;
  const of = scopeOf(section);
  const isShort = range.days < 7;
  const days = { ...of, ...drawnDays(range) };
  const [[totals], series, marks, moved, pages] = await Promise.all([
    rows('totals', of),
    rows('series', days),
    rows('marks', days),
    isShort ? rows('day-differences', of) : rows('movers'),
    rows('pages', { ...MOST_READ, section }),
  ]);
  const isFirst = totals?.['days_before'] === 0;
  const [previous, next] = [earlierBy(range.days, range), earlierBy(-range.days, range)];
  return {
    ...seriesOf(series, range, marks),
    template: 'overview',
    section,
    totals,
    comparedWith: range.shift > 0 && !isFirst ? earlierBy(range.shift, range) : null,
    moved: moved.filter((page) => isShort || section === '' || page['section'] === section).slice(0, 8),
    pages,
    count: countOf(pages),
    week: { first: range.week, last: addDays(range.week, 6) },
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
    rows('totals', WHOLE_SITE),
  ]);
  const count = countOf(found);
  const { order, offset } = listOf(query);
  return {
    totals,
    problem,
    all: found[0] ?? null,
    pages: found,
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

/** The parameters of a list of pages without a view. Throws a `ReadershipError` if they are unknown. */
const listedFor = async ({ query, proposals, project }: PageRequest): Promise<Parameters> =>
  query.only === 'unread' ? proposals.listed(project) : {};

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
  'human_low',
  'human_high',
  'ai_low',
  'ai_high',
  'is_new',
];

/** All pages, not only those on one screen, for a spreadsheet. */
export async function pagesCsv(request: PageRequest): Promise<string> {
  const found = await request.rows('pages', { ...(await listedFor(request)), limit: 1_000_000, offset: 0 });
  const cell = (value: Row[string]) => csvCell(valueText(value), { isNumeric: typeof value === 'number' });
  const lines = found.map((row) => CSV_COLUMNS.map((name) => cell(row[name] ?? null)).join(','));
  return [BYTE_ORDER_MARK + CSV_COLUMNS.join(','), ...lines, ''].join('\n');
}

export async function page({ reader, rows, query, range, project }: PageRequest): Promise<object> {
  const days = { section: '', ...drawnDays(range) };
  const [[facts], addresses, series, weeks, marks, jobs] = await Promise.all([
    rows('page', { per: 'page' }),
    rows('addresses'),
    rows('series', days),
    rows('page-weeks', days),
    rows('marks', days),
    readJobsWithEffects(reader.state, reader, project.id),
  ]);
  return {
    ...seriesOf(series, range, marks),
    ...weeksOf(weeks, marks),
    title: shownPath(query.path),
    facts,
    /** Without others, the address of a page goes without saying. */
    addresses: addresses.length === 1 && addresses[0]?.['path'] === query.path ? [] : addresses,
    jobs: jobs.filter(({ path }) => pageOf(path) === query.path),
  };
}
