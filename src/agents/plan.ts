import { UTCDateMini as UTCDate } from '@date-fns/utc/date/mini';
import { addHours, addWeeks, startOfISOWeek } from 'date-fns';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { addDays, type Day, dayOf } from '../day.js';
import { pageOf } from '../page.js';
import { type Job, readJobs } from '../state/jobs.js';
import { readSkips } from '../state/decisions.js';
import type { State } from '../state/state.js';
import { OPEN_STATES } from './lifecycle.js';
import { type Ranking, readRanking, type Variants } from './ranking.js';
import { type Reason, reasonOfSkip, type Room } from './reasons.js';
import { type Selection, selectPages } from './select.js';
import type { Reader } from '../history/duckdb.js';
import type { Sitemap } from './sitemap.js';

/**
 * What improving a project would do now. `waiting` are jobs planned earlier and not sent yet; they
 * go first.
 */
export interface ImprovePlan extends Selection {
  readonly waiting: readonly Job[];
  readonly variants: Variants;
  readonly skips: ReturnType<typeof skippedNow>;
  /** Full weeks of history behind the selection, at most 8. */
  readonly weeks: number;
  /** How many of them may be sent now. */
  readonly toSend: Room;
  /** How many may be planned now. */
  readonly toPlan: Room;
  /** The Monday (UTC) since which jobs count toward `maxJobsPerWeek`. */
  readonly week: Day;
  /** Jobs sent since then or waiting. */
  readonly plannedThisWeek: number;
  /** Jobs whose pull requests wait for review, oldest first. */
  readonly inReview: readonly Job[];
  readonly now: Date;
}

/** When a plan is made, and the only pages to flag or leave out; by default, all. */
export interface PlanOccasion {
  readonly now: Date;
  readonly only?: readonly string[];
}

/** Decides from what is stored which pages get a job. Sends and stores nothing. */
export function planImprovement(
  state: State,
  project: string,
  rules: Settings['improve'],
  { candidates, variants, isListed }: Ranking,
  { now, only }: PlanOccasion,
): ImprovePlan {
  const jobs = readJobs(state, project);
  const waiting = jobs.filter((job) => job.state === 'planned');
  const { week, plannedThisWeek, toPlan, toSend } = roomFor(jobs, rules, now);
  const skips = skippedNow(state, project, now);
  const skipped = skips.map(({ path, why }) => [path, why] as const);
  const selection = selectPages(candidates, rules, {
    busy: new Map([...skipped, ...busyPages(jobs, rules, now)]),
    rejected: rejectedPages(jobs),
    variants,
    isListed,
    only,
    room: toPlan.count,
  });
  const inReview = jobs.filter(isInReview);
  const weeks = candidates[0]?.weeks.length ?? 0;
  return {
    ...selection,
    variants,
    waiting,
    toSend,
    toPlan,
    skips,
    weeks,
    week,
    plannedThisWeek,
    inReview,
    now,
  };
}

/** The pages that are skipped now, each with that as the reason. */
export const skippedNow = (state: State, project: string, now: Date) =>
  readSkips(state, project, now).map((skip) => ({ ...skip, why: reasonOfSkip(skip.skipped_until) }));

/** Whether its pull request waits for review, as far as is known. */
export const isInReview = ({ pr_link, merged_on, closed_on, merged_into, state }: Job): boolean =>
  pr_link !== null && merged_on === null && closed_on === null && merged_into === null && state !== 'active';

/**
 * How many jobs may be planned now, and how many of those that wait may be sent: limits may have been lowered since
 * they were planned, and a job counts toward the week (UTC) in which it is sent.
 */
export function roomFor(jobs: readonly Job[], rules: Settings['improve'], now: Date) {
  const monday = startOfISOWeek(new UTCDate(now));
  const isThisWeek = (at: Date) => at >= monday && at < addWeeks(monday, 1);
  const waiting = jobs.filter(({ state }) => state === 'planned').length;
  const sent = jobs.filter(({ state }) => state !== 'planned' && state !== 'refused');
  const sentInWeek = sent.filter(({ submitted_at, planned_at }) =>
    isThisWeek(submitted_at ?? planned_at),
  ).length;
  const open = sent.filter((job) => OPEN_STATES.has(job.state) || isInReview(job)).length;
  const roomBeside = (others: number) =>
    roomLeft(rules, { maxJobsPerWeek: sentInWeek + others, maxOpenPullRequests: open + others });
  return {
    week: dayOf(monday),
    plannedThisWeek: sentInWeek + waiting,
    toPlan: roomBeside(waiting),
    toSend: roomBeside(0),
  };
}

/**
 * The limit that a planned job waits for; undefined if it may be sent now, or was sent. Jobs are sent in the order in
 * which they were planned.
 */
export function awaitedRoom(
  jobs: readonly Job[],
  rules: Settings['improve'],
  job: number,
  now: Date,
): Room | undefined {
  const { toSend } = roomFor(jobs, rules, now);
  const waiting = jobs.filter(
    ({ state, is_approved }) => state === 'planned' && (is_approved || rules.mode === 'apply'),
  );
  return waiting.findIndex(({ id }) => id === job) < toSend.count ? undefined : toSend;
}

/** How many new jobs are allowed with those that count toward each limit. */
function roomLeft(rules: Settings['improve'], used: Readonly<Record<Room['setting'], number>>): Room {
  const roomBy = (setting: Room['setting']): Room => ({
    count: Math.max(0, rules[setting] - used[setting]),
    setting,
    limit: rules[setting],
  });
  const [week, review] = [roomBy('maxJobsPerWeek'), roomBy('maxOpenPullRequests')];
  return review.count < week.count ? review : week;
}

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
  { cooldownDays }: Settings['improve'],
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

/** The pages of a project that are flagged or up next now; undefined if that cannot be known. */
export type SelectNow = (
  project: Pick<ProjectSettings, 'id' | 'siteUrl'>,
) => Promise<CurrentSelection | undefined>;
export type CurrentSelection = Pick<Selection, 'flagged' | 'next'>;

interface SelectionSources {
  readonly reader: Reader;
  readonly state: State;
  readonly rules: Settings['improve'];
  readonly now: Date;
  readonly signal: AbortSignal;
}

/** Selects them as `readership improve` does. The sitemap is read once, when it is first needed. */
export function selectingNow({ reader, state, rules, now, signal }: SelectionSources): SelectNow {
  let sitemap: Promise<Sitemap | undefined> | undefined;
  return async (project) => {
    // It needs the HTTP client, which takes long to load, and which other reports do without.
    const { readSitemap, SitemapError } = await import('./sitemap.js');
    try {
      sitemap ??= readSitemap(rules.sitemap, signal);
      const ranking = await readRanking(reader, project, rules, { sitemap: await sitemap, now });
      return planImprovement(state, project.id, rules, ranking, { now });
    } catch (error) {
      // The improve step says what is wrong with it.
      if (error instanceof SitemapError) return undefined;
      throw error;
    }
  };
}
