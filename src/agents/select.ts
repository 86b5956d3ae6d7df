import picomatch from 'picomatch';
import type { Settings } from '../config/schema.js';
import { pagePattern } from '../page.js';
import { type Evidence, evidenceRow } from '../state/jobs.js';
import { type Lately, NO_EVIDENCE, type Reason } from './reasons.js';
import type { IsListed } from './sitemap.js';
import { sharedPath, type Variants, type Candidate } from './ranking.js';

/** What affects the selection besides views. */
interface SelectionState {
  /** Pages that have a job, recently had one, or are skipped. */
  readonly busy: ReadonlyMap<string, Reason>;
  /** Pages whose pull request was rejected: they get a job only if a person names them. */
  readonly rejected: ReadonlyMap<string, Reason>;
  /** Where the site has translations and versions: of a page in several, the most viewed one is the candidate. */
  readonly variants: Variants;
  /** Whether the site's sitemap lists a page; undefined without a sitemap. */
  readonly isListed: IsListed | undefined;
  /** The only pages to flag or leave out; undefined for all pages with enough views. */
  readonly only?: readonly string[] | undefined;
  /** How many pages may be flagged. */
  readonly room: number;
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

/** Each list is in the order of the ranking. */
export interface Selection {
  /** Chosen for jobs. */
  readonly flagged: readonly ConsideredPage[];
  /** Those that wait only for room. */
  readonly next: readonly ConsideredPage[];
  readonly leftOut: readonly ConsideredPage[];
  /** The number of pages below `minWeeklyViews`. */
  readonly belowMinimum: number;
}

/** Sustained traffic cannot be judged from fewer full weeks. */
export const MIN_WEEKS = 4;

/** A page visited only by a script, or in one burst, is not one that people rely on. */
const MIN_DAYS_VIEWED = 14;
const MIN_DAYS_VIEWED_BY_PEOPLE = 7;

/**
 * Chooses the first pages of the ranking that nothing speaks against, as many as there is room for.
 * `candidates` are in its order.
 */
export function selectPages(
  candidates: readonly Candidate[],
  rules: Settings['improve'],
  state: SelectionState,
): Selection {
  const { only, rejected, room } = state;
  const isKnownLongEnough = (candidates[0]?.weeks.length ?? 0) >= MIN_WEEKS;
  const ranking = isKnownLongEnough ? candidates.filter(({ has_enough }) => has_enough) : [];
  const considered = ranking.filter(({ path }) => only?.includes(path) !== false);
  const isExcluded = exclusion(rules.exclude);
  const unfit = new Map(ranking.map((page) => [page, flawOf(page, isExcluded(page.path), state)] as const));
  const variants = variantsOf(
    ranking.filter((page) => unfit.get(page) === undefined && !page.is_gone),
    state,
  );
  const objections = new Map(
    considered.map((page) => [page, unfit.get(page) ?? objection(page, variants, state)] as const),
  );
  const qualifying = considered.filter((page) => objections.get(page) === undefined);
  const ranked = (page: Candidate, code: 'flagged' | 'next'): ConsideredPage => {
    const { path, rank, all_pages: pages, weekly_human, weekly_ai, trend, weeks } = page;
    const lately = latelyOf(page);
    const why = { code, rank, pages, weekly_human, weekly_ai, trend, weeks: weeks.length, lately };
    return { path, why, evidence: page, despite: rejected.get(path) };
  };
  const tooFew: Reason = isKnownLongEnough
    ? { code: 'few-views', minimum: rules.minWeeklyViews }
    : { code: 'few-weeks' };
  const unknown = (only ?? []).filter((path) => considered.every((page) => page.path !== path));
  return {
    flagged: qualifying
      .slice(0, room)
      .map((page) => ({ ...ranked(page, 'flagged'), evidence: evidenceRow.parse(page) })),
    next: qualifying.slice(room).map((page) => ranked(page, 'next')),
    leftOut: [
      ...considered.flatMap((page): ConsideredPage[] => {
        const why = objections.get(page);
        return why === undefined ? [] : [{ path: page.path, why, evidence: page }];
      }),
      ...unknown.map((path): ConsideredPage => ({ path, why: tooFew, evidence: NO_EVIDENCE })),
    ],
    belowMinimum: (candidates[0]?.all_pages ?? 0) - candidates.filter(({ has_enough }) => has_enough).length,
  };
}

/** To picomatch alone, /**\/openapi.* does not cover /openapi.json. */
const exclusion = (patterns: readonly string[]): ((path: string) => boolean) =>
  picomatch(patterns.map(pagePattern).flatMap((pattern) => [pattern, pattern.replace('/**/', '/')]));

/** A page in the sitemap needs no further proof that it exists; any other must be viewed regularly. */
function flawOf(
  { path, days_viewed, days_viewed_by_people }: Candidate,
  isExcluded: boolean,
  { isListed }: SelectionState,
): Reason | undefined {
  if (!isPlainPath(path)) return { code: 'not-plain' };
  if (isExcluded) return { code: 'excluded' };
  if (isListed !== undefined) return isListed(path) ? undefined : { code: 'not-in-sitemap' };
  if (days_viewed < MIN_DAYS_VIEWED) return { code: 'few-days', days: days_viewed };
  if (days_viewed_by_people < MIN_DAYS_VIEWED_BY_PEOPLE)
    return { code: 'few-days-by-people', days: days_viewed_by_people };
  return undefined;
}

type VariantsOfPage = (path: string) => {
  /** The most viewed translation or version that may get a job. */
  readonly first: string | undefined;
  /** One that has a job, or had one a short time ago. */
  readonly busy: string | undefined;
};

function variantsOf(
  ranking: readonly Candidate[],
  { variants, busy, rejected, only }: SelectionState,
): VariantsOfPage {
  const shared = (path: string) => sharedPath(path, variants);
  const first = new Map(ranking.toReversed().map(({ path }) => [shared(path), path] as const));
  const withJob = [...(only === undefined ? rejected : []), ...busy].filter(
    ([, { code }]) => code !== 'skipped',
  );
  const busyByShared = new Map(withJob.map(([path]) => [shared(path), path] as const));
  return (path) => ({ first: first.get(shared(path)), busy: busyByShared.get(shared(path)) });
}

/** What speaks against a page without a flaw. */
function objection(
  page: Candidate,
  variants: VariantsOfPage,
  { busy, rejected, only }: SelectionState,
): Reason | undefined {
  const { path, is_gone } = page;
  const given = busy.get(path) ?? (only === undefined ? rejected.get(path) : undefined);
  if (given !== undefined) return given;
  if (is_gone) return { code: 'gone', lately: latelyOf(page) };
  const { first, busy: other } = variants(path);
  if (first !== undefined && first !== path) return { code: 'variant', of: first, has_job: false };
  return other === undefined || other === path ? undefined : { code: 'variant', of: other, has_job: true };
}

const latelyOf = (page: Candidate): Lately | null => {
  const { lately_days: days, lately_until: until, lately_views: views, lately_usual: usual } = page;
  return days === null || until === null || views === null || usual === null
    ? null
    : { days, until, views, usual };
};

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
