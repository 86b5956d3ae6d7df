import { z } from 'zod';
import { readSql } from '../columns.js';
import type { Settings } from '../config/schema.js';
import type { Reader } from '../history/duckdb.js';

const VIEWED_PAGES = readSql(import.meta.url, 'statements/viewed-pages.sql');

/** The beginnings of the paths of translations and versions, such as `/fr` and `/docs/v1`. */
export type Variants = readonly string[];

/** Those of the settings, or a guess from the pages viewed lately. */
export async function readVariants(
  reader: Reader,
  project: string,
  { variants }: Pick<Settings['improve'], 'variants'>,
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
