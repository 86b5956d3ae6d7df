import { z } from 'zod';
import { dayColumn, readSql } from '../columns.js';
import type { Settings } from '../config/schema.js';
import { inSequence } from '../format/days.js';
import type { Reader } from '../history/duckdb.js';
import { type Candidate, candidateRow } from './select.js';
import { readVariants, type Variants } from './variants.js';

const CANDIDATES = readSql(import.meta.url, 'statements/candidates.sql');
const NEAR_PATHS = readSql(import.meta.url, 'statements/near-paths.sql');
const OTHER_ADDRESSES = readSql(import.meta.url, 'statements/other-addresses.sql');

/** The pages of a site among which those for jobs are selected. */
export interface Ranking {
  /** The pages with enough views, the most viewed first. */
  readonly candidates: readonly Candidate[];
  readonly variants: Variants;
}

/** The ranking of a site, which is the same all day. */
export async function readRanking(
  reader: Reader,
  project: string,
  rules: Pick<Settings['improve'], 'minWeeklyViews' | 'variants'>,
  now: Date,
): Promise<Ranking> {
  const { minWeeklyViews } = rules;
  return {
    candidates: await reader.query(CANDIDATES, candidateRow, { project, now, minWeeklyViews }),
    variants: await readVariants(reader, project, rules, now),
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
