import { HTTPException } from 'hono/http-exception';
import { z } from 'zod';
import { basePath, pathBelow } from '../agents/sitemap.js';
import type { Runtime, Workspace, WorkspaceOptions } from '../app/workspace.js';
import { IN_OUR_WORDS, problemOf } from '../config/problems.js';
import { day } from '../config/values.js';
import { addDays, type Day, type DayRange, daysBetween } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { shownPath } from '../format/text.js';
import { pageOf } from '../page.js';
import { type Calendar, periodOf } from '../reports/period.js';
import { dayColumn, filledIn, type Parameters, readSql, type Row, rowSchema } from '../warehouse/query.js';
import type { Visitor } from './access.js';
import { type PublishedReader, WebHistory } from './history.js';
import { Proposals } from './proposals.js';
import { type Asker, MAX_SQL, Questions, SavedQuestions } from './questions.js';
import type { ActionQueue } from './queue.js';

/** What pages and tools answer from. */
export type Sources = ReturnType<typeof openSources>;

export const openSources = (workspace: Workspace, options: WorkspaceOptions, runtime: Runtime) => ({
  workspace,
  runtime,
  history: new WebHistory(workspace),
  questions: new Questions(workspace, options, runtime),
  saved: new SavedQuestions(workspace),
  proposals: new Proposals(workspace),
});

/** Ends the queries and closes the history. */
export async function closeSources({ questions, history }: Sources): Promise<void> {
  await questions.processes.close();
  history.close();
}

const queryNamed = (name: string): string => readSql(import.meta.url, `queries/${name}.sql`);

/** The rows of a query in `queries/`. */
export const rowsOf = (reader: PublishedReader, name: string, parameters: Parameters): Promise<Row[]> =>
  reader.query(queryNamed(name), rowSchema, parameters);

/** The number of days in each range that a link selects: the last whole week, or up to the last loaded day. */
const RANGES = { week: 7, '4w': 28, '13w': 91, '26w': 182, '1y': 364, all: 100_000 } as const;

/** What one may choose from, in the address of a page and as an assistant. */
export const CHOICES = {
  grain: ['day', 'week', 'month'],
  against: ['before', 'year', 'none'],
  readers: ['human', 'ai', 'both'],
  per: ['page', 'section'],
  sort: ['total', 'human', 'ai', 'human_change', 'ai_change', 'share', 'path'],
  order: ['asc', 'desc'],
} as const;

/** In percent. */
const shareField = z.coerce.number('write a number from 0 to 100').min(0).max(100).nullable().default(null);
const text = z.string().max(2000, 'too long').default('');

/** The parameters of a list of pages or sections. */
const listSchema = z.object({
  search: text,
  section: text,
  readers: z.enum(['', ...CHOICES.readers]).default(''),
  only: z.enum(['', 'moved', 'new', 'gone', 'unread']).default(''),
  minShare: shareField,
  maxShare: shareField,
  per: z.enum(CHOICES.per).default('page'),
  sort: z.enum(CHOICES.sort).default('total'),
  order: z.enum(['', ...CHOICES.order]).default(''),
  page: z.coerce.number().int().min(1).max(100_000).default(1),
});

/** The parameters in the address of a page. */
const querySchema = listSchema.extend({
  project: text,
  range: z.enum(['week', '4w', '13w', '26w', '1y', 'all']).default('week'),
  from: day.optional(),
  to: day.optional(),
  grain: z.enum(CHOICES.grain).optional(),
  against: z.enum(CHOICES.against).default('before'),
  path: text,
  /** All pages and sections of a comparison; elsewhere the last one counts. */
  paths: z.array(text),
  sections: z.array(text),
  sql: z.string().max(MAX_SQL, 'too long').default(''),
  name: text,
});
type PageQuery = z.infer<typeof querySchema>;
type Grain = PageQuery['grain'];

/** The parameters in an address, of which a form leaves some empty. Throws a `ConfigurationError` that says what is wrong. */
export function parseQuery(parameters: URLSearchParams): PageQuery {
  const given = new URLSearchParams([...parameters].filter(([, value]) => value !== ''));
  const allOf = (name: string) => [...new Set(given.getAll(name))];
  const written = { ...Object.fromEntries(given), paths: allOf('path'), sections: allOf('section') };
  const parsed = querySchema.safeParse(written, IN_OUR_WORDS);
  if (parsed.success) return parsed.data;
  throw new ConfigurationError(problemOf(parsed.error));
}

/** The number of rows of a list on one page. */
const PAGES_SHOWN = 50;

/** What a list has, and in which order, as parameters of `queries/pages.sql`. */
export const listOf = ({ minShare, maxShare, order, page, ...list }: z.infer<typeof listSchema>) => ({
  ...list,
  order: order === '' ? (list.sort === 'path' ? 'asc' : 'desc') : order,
  min_share: (minShare ?? 0) / 100,
  max_share: (maxShare ?? 100) / 100,
  /** The names of the pages or sections, if only some are chosen. */
  chosen: '[]',
  limit: PAGES_SHOWN,
  offset: (page - 1) * PAGES_SHOWN,
});

/** The first pages of a list, whatever filters the address has. */
export const MOST_READ = { ...listOf(listSchema.parse({})), limit: 10 };

/** Only the pages or sections with these names. */
export const onlyThese = (per: 'page' | 'section', names: readonly string[]) => ({
  ...MOST_READ,
  per,
  only: 'chosen',
  chosen: JSON.stringify(names),
  limit: names.length,
});

const extentRow = z.object({ first: dayColumn, last: dayColumn });

/** The first and the last loaded day of a project; undefined for none. */
export async function extentOf(reader: PublishedReader, project: string): Promise<DayRange | undefined> {
  const [extent] = await reader.query(queryNamed('extent'), extentRow, { project });
  return extent;
}

/** The days that a page is about. */
export type Range = NonNullable<Awaited<ReturnType<typeof rangeOf>>>;

/**
 * The requested days that the history covers; undefined for a project without a loaded day. Throws a
 * `ConfigurationError` if there are none.
 */
async function rangeOf(reader: PublishedReader, project: string, query: PageQuery, calendar: Calendar) {
  const extent = await extentOf(reader, project);
  if (extent === undefined) return undefined;
  const { first, last: end } = extent;
  const lastWeek = weekBefore(addDays(end, 1), calendar);
  const isWeek = query.range === 'week' && query.from === undefined && lastWeek.last >= first;
  const upTo = isWeek ? lastWeek.last : end;
  const last = query.to !== undefined && query.to < upTo ? query.to : upTo;
  const start = query.from ?? addDays(last, 1 - RANGES[query.range]);
  const from = start < first ? first : start;
  if (from > last) throw new ConfigurationError(`Choose days from ${first} to ${end}, the first one first.`);
  const days = daysBetween(from, last) + 1;
  return {
    first: from,
    last,
    days,
    /** How many days earlier the days to compare with lie, for a few days on the same weekdays; 0 for none. */
    shift: { before: days < 7 ? 7 : days, year: 364, none: 0 }[query.against],
    /** The name of the selected range, which is all before the first whole week; empty for days that were typed. */
    chosen: query.from !== undefined ? '' : query.range === 'week' && !isWeek ? 'all' : query.range,
    /** The first day of the last whole week of the range. */
    week: weekBefore(addDays(last, 1), calendar).first,
    /** The first and the last day that is loaded at all. */
    extent,
    chart: chartDays({ first: from, last, days }, extent, query.grain),
  };
}

/** The last week that is over before a day. */
const weekBefore = (day: Day, calendar: Calendar) =>
  periodOf('week', addDays(periodOf('week', day, calendar).first, -1), calendar);

/** A few days are drawn among this many on each side, and a week or some as the last of thirteen weeks. */
const AROUND = 42;
const FEW_WEEKS = 28;

/** The days that a chart has: for a short range, `about` which it is, those around it or before it as well. */
function chartDays({ first, last, days }: DayRange & { days: number }, extent: DayRange, grain?: Grain) {
  const drawn =
    days < 7
      ? { first: addDays(first, -AROUND), last: addDays(last, AROUND) }
      : { first: days < FEW_WEEKS ? addDays(last, 1 - RANGES['13w']) : first, last };
  const shown = {
    first: drawn.first < extent.first ? extent.first : drawn.first,
    last: drawn.last > extent.last ? extent.last : drawn.last,
  };
  const drawnDays = daysBetween(shown.first, shown.last) + 1;
  return {
    ...shown,
    grain: grain ?? (drawnDays <= 100 ? 'day' : drawnDays <= 800 ? 'week' : 'month'),
    /** Null if the range has all of them. */
    about: drawnDays === days ? null : { first, last },
  };
}

/** What totals are of: the whole site, or a section of it. */
export const scopeOf = (section: string) => ({
  path: null,
  section,
  per: section === '' ? 'site' : 'section',
});

/**
 * The page that a path or the full URL of one of its addresses names; empty for an empty text. Throws a
 * `ConfigurationError` for a URL of another site.
 */
export function pageIn(text: string, siteUrl: string | undefined): string {
  if (text === '' || !/^https?:\/\//i.test(text) || !URL.canParse(text)) return text && pageOf(text);
  const { origin, pathname } = new URL(text);
  const path = pathBelow(basePath(siteUrl), pathname);
  if (path === undefined || (siteUrl !== undefined && new URL(siteUrl).origin !== origin))
    throw new ConfigurationError(
      `${origin}${pathname} is not a page of ${siteUrl}. Write a path such as /quickstart.`,
    );
  return pageOf(path);
}

/** Who requests a page. */
export type Visit = Visitor & Asker;

/** A request about a project, with what most pages need to answer it. */
export type SiteRequest = Awaited<ReturnType<typeof requestOf>>;

/** A request about the days of a project. */
export type PageRequest = SiteRequest & { readonly range: Range };

/** Throws a `ConfigurationError` or an `HTTPException` for an address that no page can be shown for. */
export const requestOf = async (
  { searchParams }: URL,
  visit: Visit,
  reader: PublishedReader,
  { queue, sources }: { readonly queue: ActionQueue; readonly sources: Sources },
) => ({ ...sources, ...visit, queue, ...(await questionOf(searchParams, reader, sources)) });

/** What is asked about a project. Throws a `ConfigurationError` or an `HTTPException` for parameters without an answer. */
export async function questionOf(
  parameters: URLSearchParams,
  reader: PublishedReader,
  { runtime, workspace }: Pick<Sources, 'runtime' | 'workspace'>,
) {
  const query = parseQuery(parameters);
  const project = workspace.projects.find(({ id }) => ['', id].includes(query.project));
  if (project === undefined)
    throw new HTTPException(404, { message: `There is no project ${query.project}.` });
  const path = pageIn(query.path, project.siteUrl);
  /** Undefined while nothing is loaded. */
  const range = await rangeOf(reader, project.id, query, workspace.settings.reports);
  const paths = [...new Set(query.paths.map((one) => pageIn(one, project.siteUrl)))];
  const common = {
    ...listOf(query),
    path,
    project: project.id,
    from: range?.first ?? null,
    to: range?.last ?? null,
    grain: range?.chart.grain ?? null,
    shift: range?.shift ?? 0,
    week: range?.week ?? null,
    /** The pages of the sitemap, for a page that needs them. */
    listed: '[]',
    base: '',
  };
  const offered: { readonly name: string; readonly sql: string }[] = [];
  /** Offers a query in `queries/` to go on from in SQL, named with its `subject` if it is asked about several. */
  const offer = (name: string, more: Parameters = {}, subject?: string): void => {
    const words = name.replaceAll('-', ' ') + (subject === undefined ? '' : ` of ${shownPath(subject)}`);
    offered.push({ name: words, sql: filledIn(queryNamed(name), { ...common, ...more }) });
  };
  return {
    workspace,
    /** The queries so far, for those who want to go on from them in SQL. */
    offered,
    now: runtime.now(),
    reader,
    query: { ...query, path, paths },
    project,
    range,
    offer,
    /** The rows of a query in `queries/`, which can use any parameter of the address and of the range. */
    rows: (name: string, more?: Parameters, subject?: string): Promise<Row[]> => {
      offer(name, more, subject);
      return rowsOf(reader, name, { ...common, ...more });
    },
  };
}
