import { addMilliseconds, max, min } from 'date-fns';
import type { Client } from '../api/client.js';
import { RefusedError } from '../api/errors.js';
import { LONGEST_WAIT_MS } from '../api/http-date.js';
import type { AgentJob } from '../api/schema.js';
import { ReadershipError } from '../errors.js';
import { sleepFor } from '../sleep.js';
import { changeJob, isRemoteJob, type Job, type ProjectTask, readJobs, type RemoteJob } from './ledger.js';
import { EARLIEST, nextPoll, pollDelayMs, SHORTEST_POLL_DELAY_MS } from './lifecycle.js';

export interface PollTask extends ProjectTask {
  readonly client: Pick<Client, 'job'>;
  /** When to end, whatever the platform does, by `performance.now()`: clocks may be wrong, or be set. */
  readonly deadlineMs?: number | undefined;
  /** Whether to keep polling until then while jobs are active; by default each due job is polled once. */
  readonly keepsPolling?: boolean;
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
 * Polls the jobs that are due. If the platform cannot answer now, the remaining polls wait as long as
 * it requests, or else the shortest delay.
 */
export async function pollJobs(given: PollTask): Promise<PollOutcome> {
  const { deadlineMs = Infinity, signal, keepsPolling = false } = given;
  const leftMs = () => Math.min(LONGEST_WAIT_MS, Math.max(0, Math.ceil(deadlineMs - performance.now())));
  const late = deadlineMs === Infinity ? undefined : AbortSignal.timeout(leftMs());
  const task = { ...given, signal: AbortSignal.any([signal, late].filter((one) => one !== undefined)) };
  const ended: Job[] = [];
  const errors: ReadershipError[] = [];
  for (;;) {
    const error = await pollDue(task, ended).catch((reason: unknown) => {
      if (late?.aborted !== true || signal?.aborted === true) throw reason;
      return undefined;
    });
    if (error !== undefined) errors.push(error);
    const stillActive = await activeJobs(task);
    const due = min(stillActive.map((job) => nextPoll(job, task.now())));
    const nextPollAt = max([due, answersAgainAt(task, error)]);
    const isOver = stillActive.length === 0 || !keepsPolling || late?.aborted === true;
    const waitMs = Math.max(0, nextPollAt.getTime() - task.now().getTime());
    if (isOver || waitMs > leftMs()) return { ended, stillActive, errors };
    await sleepFor(waitMs, task.signal);
  }
}

/** Polls each job that is due once. Returns the last error. */
async function pollDue(task: PollTask, ended: Job[]): Promise<ReadershipError | undefined> {
  let error: ReadershipError | undefined;
  for (const job of await activeJobs(task)) {
    if (nextPoll(job, task.now()) > task.now()) continue;
    task.signal?.throwIfAborted();
    const polled = await poll(task, job);
    if (polled.job.state !== 'active') ended.push(polled.job);
    error = polled.error ?? error;
    if (polled.error?.exitCode === 75) break;
  }
  return error;
}

const activeJobs = async ({ warehouse, project }: PollTask): Promise<RemoteJob[]> =>
  (await readJobs(warehouse, project)).filter(isRemoteJob).filter((job) => job.state === 'active');

async function poll(task: PollTask, job: RemoteJob) {
  const { warehouse, now } = task;
  const answer = await ask(task, job);
  const error = answer instanceof ReadershipError ? answer : undefined;
  const regularAt = addMilliseconds(now(), pollDelayMs(job.polls));
  const nextPollAt = max([regularAt, answersAgainAt(task, error)]);
  const after = await changeJob(warehouse, job, {
    event: 'polled',
    now: now(),
    nextPollAt,
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

/** When to poll again after an error: not before the platform wants requests. */
const answersAgainAt = ({ now }: Pick<PollTask, 'now'>, error: ReadershipError | undefined): Date =>
  error?.exitCode === 75
    ? max([error.resumeAt ?? EARLIEST, addMilliseconds(now(), SHORTEST_POLL_DELAY_MS)])
    : EARLIEST;

/** The platform does not know the job. That alone does not end it, since the error may be temporary. */
class UnknownJobError extends ReadershipError {
  constructor(job: number, cause: RefusedError) {
    super(
      `${cause.message} If job ${job} was deleted on the platform, run: readership jobs resolve ${job} --gone`,
      { cause },
    );
  }
}
