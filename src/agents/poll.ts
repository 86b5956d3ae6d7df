import { addMilliseconds, max, min } from 'date-fns';
import type { Client } from '../api/client.js';
import { RefusedError } from '../api/errors.js';
import type { AgentJob } from '../api/schema.js';
import { ReadershipError } from '../errors.js';
import { sleepFor, timeLimit } from '../sleep.js';
import { type Job, readJob, readJobs } from '../state/jobs.js';
import { readMessages } from '../state/messages.js';
import { readLastRuns } from '../state/runs.js';
import type { State } from '../state/state.js';
import { changeJob, isRemoteJob, type JobsTask, type RemoteJob } from './jobs.js';
import { EARLIEST, nextPoll, pollDelayMs, SHORTEST_POLL_DELAY_MS } from './lifecycle.js';

export interface PollTask extends JobsTask {
  readonly client: Pick<Client, 'job'>;
  /** When to end, whatever the platform does, by `performance.now()`: clocks may be wrong, or be set. */
  readonly deadlineMs?: number | undefined;
  /** Whether to keep polling until then while jobs are active; by default each due job is polled once. */
  readonly keepsPolling?: boolean;
  /** Called with every job whose state or status changed, or whose poll failed. */
  readonly onChange?: (job: Job) => void;
}

/** A timer could not be set for much longer. */
const LONGEST_DEADLINE_MS = 24 * 60 * 60_000;

/**
 * Polls the jobs that are due. If the platform cannot answer now, the remaining polls wait as long as
 * it requests, or else the shortest delay. Returns the jobs that ended meanwhile, those still active,
 * and the errors of polls, whose jobs are polled again later.
 */
export async function pollJobs(given: PollTask) {
  const { deadlineMs = Infinity, signal, keepsPolling = false } = given;
  const leftMs = () => Math.min(LONGEST_DEADLINE_MS, Math.max(0, Math.ceil(deadlineMs - performance.now())));
  const deadline = deadlineMs === Infinity ? undefined : timeLimit(leftMs(), signal);
  const task = deadline ? { ...given, signal: deadline } : given;
  const isLate = () => deadline?.aborted === true && signal?.aborted !== true;
  const ended: Job[] = [];
  const errors: ReadershipError[] = [];
  for (;;) {
    const error = await pollDue(task, ended).catch((reason: unknown) => {
      if (!isLate()) throw reason;
      return undefined;
    });
    if (error !== undefined) errors.push(error);
    const stillActive = polledJobs(task).filter(isActive);
    const due = min(stillActive.map((job) => nextPoll(job, task.now())));
    const nextPollAt = max([due, answersAgainAt(task, error)]);
    const isOver = stillActive.length === 0 || !keepsPolling || isLate();
    const waitMs = Math.max(0, nextPollAt.getTime() - task.now().getTime());
    if (isOver || waitMs > leftMs()) return { ended, stillActive, errors };
    await sleepFor(waitMs, task.signal);
  }
}

/** Polls each job that is due once. Returns the last error. */
async function pollDue(task: PollTask, ended: Job[]): Promise<ReadershipError | undefined> {
  let error: ReadershipError | undefined;
  for (const job of polledJobs(task)) {
    if (nextPoll(job, task.now()) > task.now()) continue;
    task.signal?.throwIfAborted();
    const polled = await poll(task, job);
    if (polled.isChanged && polled.job.state !== 'active') ended.push(polled.job);
    error = polled.error ?? error;
    if (polled.error?.exitCode === 75) break;
  }
  return error;
}

const isActive = ({ state }: Job): boolean => state === 'active';

/** Whether it is active, or completed lately without a pull request. */
const isPolledStill = (job: Job): boolean => isActive(job) || job.next_poll_at !== null;

const polledJobs = ({ state, project }: PollTask): RemoteJob[] =>
  readJobs(state, project).filter(isRemoteJob).filter(isPolledStill);

/**
 * Whether anything is due to be polled or sent; planned jobs that no person approved count only with `sendsAll`. When no
 * job is active, a failed poll is repeated once: without a successful one, its failure would never end.
 */
export function isPollDue(state: State, sendsAll: boolean, now: Date): boolean {
  const jobs = readJobs(state, null);
  return (
    jobs.some((job) => job.state === 'planned' && (job.is_approved || sendsAll)) ||
    readMessages(state, null).some((message) => message.state === 'planned') ||
    jobs.some((job) => isPolledStill(job) && nextPoll(job, now) <= now) ||
    (!jobs.some(isActive) &&
      readLastRuns(state, now).some(({ step, outcome }) => step === 'poll' && outcome === 'failed'))
  );
}

async function poll(task: PollTask, job: RemoteJob) {
  const { state, now } = task;
  const { remote, failure } = await fetchJob(task, job);
  const regularAt = addMilliseconds(now(), pollDelayMs(job.polls));
  const nextPollAt = max([regularAt, answersAgainAt(task, failure)]);
  const after = await state.transaction(() => {
    const current = readJob(state, job.id);
    // A person may have settled it meanwhile.
    if (current?.state !== job.state || current.remote_id !== job.remote_id) return current ?? job;
    return changeJob(state, current, {
      event: 'polled',
      now: now(),
      nextPollAt,
      cause: `status on the platform: ${remote?.status ?? 'unknown'}`,
      note: isActive(job) ? (failure?.message ?? null) : null,
      remote,
    });
  });
  const isChanged =
    after.state !== job.state || after.remote_status !== job.remote_status || after.pr_link !== job.pr_link;
  if (isChanged || (failure !== undefined && isActive(job))) task.onChange?.(after);
  // Of a completed job, only the link may be missing; a pause concerns the other jobs too.
  const error = isActive(job) || failure?.exitCode === 75 ? failure : undefined;
  return { job: after, error, isChanged };
}

/** Whether the platform says that it does not have what was requested. */
export const isGone = (error: unknown): error is RefusedError =>
  error instanceof RefusedError && [404, 410].includes(error.status);

/** The platform does not know the job. That alone does not end it, since the error may be temporary. */
export class UnknownJobError extends ReadershipError {}

async function fetchJob(
  { client, signal }: PollTask,
  { id, remote_id }: RemoteJob,
): Promise<{ readonly remote?: AgentJob; readonly failure?: ReadershipError }> {
  try {
    return { remote: await client.job(remote_id, signal) };
  } catch (cause) {
    if (!(cause instanceof ReadershipError)) throw cause;
    if (!isGone(cause)) return { failure: cause };
    const words = `${cause.message} If job ${id} was deleted on the platform: readership jobs settle ${id} --ended`;
    return { failure: new UnknownJobError(words, { cause }) };
  }
}

/** When to poll again after an error: not before the platform wants requests. */
const answersAgainAt = ({ now }: Pick<PollTask, 'now'>, error: ReadershipError | undefined): Date =>
  error?.exitCode === 75
    ? max([error.resumeAt ?? EARLIEST, addMilliseconds(now(), SHORTEST_POLL_DELAY_MS)])
    : EARLIEST;
