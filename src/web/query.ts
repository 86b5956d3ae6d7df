import { z } from 'zod';
import { dayColumn, readSql } from '../columns.js';
import { basePath, pathBelow } from '../agents/sitemap.js';
import { IN_OUR_WORDS, problemOf } from '../config/problems.js';
import { day } from '../config/values.js';
import { addDays, type Day, type DayRange, daysBetween } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { pageOf } from '../page.js';
import { type Calendar, periodOf } from '../reports/period.js';
import type { HistoryReader } from './history.js';

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
  only: z.enum(['', 'moved', 'new', 'gone', 'unread', 'files']).default(''),
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
});
type PageQuery = z.infer<typeof querySchema>;

/** The parameters in an address, of which a form leaves some empty. Throws a `ConfigurationError` that says what is wrong. */
export function parseQuery(parameters: URLSearchParams): PageQuery {
  const given = new URLSearchParams([...parameters].filter(([, value]) => value !== ''));
  const parsed = querySchema.safeParse(Object.fromEntries(given), IN_OUR_WORDS);
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
  limit: PAGES_SHOWN,
  offset: (page - 1) * PAGES_SHOWN,
});

/** The first pages of a list, whatever filters the address has. */
export const MOST_READ = { ...listOf(listSchema.parse({})), limit: 10 };

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

/** The number of days in each range that a link selects: the last whole week, or up to the last loaded day. */
const RANGES = { week: 7, '4w': 28, '13w': 91, '26w': 182, '1y': 364, all: 100_000 } as const;

const EXTENT = readSql(import.meta.url, 'queries/extent.sql');
const extentRow = z.object({ first: dayColumn, last: dayColumn });

/** The first and the last loaded day of a project; undefined for none. */
export async function extentOf(reader: HistoryReader, project: string): Promise<DayRange | undefined> {
  const [extent] = await reader.query(EXTENT, extentRow, { project });
  return extent;
}

/** The days that a page is about. */
export type Range = NonNullable<Awaited<ReturnType<typeof rangeOf>>>;

/**
 * The requested days that the history covers; undefined for a project without a loaded day. Throws a
 * `ConfigurationError` if there are none.
 */
export async function rangeOf(reader: HistoryReader, project: string, query: PageQuery, calendar: Calendar) {
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
    /** The first day of the week whose moves are shown: of the range if it is seven days, or else of its last whole week. */
    week: days === 7 ? from : weekBefore(addDays(last, 1), calendar).first,
    /** The first and the last day that is loaded at all. */
    extent,
    chart: chartDays({ first: from, last, days }, extent, query.grain),
  };
}

/** The latest week that is over before a day. */
const weekBefore = (day: Day, calendar: Calendar) =>
  periodOf('week', addDays(periodOf('week', day, calendar).first, -1), calendar);

/** A few days are drawn among this many on each side, and a week or some as the last of thirteen weeks. */
const AROUND = 42;
const FEW_WEEKS = 28;

/** The days that a chart has: for a short range, `about` which it is, those around it or before it as well. */
function chartDays(
  { first, last, days }: DayRange & { days: number },
  extent: DayRange,
  grain?: PageQuery['grain'],
) {
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
