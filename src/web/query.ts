import { z } from 'zod';
import { basePath, pathBelow } from '../agents/sitemap.js';
import { IN_OUR_WORDS, problemOf } from '../config/problems.js';
import { day } from '../config/values.js';
import { ConfigurationError } from '../errors.js';
import { pageOf } from '../page.js';

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

/** The ranges that a link selects. */
export const RANGES = ['week', '4w', '13w', '26w', '1y', 'month', 'quarter', 'all'] as const;

/** The parameters in the address of a page. */
const querySchema = listSchema.extend({
  project: text,
  range: z.enum(RANGES).default('week'),
  from: day.optional(),
  to: day.optional(),
  grain: z.enum(CHOICES.grain).optional(),
  against: z.enum(CHOICES.against).default('before'),
  path: text,
});
export type PageQuery = z.infer<typeof querySchema>;

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
