import { z } from 'zod';
import { dayColumn, readSql } from '../columns.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { inSequence } from '../format/days.js';
import type { Reader } from '../history/duckdb.js';
import { type Evidence, evidenceRow } from '../state/jobs.js';
import type { IsListed, Sitemap } from './sitemap.js';

/** A page's views over the last full weeks; see `statements/candidates.sql`. */
const candidateRow = evidenceRow.extend({
  path: z.string(),
  /** As JSON: rows of structs take longer to read. Checked only for the few pages whose evidence is stored. */
  weeks: z.string().transform((text) => JSON.parse(text) as Evidence['weeks']),
  rank: z.int(),
  /** Of the site, including those without a row. */
  all_pages: z.int(),
  has_enough: z.boolean(),
  days_viewed: z.int(),
  days_viewed_by_people: z.int(),
  is_gone: z.boolean(),
  /** Of the last complete days, whose number is the first; null if they are not all loaded. */
  lately_days: z.int().nullable(),
  lately_until: dayColumn.nullable(),
  lately_views: z.int().nullable(),
  lately_usual: z.int().nullable(),
});

export type Candidate = z.infer<typeof candidateRow>;

const CANDIDATES = readSql(import.meta.url, 'statements/candidates.sql');
const NEAR_PATHS = readSql(import.meta.url, 'statements/near-paths.sql');
const OTHER_ADDRESSES = readSql(import.meta.url, 'statements/other-addresses.sql');

/** The pages of a site among which those for jobs are selected. */
export interface Ranking {
  /** The pages with enough views, the most viewed first. */
  readonly candidates: readonly Candidate[];
  readonly variants: Variants;
  /** Whether the site's sitemap lists a page; undefined without a sitemap. */
  readonly isListed: IsListed | undefined;
}

/** The ranking of a site, which is the same all day. */
export async function readRanking(
  reader: Reader,
  { id: project, siteUrl }: Pick<ProjectSettings, 'id' | 'siteUrl'>,
  rules: Settings['improve'],
  { sitemap, now }: { readonly sitemap: Sitemap | undefined; readonly now: Date },
): Promise<Ranking> {
  const { minWeeklyViews } = rules;
  return {
    candidates: await reader.query(CANDIDATES, candidateRow, { project, now, minWeeklyViews }),
    variants: await readVariants(reader, project, rules, now),
    isListed: sitemap?.listedOn(siteUrl),
  };
}

const otherAddresses = z.object({
  week: dayColumn,
  views: z.int(),
  /** The most viewed of them, and of those for AI. */
  paths: z.array(z.string()),
  for_ai: z.array(z.object({ path: z.string(), human: z.int(), ai: z.int() })),
});
export type OtherAddresses = z.infer<typeof otherAddresses>;

/** The views of files and system addresses in the last full week; undefined without one. */
export async function readOtherAddresses(
  reader: Reader,
  project: string,
  now: Date,
): Promise<OtherAddresses | undefined> {
  const [others] = await reader.query(OTHER_ADDRESSES, otherAddresses, { project, now });
  return others;
}

const nearPaths = (reader: Reader, project: string, path: string) =>
  reader.query(NEAR_PATHS, z.object({ path: z.string(), is_page: z.boolean() }), { project, path });

/** An error message with similar paths if the history has no such page; undefined if it has one. */
export async function unknownPage(reader: Reader, project: string, path: string) {
  const near = (await nearPaths(reader, project, path)).map((row) => row.path);
  if (near[0] === path) return undefined;
  return `the history has no such page${near.length === 0 ? '' : `; did you mean ${inSequence(near, 'or')}?`}`;
}

/** Why an address cannot get a job, whatever its views: it is unknown, or not a page. */
export async function noPageForJobs(reader: Reader, project: string, path: string) {
  const [first] = await nearPaths(reader, project, path);
  return first?.path === path && !first.is_page
    ? 'it is a file or a system address, not a page'
    : unknownPage(reader, project, path);
}

const VIEWED_PAGES = readSql(import.meta.url, 'statements/viewed-pages.sql');

/** The beginnings of the paths of translations and versions, such as `/fr` and `/docs/v1`. */
export type Variants = readonly string[];

/** Those of the settings, or a guess from the pages viewed lately. */
async function readVariants(
  reader: Reader,
  project: string,
  { variants }: Settings['improve'],
  now: Date,
): Promise<Variants> {
  if (variants !== 'auto') return variants;
  const rows = await reader.query(VIEWED_PAGES, z.object({ path: z.string() }), { project, now });
  return guessVariants(rows.map(({ path }) => path));
}

/** The path that a page has in common with its translations and other versions. */
export function sharedPath(path: string, variants: Variants): string {
  const variant = variants.find((one) => path === one || path.startsWith(`${one}/`));
  if (variant === undefined) return path;
  const rest = path.slice(variant.length);
  return sharedPath(variant.slice(0, variant.lastIndexOf('/')) + rest || '/', variants);
}

/** Languages into which documentation is translated. Others, such as `ts` and `ml`, are names of other things in it. */
const LANGUAGES =
  'en es fr de it pt ja jp ko kr zh cn tw ru nl pl tr sv da fi nb no cs hu ro uk ua el he ar fa hi id vi th bg hr sk sl sr lt lv et ca ms bn ta';
/** With or without a region or a script: `pt-BR`, `zh_Hant`. */
const LANGUAGE = new RegExp(
  `^(?:${LANGUAGES.replaceAll(' ', '|')})(?:[-_](?:[a-z]{2}|[a-z]{4}|\\d{3}))?$`,
  'i',
);
const VERSION =
  /^(?:(?:v\d+(?:\.\d+)*|\d+(?:\.\d+)+)(?:\.x|-?(?:alpha|beta|rc)[.\d]*)?|\d+\.x|\d{1,2}|latest|stable|next|current|canary|nightly|unstable|edge|main|master|dev)$/i;

/** The posts of `/blog/2026/10` and `/blog/2026/11` are not versions of each other. */
const YEAR = /^(?:19|20)\d\d$/;
const MONTH = /^\d{1,2}$/;

/** How many parts of a path are looked at: `/docs/fr/v1/guides` has all of them. */
const DEEPEST = 3;

/**
 * Guesses which beginnings of paths stand for a language or a version: those that look so, and below which at least half of
 * the pages exist without them, or in another language or version too. So `/api/v1` alone is none.
 */
export function guessVariants(pages: readonly string[]): string[] {
  const known = new Set(pages);
  const named = pages.flatMap(namesIn);
  const places = new Map<string, number>();
  for (const { key } of named) places.set(key, (places.get(key) ?? 0) + 1);
  const counts = new Map<string, { pages: number; others: number }>();
  for (const { prefix, shared, key } of named) {
    const count = counts.get(prefix) ?? { pages: 0, others: 0 };
    counts.set(prefix, count);
    count.pages += 1;
    if (known.has(shared) || (places.get(key) ?? 0) > 1) count.others += 1;
  }
  return [...counts]
    .filter(([, { pages, others }]) => others > 0 && 2 * others >= pages)
    .map(([prefix]) => prefix)
    .sort();
}

/** The parts of a page's path that look like a language or version, each with the path without it. */
function namesIn(page: string) {
  const parts = page.split('/').slice(1);
  // A page of which that is the last part, such as /users/2, says nothing.
  return parts.slice(0, Math.min(DEEPEST, parts.length - 1)).flatMap((part, at) => {
    const kind = LANGUAGE.test(part) ? 'language' : VERSION.test(part) ? 'version' : undefined;
    if (kind === undefined || (MONTH.test(part) && YEAR.test(parts[at - 1] ?? ''))) return [];
    const shared = `/${parts.toSpliced(at, 1).join('/')}`;
    return [{ prefix: `/${parts.slice(0, at + 1).join('/')}`, shared, key: `${kind} ${shared}` }];
  });
}
