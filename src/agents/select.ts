import picomatch from 'picomatch';
import { z } from 'zod';
import { percent } from '../format/numbers.js';
import { dayColumn } from '../warehouse/query.js';
import type { FlagReason, Reason } from './reasons.js';
import type { IsListed } from './sitemap.js';

/** What is known of a page over the last whole weeks: see `statements/candidates.sql`. */
export interface Candidate extends Evidence {
  readonly path: string;
  readonly days_viewed: number;
  readonly days_viewed_by_people: number;
  /** Changes beside the middle page, if people leave the page while AI stays; null otherwise. */
  readonly leaving: FlagReason['leaving'];
}

/** Rules by which pages are chosen: the `improve` section of the configuration. */
export interface SelectionRules {
  readonly minWeeklyViews: number;
  readonly readingShare: number;
  readonly humanWeight: number;
  readonly aiWeight: number;
  readonly exclude: readonly string[];
}

/** What decides about a page, besides how it is read. */
export interface SelectionState {
  /** Pages that have a job, recently had one, or are skipped. */
  readonly busy: ReadonlyMap<string, Reason>;
  /** Whether the site's sitemap lists a page; undefined without a sitemap. */
  readonly isListed: IsListed | undefined;
  /** The only pages to flag or leave out; undefined for all that are read enough. */
  readonly only?: readonly string[] | undefined;
  /** How many pages may be flagged, and by which limit. */
  readonly room: { readonly count: number; readonly limit: Reason };
}

/** A page chosen for a job. */
export interface FlaggedPage {
  readonly path: string;
  readonly why: FlagReason;
  readonly evidence: Evidence;
}

/** A page that is read enough but was left out. */
export interface LeftOutPage {
  readonly path: string;
  readonly why: Reason;
  readonly evidence: Evidence;
}

export interface Selection {
  readonly flagged: readonly FlaggedPage[];
  readonly leftOut: readonly LeftOutPage[];
  /** Pages read enough, but beyond those that carry `readingShare` of all reading. */
  readonly beyondShare: number;
  /** Pages below `minWeeklyViews`. */
  readonly belowFloor: number;
}

/** Fewer whole weeks than this say nothing about sustained reading. */
export const MIN_WEEKS = 4;

/** A page nobody but a script visits, or that was hit in one burst, is not a page that people rely on. */
const MIN_DAYS_VIEWED = 14;
const MIN_DAYS_VIEWED_BY_PEOPLE = 7;

/**
 * Chooses as many pages as there is room for, none below the floor: first those that people leave while AI stays, then
 * those with the most sustained reading, which together carry `readingShare` of it.
 */
export function selectPages(
  candidates: readonly Candidate[],
  rules: SelectionRules,
  state: SelectionState,
): Selection {
  const seen = candidates.filter(({ weeks }) => weeks.length >= MIN_WEEKS);
  const reading = (page: Candidate) =>
    page.weekly_human * rules.humanWeight + page.weekly_ai * rules.aiWeight;
  const ranked = seen.sort((one, other) => reading(other) - reading(one) || (one.path < other.path ? -1 : 1));
  const aboveFloor = ranked.filter((page) => reading(page) > 0 && reading(page) >= rules.minWeeklyViews);
  const carrying = firstCarrying(aboveFloor, reading, rules.readingShare * sum(ranked.map(reading)));
  const leaving = aboveFloor.filter((page) => page.leaving !== null);
  const considered = [...new Set([...leaving, ...carrying])];
  const isExcluded = picomatch([...rules.exclude]);
  const flagged: FlaggedPage[] = [];
  const leftOut: LeftOutPage[] = [];
  for (const page of considered) {
    const { path } = page;
    if (state.only?.includes(path) === false) continue;
    const evidence = evidenceOf(page);
    const why = objection(page, isExcluded(path), state);
    if (why !== undefined) leftOut.push({ path, why, evidence });
    else if (flagged.length >= state.room.count) leftOut.push({ path, why: state.room.limit, evidence });
    else {
      const facts = {
        rank: aboveFloor.indexOf(page) + 1,
        weeks: evidence.weeks.length,
        leaving: page.leaving,
      };
      flagged.push({ path, why: { ...evidence, ...facts, code: 'flagged' }, evidence });
    }
  }
  for (const path of state.only ?? []) {
    if (considered.some((page) => page.path === path)) continue;
    const page = candidates.find((candidate) => candidate.path === path);
    leftOut.push({ path, why: whyNotConsidered(page, aboveFloor, rules), evidence: page ?? NO_EVIDENCE });
  }
  return {
    flagged,
    leftOut,
    beyondShare: aboveFloor.length - considered.length,
    belowFloor: ranked.length - aboveFloor.length,
  };
}

function whyNotConsidered(
  page: Candidate | undefined,
  aboveFloor: readonly Candidate[],
  { readingShare: share, minWeeklyViews: views }: SelectionRules,
): Reason {
  const notConsidered = (words: string): Reason => ({ code: 'not-considered', words });
  if (page === undefined) return notConsidered('not viewed in the last eight full weeks');
  const weeks = page.weeks.length;
  if (weeks < MIN_WEEKS)
    return notConsidered(`there are ${weeks} full weeks of history, and ${MIN_WEEKS} are needed`);
  return notConsidered(
    aboveFloor.includes(page)
      ? `beyond the pages with ${percent(share)} of all reading (improve.readingShare)`
      : `read fewer than ${views} times a week (improve.minWeeklyViews)`,
  );
}

function evidenceOf(page: Candidate): Evidence {
  const { weekly_human, weekly_ai, human_rank, ai_rank, ai_per_human, trend, weeks } = page;
  return { weekly_human, weekly_ai, human_rank, ai_rank, ai_per_human, trend, weeks };
}

/** The first pages, up to and including the one with which they carry `target`. */
function firstCarrying<Page>(
  pages: readonly Page[],
  reading: (page: Page) => number,
  target: number,
): readonly Page[] {
  let carried = 0;
  const end = pages.findIndex((page) => (carried += reading(page)) >= target);
  return end === -1 ? pages : pages.slice(0, end + 1);
}

/** A page that the site itself lists needs no further proof that it exists; any other must be seen to be relied on. */
function objection(
  page: Candidate,
  isExcluded: boolean,
  { busy, isListed }: SelectionState,
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
  return busy.get(page.path);
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** What speaks for a page, as stored with its job. Views are people's and AI's, over the last whole weeks, 8 at most. */
export const evidenceColumns = {
  /** Medians of a week. */
  weekly_human: z.number(),
  weekly_ai: z.number(),
  /** 1 is the most read page. */
  human_rank: z.int(),
  ai_rank: z.int(),
  /** Null without human views. */
  ai_per_human: z.number().nullable(),
  /** The newer half of the weeks against the older, as a ratio of change; null without views before. */
  trend: z.number().nullable(),
  /** Oldest first. */
  weeks: z.array(z.object({ week: dayColumn, human: z.int(), ai: z.int() })),
};
export const evidenceRow = z.object(evidenceColumns);
export type Evidence = z.infer<typeof evidenceRow>;

/** Of a job whose evidence was not kept. */
export const NO_EVIDENCE: Evidence = {
  ...{ weekly_human: 0, weekly_ai: 0, human_rank: 0, ai_rank: 0 },
  ...{ ai_per_human: null, trend: null, weeks: [] },
};

const MAX_LENGTH = 200;

/** Letters, digits and the marks that documentation sites use in paths; no spaces, quotes, braces or percent codes. */
const PLAIN_PATH = /^(?:\/[A-Za-z0-9][A-Za-z0-9._~-]*)*\/?$/;

/**
 * Whether a path is a plain URL path of sane length. Anyone can visit a made-up address often enough to have it
 * counted, so a path is untrusted text: only a plain one may become part of a prompt.
 */
export const isPlainPath = (path: string): boolean =>
  path.startsWith('/') && path.length <= MAX_LENGTH && PLAIN_PATH.test(path);
