import picomatch from 'picomatch';
import { z } from 'zod';
import type { Settings } from '../config/schema.js';
import { counted, percent } from '../format/numbers.js';
import { drawPairs, type Pair } from './pairs.js';
import { type Evidence, evidenceRow, leavingColumn, NO_EVIDENCE, type Reason } from './reasons.js';
import type { Room } from './room.js';
import type { IsListed } from './sitemap.js';

/** A page's views over the last full weeks; see `statements/candidates.sql`. */
export const candidateRow = evidenceRow.extend({
  path: z.string(),
  /** As JSON: rows of structs take longer to read. Checked only for the few pages whose evidence is stored. */
  weeks: z.string().transform((text) => JSON.parse(text) as Evidence['weeks']),
  days_viewed: z.int(),
  days_viewed_by_people: z.int(),
  /** Whether it lost more than three quarters of its usual views in the latest week, as when it has moved. */
  is_gone: z.boolean(),
  leaving: leavingColumn,
  /** Of all pages, including those without a row. */
  all_pages: z.int(),
  /** The sum of their weekly medians. */
  all_views: z.number(),
});
export type Candidate = z.infer<typeof candidateRow>;

/** The selection rules in the `improve` section of the configuration. */
export type SelectionRules = Pick<
  Settings['improve'],
  'minWeeklyViews' | 'readingShare' | 'exclude' | 'mode' | 'experiment'
>;

/** What affects the selection besides views. */
export interface SelectionState {
  /** Pages that have a job, recently had one, or are skipped. */
  readonly busy: ReadonlyMap<string, Reason>;
  /** Pages that get a job only if a person names them: their pull request was rejected, or they are held out. */
  readonly reserved: ReadonlyMap<string, Reason>;
  /** Whether the site's sitemap lists a page; undefined without a sitemap. */
  readonly isListed: IsListed | undefined;
  /** The only pages to flag or leave out; undefined for all pages with enough views. */
  readonly only?: readonly string[] | undefined;
  /** What is known of those of them that were viewed in the weeks of the candidates, but too seldom to be one. */
  readonly viewed?: ReadonlyMap<string, Evidence> | undefined;
  /** How many pages may be flagged, and which limit decides it. */
  readonly room: Room;
  /** Draws one page of each pair. Without it, both are flagged, and a later draw decides. */
  readonly seed?: string | undefined;
}

/** A page with enough views, or one that a person named. */
export interface ConsideredPage {
  readonly path: string;
  /** Why it is chosen for a job or left out. */
  readonly why: Reason;
  readonly evidence: Evidence;
  /** Why it would not get its job if a person had not named it. */
  readonly despite?: Reason | undefined;
}

export interface Selection {
  /** Chosen for jobs. */
  readonly flagged: readonly ConsideredPage[];
  readonly leftOut: readonly ConsideredPage[];
  /** Pairs of similar pages of which one gets a job, if enough pages qualify for an experiment. */
  readonly pairs: readonly Pair[];
  /** Pages with enough views, but beyond those that make up `readingShare` of all views. */
  readonly beyondShare: number;
  /** Pages below `minWeeklyViews`. */
  readonly belowFloor: number;
}

/** Sustained traffic cannot be judged from fewer full weeks. */
export const MIN_WEEKS = 4;

/** A page visited only by a script, or in one burst, is not one that people rely on. */
const MIN_DAYS_VIEWED = 14;
const MIN_DAYS_VIEWED_BY_PEOPLE = 7;

/**
 * Chooses as many pages as allowed, none below the minimum: first those losing people but not AI,
 * then those with the most sustained traffic, which together make up `readingShare` of it.
 */
export function selectPages(
  candidates: readonly Candidate[],
  rules: SelectionRules,
  state: SelectionState,
): Selection {
  const seen = candidates.filter(({ weeks }) => weeks.length >= MIN_WEEKS);
  const ranked = seen.sort((one, other) => reading(other) - reading(one) || (one.path < other.path ? -1 : 1));
  const isEnough = (views: number): boolean => views > 0 && views >= rules.minWeeklyViews;
  const aboveFloor = ranked.filter((page) => isEnough(reading(page)) && !page.is_gone);
  const { all_pages: pages = 0, all_views: views = 0 } = seen[0] ?? {};
  const carrying = firstCarrying(aboveFloor, rules.readingShare * views);
  const leaving = aboveFloor.filter((page) => page.leaving !== null);
  const considered = [...new Set([...leaving, ...carrying])];
  // To picomatch alone, /**/openapi.* does not cover /openapi.json.
  const patterns = rules.exclude.flatMap((pattern) => [pattern, pattern.replace('/**/', '/')]);
  const isExcluded = picomatch(patterns);
  const named = considered.filter(({ path }) => state.only?.includes(path) !== false);
  const objections = new Map<Candidate, Reason | undefined>(
    named.map((page) => [page, objection(page, isExcluded(page.path), state)]),
  );
  const qualifying = named.filter((page) => objections.get(page) === undefined);
  const pairs = pairsOf(qualifying, rules, state);
  const chosen =
    pairs.length === 0
      ? qualifying.slice(0, state.room.count).map(({ path }) => path)
      : pairs.flatMap(({ treated, heldOut }) => (state.seed === undefined ? [treated, heldOut] : treated));
  const flagged: ConsideredPage[] = [];
  const leftOut: ConsideredPage[] = [];
  for (const page of named) {
    const { path, leaving } = page;
    if (!chosen.includes(path)) {
      leftOut.push({ path, why: objections.get(page) ?? state.room.limit, evidence: page });
      continue;
    }
    const evidence = evidenceRow.parse(page);
    const [rank, weeks] = [aboveFloor.indexOf(page) + 1, evidence.weeks.length];
    const despite = state.reserved.get(path);
    flagged.push({ path, why: { ...evidence, code: 'flagged', rank, weeks, leaving }, evidence, despite });
  }
  for (const path of state.only ?? []) {
    if (named.some((page) => page.path === path)) continue;
    const page = candidates.find((candidate) => candidate.path === path);
    const evidence = page ?? state.viewed?.get(path);
    const weeks = evidence && (candidates[0]?.weeks.length ?? 0);
    const isBeyondShare = page !== undefined && aboveFloor.includes(page);
    const hasEnough = evidence !== undefined && isEnough(reading(evidence));
    const why = whyNotConsidered(weeks, { isBeyondShare, hasEnough }, rules);
    leftOut.push({ path, why, evidence: evidence ?? NO_EVIDENCE });
  }
  return {
    flagged,
    leftOut,
    pairs,
    beyondShare: aboveFloor.length - considered.length,
    belowFloor: pages - aboveFloor.length,
  };
}

/** In automatic runs, chance decides if at least twice as many pages qualify as jobs are allowed. */
function pairsOf(
  qualifying: readonly Candidate[],
  { mode, experiment }: SelectionRules,
  { only, room: { count }, seed = '' }: SelectionState,
): Pair[] {
  const isExperiment = mode === 'apply' && experiment === 'pairs' && only === undefined;
  return isExperiment && qualifying.length >= 2 * count ? drawPairs(qualifying, count, seed) : [];
}

/** Why a page that a person named is not considered; `weeks` is undefined if it was not viewed in any. */
function whyNotConsidered(
  weeks: number | undefined,
  { isBeyondShare, hasEnough }: { readonly isBeyondShare: boolean; readonly hasEnough: boolean },
  { readingShare: share, minWeeklyViews: views }: SelectionRules,
): Reason {
  const words =
    weeks === undefined
      ? 'not viewed in the last eight full weeks'
      : weeks < MIN_WEEKS
        ? `the history has only ${counted(weeks, 'full week')}; ${MIN_WEEKS} are needed`
        : isBeyondShare
          ? `not among the pages that make up ${percent(share)} of all views (improve.readingShare)`
          : hasEnough
            ? 'lost more than three quarters of its usual views in the last full week'
            : `fewer than ${views} views a week (improve.minWeeklyViews)`;
  return { code: 'not-considered', words };
}

const reading = (page: Pick<Evidence, 'weekly_human' | 'weekly_ai'>): number =>
  page.weekly_human + page.weekly_ai;

/** The first pages, up to and including the one with which their views reach `target`. */
function firstCarrying(pages: readonly Candidate[], target: number): readonly Candidate[] {
  let carried = 0;
  const end = pages.findIndex((page) => (carried += reading(page)) >= target);
  return end === -1 ? pages : pages.slice(0, end + 1);
}

/** A page in the sitemap needs no further proof that it exists; any other must be viewed regularly. */
function objection(
  page: Candidate,
  isExcluded: boolean,
  { busy, reserved, isListed, only }: SelectionState,
): Reason | undefined {
  if (!isPlainPath(page.path)) return { code: 'not-plain' };
  if (isExcluded) return { code: 'excluded' };
  if (isListed !== undefined) {
    if (!isListed(page.path)) return { code: 'not-in-sitemap' };
  } else {
    if (page.days_viewed < MIN_DAYS_VIEWED) return { code: 'few-days', days: page.days_viewed };
    if (page.days_viewed_by_people < MIN_DAYS_VIEWED_BY_PEOPLE)
      return { code: 'few-days-by-people', days: page.days_viewed_by_people };
  }
  return busy.get(page.path) ?? (only === undefined ? reserved.get(page.path) : undefined);
}

const MAX_LENGTH = 200;

/**
 * Letters, digits and the marks that documentation sites use in paths; no spaces, quotes, braces or
 * percent codes.
 */
const PLAIN_PATH = /^(?:\/[A-Za-z0-9][A-Za-z0-9._~-]*)*\/?$/;

/**
 * Whether a path is a plain URL path of reasonable length. Anyone can visit a made-up address often
 * enough to have it counted, so a path is untrusted text: only a plain one may become part of a
 * prompt.
 */
export const isPlainPath = (path: string): boolean =>
  path.startsWith('/') && path.length <= MAX_LENGTH && PLAIN_PATH.test(path);
