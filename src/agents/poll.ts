import { addMilliseconds } from 'date-fns';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '../api/client.js';
import type { AgentJob } from '../api/schema.js';
import { messageOf, ReadershipError } from '../errors.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { changeJob, type Job, readJobs } from './ledger.js';
import { pollDelayMs } from './lifecycle.js';

export interface PollTask {
  readonly warehouse: Warehouse;
  readonly client: Pick<Client, 'job'>;
  readonly project: string;
  readonly now: () => Date;
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
  /** How long to keep asking while jobs are active; 0 asks once for what is due. */
  readonly waitMs: number;
  readonly signal?: AbortSignal;
  /** Told of every job whose state or status changed. */
  readonly onChange?: (job: Job) => void;
}

/** What polling came to: the jobs that ended meanwhile, and those still going. */
export interface PollOutcome {
  readonly ended: readonly Job[];
  readonly stillActive: readonly Job[];
  /** Faults met on the way; the jobs concerned are asked for again later. */
  readonly faults: readonly ReadershipError[];
}

/** Asks the platform for the jobs that are due, until all have ended or `waitMs` are over. */
export async function pollJobs(task: PollTask): Promise<PollOutcome> {
  const deadline = addMilliseconds(task.now(), task.waitMs);
  const ended: Job[] = [];
  const faults: ReadershipError[] = [];
  for (;;) {
    const active = (await readJobs(task.warehouse, task.project)).filter((job) => job.state === 'active');
    const due = active.filter((job) => job.next_poll_at === null || job.next_poll_at <= task.now());
    for (const job of due) {
      task.signal?.throwIfAborted();
      const after = await poll(task, job, faults);
      if (after.state !== 'active') ended.push(after);
    }
    const stillActive = (await readJobs(task.warehouse, task.project)).filter(
      (job) => job.state === 'active',
    );
    const nextPollAt = earliest(stillActive);
    if (nextPollAt === undefined || nextPollAt > deadline) return { ended, stillActive, faults };
    await delay(Math.max(0, nextPollAt.getTime() - task.now().getTime()), undefined, {
      ...(task.signal ? { signal: task.signal } : {}),
    });
  }
}

async function poll(task: PollTask, job: Job, faults: ReadershipError[]): Promise<Job> {
  const { warehouse, minDelayMs, maxDelayMs, now } = task;
  const nextPollAt = addMilliseconds(now(), pollDelayMs(job.polls, minDelayMs, maxDelayMs));
  const answer = await ask(task, job);
  if (answer instanceof ReadershipError) {
    faults.push(answer);
    const event = { kind: 'polled', status: job.remote_status ?? 'unknown' } as const;
    const note = messageOf(answer);
    return changeJob(warehouse, job, { event, now: now(), cause: note, note, nextPollAt });
  }
  const after = await changeJob(warehouse, job, {
    event: { kind: 'polled', status: answer.status },
    now: now(),
    cause: `the platform says ${answer.status}`,
    remote: answer,
    nextPollAt,
  });
  if (after.state !== job.state || after.remote_status !== job.remote_status) task.onChange?.(after);
  return after;
}

async function ask({ client, signal }: PollTask, job: Job): Promise<AgentJob | ReadershipError> {
  try {
    return await client.job(job.remote_id ?? '', signal);
  } catch (error) {
    if (error instanceof ReadershipError) return error;
    throw error;
  }
}

function earliest(jobs: readonly Job[]): Date | undefined {
  const times = jobs.map((job) => job.next_poll_at?.getTime() ?? 0);
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}
