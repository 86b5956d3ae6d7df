import picomatch from 'picomatch';
import { isPlainPath } from './paths.js';

/** What is known of a page over the last whole weeks: see `statements/candidates.sql`. */
export interface Candidate {
  readonly path: string;
  /** Median weekly views over those weeks; a week without a view counts as 0. */
  readonly human: number;
  readonly ai: number;
  readonly days_viewed: number;
  readonly days_viewed_by_people: number;
  readonly weeks: number;
}

/** Rules by which pages are chosen: the `improve` section of the configuration. */
export interface SelectionRules {
  readonly minWeeklyViews: number;
  readonly humanWeight: number;
  readonly aiWeight: number;
  readonly exclude: readonly string[];
}

/** A page chosen for a job, and why, in words. */
export interface FlaggedPage {
  readonly path: string;
  readonly reason: string;
}

/** A page that is read enough but was left out, and why, in words. */
interface LeftOutPage {
  readonly path: string;
  readonly why: string;
}

export interface Selection {
  readonly flagged: readonly FlaggedPage[];
  readonly leftOut: readonly LeftOutPage[];
}

/** Fewer whole weeks than this say nothing about sustained reading. */
export const MIN_WEEKS = 4;

/** A page nobody but a script visits, or that was hit in one burst, is not a page that people rely on. */
const MIN_DAYS_VIEWED = 14;
const MIN_DAYS_VIEWED_BY_PEOPLE = 7;

/**
 * Chooses the pages with the most sustained reading, best first, up to `places`. `busy` says of a page that has, or
 * lately had, a job of its own what stands in the way. Pages below the floor are neither flagged nor listed.
 */
export function selectPages(
  candidates: readonly Candidate[],
  busy: ReadonlyMap<string, string>,
  rules: SelectionRules,
  places: number,
): Selection {
  const isExcluded = picomatch([...rules.exclude]);
  const weight = ({ human, ai }: Candidate) => human * rules.humanWeight + ai * rules.aiWeight;
  const ranked = candidates
    .filter((candidate) => candidate.weeks >= MIN_WEEKS && weight(candidate) >= rules.minWeeklyViews)
    .sort((left, right) => weight(right) - weight(left) || (left.path < right.path ? -1 : 1));
  const flagged: FlaggedPage[] = [];
  const leftOut: LeftOutPage[] = [];
  for (const [index, candidate] of ranked.entries()) {
    const { path } = candidate;
    const why = objection(candidate, isExcluded(path), busy.get(path));
    if (why !== undefined) leftOut.push({ path, why });
    else if (flagged.length < places) flagged.push({ path, reason: reasonOf(candidate, index + 1) });
  }
  return { flagged, leftOut };
}

function objection(candidate: Candidate, isExcluded: boolean, busy: string | undefined): string | undefined {
  if (!isPlainPath(candidate.path)) return 'not a plain path, so it cannot be put into a prompt';
  if (isExcluded) return 'excluded by improve.exclude';
  if (candidate.days_viewed < MIN_DAYS_VIEWED) return `viewed on ${candidate.days_viewed} days only`;
  if (candidate.days_viewed_by_people < MIN_DAYS_VIEWED_BY_PEOPLE)
    return `viewed by people on ${candidate.days_viewed_by_people} days only`;
  return busy;
}

const reasonOf = ({ human, ai, weeks }: Candidate, rank: number): string =>
  `number ${rank} in sustained reading: ${count(human)} human and ${count(ai)} AI views in a median week of the last ${weeks}`;

const count = (views: number): string => Math.round(views).toLocaleString('en-US');
