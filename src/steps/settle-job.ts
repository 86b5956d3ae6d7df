import { changeJob, changePrompt, jobStateWords, openMessage } from '../agents/jobs.js';
import { storeReview } from '../agents/merges.js';
import { isGone, UnknownJobError } from '../agents/poll.js';
import type { AgentJob } from '../api/schema.js';
import type { ProjectSettings } from '../config/schema.js';
import { type Day, dayOf } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { longDay } from '../format/days.js';
import { type Job, readJobs } from '../state/jobs.js';
import type { JobMessage } from '../state/messages.js';
import type { State } from '../state/state.js';
import { findJob } from './job-messages.js';
import type { WorkspaceView } from './step.js';

export const WAYS = ['merged', 'closed', 'ended', 'sent', 'notSent'] as const;

/** What a person knows of the end of a job, or of its last message if that is not settled. */
export interface JobFinding {
  readonly as: (typeof WAYS)[number];
  /** Of a merge; today by default. */
  readonly day?: Day | undefined;
  /** The id of a job that was sent; a message has none. */
  readonly remoteId?: string | undefined;
}

interface Settled {
  readonly job: Job;
  readonly messages: readonly JobMessage[];
}

/** Whether it may have been sent; what was never tried cannot have been. */
const wasTried = ({ submitted_at }: Pick<Job, 'submitted_at'>): boolean => submitted_at !== null;

/** In which ways a job can be settled now; `sent` and `notSent` are about its message if that is open. */
export function waysToSettle({ job, messages }: Settled): JobFinding['as'][] {
  const { state, pr_link, merged_on, closed_on } = job;
  const open = openMessage(messages) ?? job;
  // Some platforms commit the work of a job without a pull request.
  const mayBeMerged = pr_link !== null || state === 'completed';
  const isReviewed = merged_on !== null || closed_on !== null;
  const isUnderWay = open !== job || ['planned', 'active', 'unknown'].includes(state);
  const ways: Readonly<Record<JobFinding['as'], boolean>> = {
    merged: mayBeMerged,
    closed: pr_link !== null,
    ended: isUnderWay || isReviewed,
    sent: wasTried(open),
    notSent: open.state === 'unknown',
  };
  return WAYS.filter((way) => ways[way]);
}

const FLAGS: Readonly<Record<JobFinding['as'], string>> = {
  merged: '--merged [DAY]',
  closed: '--closed',
  ended: '--ended',
  sent: '--sent REMOTE_ID',
  notSent: '--not-sent',
};

/** These ways as options of `jobs settle`. */
const settleFlags = (ways: readonly JobFinding['as'][]): string =>
  ways
    .map((way) => FLAGS[way])
    .join(', ')
    .replace(/, (?=[^,]+$)/, ' or ');

/** What a finding is recorded with. */
export interface SettleTask {
  readonly state: State;
  readonly workspace: Pick<WorkspaceView, 'projects'>;
  readonly now: () => Date;
  /** The job with an id on the platform. */
  readonly lookUp: (project: ProjectSettings, remoteId: string) => Promise<AgentJob>;
  /** The number of the last attempt to send the job, or its open message, when it was shown; by default, any. */
  readonly attempt?: number;
}

/**
 * Records what a person found out or decided, in the job's history too, and says what follows. Settlement again changes
 * it. Throws a `ConfigurationError` if the job cannot be settled in this way.
 */
export async function settleJob(task: SettleTask, id: number, finding: JobFinding): Promise<string> {
  const { state, workspace, now } = task;
  const remote =
    finding.as === 'sent' && finding.remoteId !== undefined
      ? await remoteJob(task, id, finding, finding.remoteId)
      : undefined;
  return state.transaction(() => {
    const found = findJob(state, workspace, id);
    expectWay(found, finding, task.attempt);
    const settling = { ...found, state, now: now() };
    switch (finding.as) {
      case 'merged':
        return settleMerged(settling, finding.day ?? dayOf(now()));
      case 'closed':
        return settleClosed(settling);
      case 'ended':
        return settleEnded(settling);
      case 'sent':
        return remote === undefined ? settleArrived(settling) : settleSent(settling, remote);
      case 'notSent':
        return settleNotSent(settling);
    }
  });
}

/** Throws a `ConfigurationError` if a job cannot be settled in this way, or was sent again after it was shown. */
function expectWay(found: Settled, finding: JobFinding, attempt?: number): void {
  const { job, messages } = found;
  if (attempt !== undefined && ((openMessage(messages) ?? job).attempt ?? 0) !== attempt)
    throw new ConfigurationError(
      'Its outcome was recorded, or it was sent again, in the meantime. Reload the page.',
    );
  const ways = waysToSettle(found);
  if (!ways.includes(finding.as))
    throw new ConfigurationError(
      `Job ${job.id} ${jobStateWords(job)}${job.pr_link === null ? ' and has no pull request' : ''}. ` +
        (ways.length === 0
          ? 'There is no outcome to record.'
          : `Record its outcome with ${settleFlags(ways)}.`),
    );
}

/**
 * The job of an id on the platform, because a mistyped one would be polled forever or belong to another page.
 */
async function remoteJob(
  { state, workspace, lookUp, attempt }: SettleTask,
  id: number,
  finding: JobFinding,
  remoteId: string,
): Promise<AgentJob> {
  const found = findJob(state, workspace, id);
  expectWay(found, finding, attempt);
  expectFree(state, found, remoteId);
  return lookUp(found.project, remoteId).catch((error: unknown) => {
    if (!isGone(error)) throw error;
    const next = `If it was deleted there: readership jobs settle ${id} --ended`;
    throw new UnknownJobError(`${error.message} ${next}`, { cause: error });
  });
}

/** Throws a `ConfigurationError` if a job has a message to settle first, or if its id is that of another one. */
function expectFree(state: State, { job, messages }: Settled, remoteId: string): void {
  if (openMessage(messages) !== undefined)
    throw new ConfigurationError(
      `Job ${job.id} has a message with an unknown outcome, or not sent yet. Record its outcome first: readership jobs settle ${job.id} --sent, --not-sent or --ended`,
    );
  const other = readJobs(state, null).find((one) => one.id !== job.id && one.remote_id === remoteId);
  if (other !== undefined)
    throw new ConfigurationError(`${remoteId} is already recorded as job ${other.id}. Nothing was changed.`);
}

interface Settlement extends Settled {
  readonly state: State;
  readonly now: Date;
}

const BY_HAND = 'recorded by a person';

function settleMerged({ state, now, job }: Settlement, day: Day): string {
  const today = dayOf(now);
  if (day > today || day < dayOf(job.planned_at))
    throw new ConfigurationError(
      `Job ${job.id} cannot have been merged on ${day}: it was planned on ${dayOf(job.planned_at)}, and today is ${today} (UTC).`,
    );
  const cause = `${BY_HAND}: merged on ${longDay(day)}`;
  storeReview(state, job, { merged_on: day, closed_on: null, cause }, now);
  return `Merged on ${longDay(day)}.`;
}

function settleClosed({ state, now, job }: Settlement): string {
  const cause = `${BY_HAND}: closed without a merge`;
  storeReview(state, job, { merged_on: null, closed_on: dayOf(now), cause }, now);
  return 'Closed without a merge. Its page gets another job only if you approve it.';
}

/** Of a message or job that was not sent, or may not have been: it is never sent. Of an active job: it is over. */
function settleEnded({ state, now, job, messages }: Settlement): string {
  const on = longDay(dayOf(now));
  const message = openMessage(messages);
  const cause = `${BY_HAND}: ended`;
  if (message !== undefined || job.state === 'planned' || job.state === 'unknown') {
    const note = `ended by hand on ${on}`;
    changePrompt(state, { job, message }, { event: 'withdrawn', now, cause, note });
    if (message !== undefined) return `The message to job ${job.id} is never sent.`;
    return `Job ${job.id} is never sent. Its page may be flagged again.`;
  }
  if (job.state === 'active') {
    const event = job.pr_link === null ? 'found-over' : 'found-pull-request';
    changeJob(state, job, { event, now, cause, note: `over; ended by hand on ${on}` });
    return `Job ${job.id} is over, and is no longer polled.`;
  }
  const neither = `${BY_HAND}: neither merged nor closed`;
  storeReview(state, job, { merged_on: null, closed_on: null, cause: neither }, now);
  return job.pr_link === null ? 'It is not merged.' : 'Its pull request waits for review again.';
}

function settleSent(settling: Settlement, remote: AgentJob): string {
  const { state, now, job } = settling;
  expectFree(state, settling, remote.id);
  const isOther = job.remote_id !== remote.id;
  if (isOther && (job.merged_on ?? job.closed_on) !== null)
    storeReview(
      state,
      job,
      { merged_on: null, closed_on: null, cause: `${BY_HAND}: another job there` },
      now,
    );
  const known = isOther ? { ...job, remote_id: null, remote_status: null, pr_link: null } : job;
  changeJob(state, known, { event: 'found-sent', now, cause: `${BY_HAND}: sent, as ${remote.id}`, remote });
  return `Job ${job.id} is ${remote.id} on the platform, and is polled again.`;
}

/** A message has no id of its own on the platform. */
function settleArrived({ state, now, job, messages }: Settlement): string {
  const message = openMessage(messages);
  if (message === undefined)
    throw new ConfigurationError(
      `Give the id of the job on the platform: readership jobs settle ${job.id} --sent REMOTE_ID`,
    );
  changePrompt(state, { job, message }, { event: 'found-sent', now, cause: `${BY_HAND}: sent` });
  return `The message to job ${job.id} arrived, and the job is polled again.`;
}

function settleNotSent({ state, now, job, messages }: Settlement): string {
  const message = openMessage(messages);
  changePrompt(state, { job, message }, { event: 'found-not-sent', now, cause: `${BY_HAND}: not sent` });
  return message === undefined
    ? `Job ${job.id} is planned again, and the next run that may create jobs sends it.`
    : `The message to job ${job.id} is planned again, and the next run sends it.`;
}
