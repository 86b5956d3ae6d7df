import { addMilliseconds, max, min } from 'date-fns';
import type { Client } from '../api/client.js';
import { RefusedError, TryLaterError } from '../api/errors.js';
import type { AgentJob } from '../api/schema.js';
import { ReadershipError } from '../errors.js';
import { sleepFor } from '../sleep.js';
import { changeJob, isRemoteJob, type Job, type ProjectTask, readJobs, type RemoteJob } from './ledger.js';
import { pollDelayMs } from './lifecycle.js';

export interface PollTask extends ProjectTask {
  readonly client: Pick<Client, 'job'>;
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
  /** How long to keep polling while jobs are active; 0 polls each due job once. */
  readonly waitMs: number;
  /** Called with every job whose state or status changed, or whose poll failed. */
  readonly onChange?: (job: Job) => void;
}

/** The jobs that ended while they were polled, and those still active. */
interface PollOutcome {
  readonly ended: readonly Job[];
  readonly stillActive: readonly Job[];
  /** Polls that failed; their jobs are polled again later. */
  readonly errors: readonly ReadershipError[];
}

/**
 * Polls the jobs that are due, until all have ended or `waitMs` has passed. If the platform cannot
 * answer now, the remaining polls wait as long as it requests, or else the shortest delay.
 */
export async function pollJobs(task: PollTask): Promise<PollOutcome> {
  const deadline = addMilliseconds(task.now(), task.waitMs);
  const ended: Job[] = [];
  const errors: ReadershipError[] = [];
  for (;;) {
    const error = await pollDue(task, ended);
    if (error !== undefined) errors.push(error);
    const stillActive = await activeJobs(task);
    const due = min(stillActive.map(({ next_poll_at }) => next_poll_at ?? EARLIEST));
    const nextPollAt = max([due, answersAgainAt(task, error)]);
    if (stillActive.length === 0 || nextPollAt > deadline) return { ended, stillActive, errors };
    await sleepFor(Math.max(0, nextPollAt.getTime() - task.now().getTime()), task.signal);
  }
}

const EARLIEST = new Date(0);

/** Polls each job that is due once. Returns the last error. */
async function pollDue(task: PollTask, ended: Job[]): Promise<ReadershipError | undefined> {
  let error: ReadershipError | undefined;
  for (const job of await activeJobs(task)) {
    if (job.next_poll_at !== null && job.next_poll_at > task.now()) continue;
    task.signal?.throwIfAborted();
    const polled = await poll(task, job);
    if (polled.job.state !== 'active') ended.push(polled.job);
    error = polled.error ?? error;
    if (polled.error instanceof TryLaterError) break;
  }
  return error;
}

const activeJobs = async ({ warehouse, project }: PollTask): Promise<RemoteJob[]> =>
  (await readJobs(warehouse, project)).filter(isRemoteJob).filter((job) => job.state === 'active');

async function poll(task: PollTask, job: RemoteJob) {
  const { warehouse, minDelayMs, maxDelayMs, now } = task;
  const nextPollAt = addMilliseconds(now(), pollDelayMs(job.polls, minDelayMs, maxDelayMs));
  const answer = await ask(task, job);
  const error = answer instanceof ReadershipError ? answer : undefined;
  const after = await changeJob(warehouse, job, {
    ...{ event: 'polled', now: now(), nextPollAt },
    ...(answer instanceof ReadershipError
      ? { cause: answer.message, note: answer.message }
      : { cause: `status on the platform: ${answer.status}`, remote: answer }),
  });
  const isChanged = after.state !== job.state || after.remote_status !== job.remote_status;
  if (isChanged || error !== undefined) task.onChange?.(after);
  return { job: after, error };
}

async function ask({ client, signal }: PollTask, job: RemoteJob): Promise<AgentJob | ReadershipError> {
  try {
    return await client.job(job.remote_id, signal);
  } catch (error) {
    if (error instanceof RefusedError && error.status === 404) return new UnknownJobError(job.id, error);
    if (error instanceof ReadershipError) return error;
    throw error;
  }
}

/** When to poll again after an error. */
const answersAgainAt = (task: PollTask, error: ReadershipError | undefined): Date =>
  error instanceof TryLaterError
    ? addMilliseconds(task.now(), Math.max(error.retryAfterMs ?? 0, task.minDelayMs))
    : EARLIEST;

/** The platform does not know the job. That alone does not end it, since the error may be temporary. */
class UnknownJobError extends ReadershipError {
  readonly exitCode = 1;

  constructor(job: number, cause: RefusedError) {
    super(
      `${cause.message} If job ${job} was deleted on the platform, run: readership jobs resolve ${job} --gone`,
      { cause },
    );
  }
}
