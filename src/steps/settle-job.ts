import { settlePrompt } from '../agents/intents.js';
import type { Job } from '../agents/job.js';
import { changeJob } from '../agents/ledger.js';
import { storeReview } from '../agents/merges.js';
import { openMessage } from '../agents/messages.js';
import { isGone, UnknownJobError } from '../agents/poll.js';
import { type Day, dayOf } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { longDay } from '../format/days.js';
import type { JobToChange } from './job-changes.js';

export const WAYS = ['merged', 'closed', 'ended', 'sent', 'notSent'] as const;

/** What a person knows of the end of a job, or of its last message if that is not settled. */
export interface JobFinding {
  readonly as: (typeof WAYS)[number];
  /** Of a merge; today by default. */
  readonly day?: Day | undefined;
  /** The id of a job that was sent; a message has none. */
  readonly remoteId?: string | undefined;
}

type Settled = Pick<JobToChange, 'job' | 'messages'>;

/** Whether it may have been sent; what was never tried cannot have been. */
const wasTried = ({ submitted_at }: Pick<Job, 'submitted_at'>): boolean => submitted_at !== null;

/** In which ways a job can be settled now; `sent` and `notSent` are about its message if that is open. */
export function waysToSettle({ job, messages }: Settled): JobFinding['as'][] {
  const { state, pr_link, merged_on, closed_on } = job;
  const open = openMessage(messages) ?? job;
  // Some platforms commit the work of a job without a pull request.
  const mayBeMerged = pr_link !== null || state === 'completed';
  const isReviewed = merged_on !== null || closed_on !== null;
  const isUnderWay = open !== job || ['planned', 'active', 'unconfirmed'].includes(state);
  const ways: Readonly<Record<JobFinding['as'], boolean>> = {
    merged: mayBeMerged,
    closed: pr_link !== null,
    ended: isUnderWay || isReviewed,
    sent: wasTried(open),
    notSent: open.state === 'unconfirmed',
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
export const settleFlags = (ways: readonly JobFinding['as'][]): string =>
  ways
    .map((way) => FLAGS[way])
    .join(', ')
    .replace(/, (?=[^,]+$)/, ' or ');

/**
 * Records what a person found out or decided, in the job's history too, and says what follows. Settling again changes
 * it. Throws a `ConfigurationError` if the job cannot be settled in this way.
 */
export function settleJob(found: JobToChange, finding: JobFinding): Promise<string> {
  const { job } = found;
  const ways = waysToSettle(found);
  const isNow = job.state === 'failed' ? 'failed' : `is ${job.state}`;
  if (!ways.includes(finding.as))
    throw new ConfigurationError(
      `Job ${job.id} ${isNow}${job.pr_link === null ? ' and has no pull request' : ''}. ` +
        (ways.length === 0 ? 'There is nothing to settle.' : `It can be settled with ${settleFlags(ways)}.`),
    );
  switch (finding.as) {
    case 'merged':
      return settleMerged(found, finding.day ?? dayOf(found.parts.session.now()));
    case 'closed':
      return settleClosed(found);
    case 'ended':
      return settleEnded(found);
    case 'sent':
      return finding.remoteId === undefined ? settleArrived(found) : settleSent(found, finding.remoteId);
    case 'notSent':
      return settleNotSent(found);
  }
}

const BY_HAND = 'settled by hand';

/** What the change is recorded in. */
const recordsOf = ({ store, effects, session }: JobToChange['parts']) => ({
  warehouse: store,
  journal: effects.journal,
  now: session.now,
});

async function settleMerged({ parts, job }: JobToChange, day: Day): Promise<string> {
  const today = dayOf(parts.session.now());
  if (day > today || day < dayOf(job.planned_at))
    throw new ConfigurationError(
      `Job ${job.id} cannot have been merged on ${day}: it was planned on ${dayOf(job.planned_at)}, and today is ${today} (UTC).`,
    );
  const cause = `${BY_HAND}: merged on ${longDay(day)}`;
  await storeReview(recordsOf(parts), job, { merged_on: day, closed_on: null, cause });
  return `Merged on ${longDay(day)}.`;
}

async function settleClosed({ parts, job }: JobToChange): Promise<string> {
  const review = { merged_on: null, closed_on: dayOf(parts.session.now()) };
  await storeReview(recordsOf(parts), job, { ...review, cause: `${BY_HAND}: closed without a merge` });
  return 'Closed without a merge. Its page gets another job only if you approve it.';
}

/** Of a message or job that was not sent, or may not have been: it is never sent. Of an active job: it is over. */
async function settleEnded({ parts, job, messages }: JobToChange): Promise<string> {
  const now = parts.session.now();
  const on = longDay(dayOf(now));
  const message = openMessage(messages);
  if (message !== undefined || job.state === 'planned' || job.state === 'unconfirmed') {
    const note = `ended by hand on ${on}`;
    await settlePrompt(
      recordsOf(parts),
      { job, message },
      { event: 'withdrawn', cause: `${BY_HAND}: ended`, note },
    );
    if (message !== undefined) return `The message to job ${job.id} is never sent.`;
    return `Job ${job.id} is never sent. Its page may be flagged again.`;
  }
  if (job.state === 'active') {
    const event = job.pr_link === null ? 'found-over' : 'found-pull-request';
    const note = `over; ended by hand on ${on}`;
    await changeJob(parts.store, job, { event, now, cause: `${BY_HAND}: ended`, note });
    return `Job ${job.id} is over, and is no longer polled.`;
  }
  await storeReview(recordsOf(parts), job, {
    merged_on: null,
    closed_on: null,
    cause: `${BY_HAND}: neither merged nor closed`,
  });
  return job.pr_link === null ? 'It is not merged.' : 'Its pull request waits for review again.';
}

/**
 * Checks the id on the platform first, because a mistyped one would be polled forever or belong to
 * another page.
 */
async function settleSent({ parts, project, job, jobs, messages }: JobToChange, id: string): Promise<string> {
  if (openMessage(messages) !== undefined)
    throw new ConfigurationError(
      `Job ${job.id} has a message that is not settled. Settle that first: readership jobs settle ${job.id} --sent, --not-sent or --ended`,
    );
  const other = jobs.find((one) => one.id !== job.id && one.remote_id === id);
  if (other !== undefined)
    throw new ConfigurationError(`${id} is already recorded as job ${other.id}. Nothing was changed.`);
  const remote = await parts.platform
    .clientOf(project)
    .job(id, parts.session.signal)
    .catch((error: unknown) => {
      if (!isGone(error)) throw error;
      const next = `If it was deleted there: readership jobs settle ${job.id} --ended`;
      throw new UnknownJobError(`${error.message} ${next}`, { cause: error });
    });
  const isOther = job.remote_id !== remote.id;
  if (isOther && (job.merged_on ?? job.closed_on) !== null)
    await storeReview(recordsOf(parts), job, {
      merged_on: null,
      closed_on: null,
      cause: `${BY_HAND}: another job there`,
    });
  const known = isOther
    ? { remote_id: null, remote_status: null, pr_link: null, merged_on: null, closed_on: null }
    : {};
  const cause = `${BY_HAND}: sent, as ${remote.id}`;
  await settlePrompt(recordsOf(parts), { job: { ...job, ...known } }, { event: 'found-sent', cause, remote });
  return `Job ${job.id} is ${remote.id} on the platform, and is polled again.`;
}

/** A message has no id of its own on the platform. */
async function settleArrived({ parts, job, messages }: JobToChange): Promise<string> {
  const message = openMessage(messages);
  if (message === undefined)
    throw new ConfigurationError(
      `Give the id of the job on the platform: readership jobs settle ${job.id} --sent REMOTE_ID`,
    );
  await settlePrompt(recordsOf(parts), { job, message }, { event: 'found-sent', cause: `${BY_HAND}: sent` });
  return `The message to job ${job.id} arrived, and the job is polled again.`;
}

async function settleNotSent({ parts, job, messages }: JobToChange): Promise<string> {
  const message = openMessage(messages);
  await settlePrompt(
    recordsOf(parts),
    { job, message },
    { event: 'found-not-sent', cause: `${BY_HAND}: not sent` },
  );
  return message === undefined
    ? `Job ${job.id} is planned again, and the next run that may create jobs sends it.`
    : `The message to job ${job.id} is planned again, and the next run sends it.`;
}
