import { addHours } from 'date-fns';
import type { Settings } from '../config/schema.js';
import { addDays, dayOf } from '../day.js';
import { pageOf } from '../page.js';
import { type Job, readJobs } from '../state/jobs.js';
import { readSkips } from '../state/skips.js';
import type { State } from '../state/state.js';
import { readSql } from '../columns.js';
import type { Reader } from '../history/query.js';
import { reasonOfSkip } from './choices.js';
import { OPEN_STATES } from './lifecycle.js';
import type { Reason } from './reasons.js';
import { isInReview, type Room, roomFor, type RoomRules } from './room.js';
import {
  type Candidate,
  candidateRow,
  type Selection,
  type SelectionRules,
  type SelectionState,
  selectPages,
} from './select.js';

const CANDIDATES = readSql(import.meta.url, 'statements/candidates.sql');

/** The settings of the `improve` section that planning needs. */
export type PlanRules = SelectionRules & RoomRules & Pick<Settings['improve'], 'cooldownDays'>;

/**
 * What improving a project would do now. `waiting` are jobs planned earlier and not sent yet; they
 * go first.
 */
export interface ImprovePlan extends Selection {
  readonly waiting: readonly Job[];
  readonly skips: ReturnType<typeof skippedNow>;
  /** Full weeks of history behind the selection, at most 8. */
  readonly weeks: number;
  /** How many of them may be sent now. */
  readonly toSend: Room;
  /** How many may be planned now. */
  readonly toPlan: Room;
  /** Jobs sent since Monday (UTC) or waiting; they count toward `maxJobsPerWeek`. */
  readonly plannedThisWeek: number;
  /** Jobs whose pull requests wait for review, oldest first. */
  readonly inReview: readonly Job[];
  readonly now: Date;
}

/** The pages with enough views, the most viewed first. They are the same all day. */
export const readCandidates = (
  reader: Reader,
  project: string,
  { minWeeklyViews }: Pick<PlanRules, 'minWeeklyViews'>,
  now: Date,
): Promise<Candidate[]> => reader.query(CANDIDATES, candidateRow, { project, now, minWeeklyViews });

/** What a plan is made from: the views, and what was decided. */
export interface PlanStores {
  readonly reader: Reader;
  readonly state: State;
}

/** What a plan is made for. */
export type Occasion = Pick<SelectionState, 'isListed' | 'only'> & {
  readonly now: Date;
  /** If they were read before. */
  readonly candidates?: readonly Candidate[];
};

/** Decides from what is stored which pages get a job. Sends and stores nothing. */
export async function planImprovement(
  { reader, state }: PlanStores,
  project: string,
  rules: PlanRules,
  { candidates: known, ...occasion }: Occasion,
): Promise<ImprovePlan> {
  const candidates = known ?? (await readCandidates(reader, project, rules, occasion.now));
  return planFrom(state, project, rules, { candidates, ...occasion });
}

/** As `planImprovement`, from candidates that were read before, so that it can be part of a transaction. */
export function planFrom(
  state: State,
  project: string,
  rules: PlanRules,
  { now, isListed, only, candidates }: Occasion & { readonly candidates: readonly Candidate[] },
): ImprovePlan {
  const jobs = readJobs(state, project);
  const waiting = jobs.filter((job) => job.state === 'planned');
  const { plannedThisWeek, toPlan, toSend } = roomFor(jobs, rules, now);
  const skips = skippedNow(state, project, now);
  const skipped = skips.map(({ path, why }) => [path, why] as const);
  const inReview = jobs.filter(isInReview);
  const selection = selectPages(candidates, rules, {
    busy: new Map([...skipped, ...busyPages(jobs, rules, now)]),
    rejected: rejectedPages(jobs),
    isListed,
    only,
    room: toPlan,
  });
  const weeks = candidates[0]?.weeks.length ?? 0;
  return { ...selection, waiting, toSend, toPlan, skips, weeks, plannedThisWeek, inReview, now };
}

/** The pages that are skipped now, each with that as the reason. */
export const skippedNow = (state: State, project: string, now: Date) =>
  readSkips(state, project, now).map((skip) => ({ ...skip, why: reasonOfSkip(skip.skipped_until) }));

const isRejected = ({ merged_on, closed_on }: Job): boolean => closed_on !== null && merged_on === null;

/** A failed job says nothing about its page, so that waits only this long. */
const FAILED_COOLDOWN_DAYS = 7;

/**
 * Pages that get no job now: they have one or its pull request is open, or had one that ended less
 * than `cooldownDays` ago. A refused job does not count: if its cause is not fixed, the platform
 * will refuse again. For a rejected one, see `rejectedPages`.
 */
export function busyPages(
  jobs: readonly Job[],
  { cooldownDays }: Pick<PlanRules, 'cooldownDays'>,
  now: Date,
): Map<string, Reason> {
  const busy = new Map<string, Reason>();
  for (const job of jobs) {
    const { id, state } = job;
    // Jobs of 0.3 have the path that the platform sent.
    const page = pageOf(job.path);
    const ended_at = endOf(job, now);
    if (OPEN_STATES.has(state)) busy.set(page, { code: 'has-job', job: id, state });
    else if (isInReview(job))
      busy.set(page, { code: 'in-review', job: id, since: dayOf(ended_at ?? job.planned_at) });
    else if (isRejected(job) || state === 'refused' || ended_at === null) continue;
    else {
      const isFailed = state === 'failed';
      const ended = dayOf(ended_at);
      const until = addDays(ended, isFailed ? Math.min(cooldownDays, FAILED_COOLDOWN_DAYS) : cooldownDays);
      if (until > dayOf(now)) busy.set(page, { code: 'had-job', job: id, is_failed: isFailed, ended, until });
    }
  }
  return busy;
}

/** When a job ended, or else was planned: times in the future were stored by a clock that was ahead. */
const endOf = ({ ended_at, planned_at }: Job, now: Date): Date | null =>
  ended_at && ([ended_at, planned_at].find((at) => at <= addHours(now, 1)) ?? null);

/** Pages whose last pull request was rejected: only a person may choose them. */
export function rejectedPages(jobs: readonly Job[]): Map<string, Reason> {
  const rejected = new Map<string, Reason>();
  for (const job of jobs) {
    const { id, state, closed_on } = job;
    const page = pageOf(job.path);
    // Any later job means that a person approved it.
    if (state !== 'refused') rejected.delete(page);
    if (isRejected(job) && closed_on !== null)
      rejected.set(page, { code: 'rejected', job: id, on: closed_on });
  }
  return rejected;
}
