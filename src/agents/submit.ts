import { addMilliseconds } from 'date-fns';
import type { Client } from '../api/client.js';
import { RefusedError } from '../api/errors/refused-error.js';
import { TryLaterError } from '../api/errors/try-later-error.js';
import type { AgentJob } from '../api/schema.js';
import { messageOf } from '../errors.js';
import { withGrace } from '../grace.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { changeJob, type Job, readJobs } from './ledger.js';

/** Refusals that are about the account, not the job: every other job would meet them as well. */
const ACCOUNT_STATUSES = new Set([401, 402, 403]);

/** What a failed creation means for the job, and whether the next one may still be tried. */
interface FailedCreation {
  readonly event: { readonly kind: 'not-done' | 'refused' | 'outcome-unknown' };
  readonly goOn: boolean;
}

/**
 * The one table of what a failure says about the outcome of a creation. Only what is known to come before the server
 * acted goes back to `planned`; anything ambiguous, our own faults included, is unknown and never sent again by itself.
 */
export function classifyFailure(error: unknown): FailedCreation {
  if (error instanceof TryLaterError && error.isKnownNotDone)
    return { event: { kind: 'not-done' }, goOn: false };
  if (error instanceof RefusedError)
    return ACCOUNT_STATUSES.has(error.status)
      ? { event: { kind: 'not-done' }, goOn: false }
      : { event: { kind: 'refused' }, goOn: true };
  return { event: { kind: 'outcome-unknown' }, goOn: false };
}

interface Fault {
  readonly goOn: boolean;
  readonly error: unknown;
}

export interface SubmitTask {
  readonly warehouse: Warehouse;
  readonly client: Pick<Client, 'createJob'>;
  readonly project: string;
  readonly now: () => Date;
  readonly pollDelayMs: number;
  readonly signal?: AbortSignal;
  readonly onJob?: (job: Job) => void;
}

/** What a submission did. `stopped` is the fault that kept the rest waiting. */
export interface SubmitOutcome {
  readonly submitted: readonly Job[];
  readonly stopped?: unknown;
}

/**
 * Marks jobs that a killed process left `submitting` as `unconfirmed`: their request may have arrived. Sound because
 * only the holder of the live database submits.
 */
export async function settleInterrupted(warehouse: Warehouse, project: string, now: Date): Promise<Job[]> {
  const jobs = await readJobs(warehouse, project);
  const interrupted = jobs.filter((job) => job.state === 'submitting');
  const cause = 'the process ended before the reply was recorded';
  return Promise.all(
    interrupted.map((job) =>
      changeJob(warehouse, job, { event: { kind: 'outcome-unknown' }, now, cause, note: cause }),
    ),
  );
}

/** Creates the planned jobs of a project on the platform, one after another, each sent at most once. */
export async function submitPlanned(task: SubmitTask): Promise<SubmitOutcome> {
  const planned = (await readJobs(task.warehouse, task.project)).filter((job) => job.state === 'planned');
  const submitted: Job[] = [];
  for (const job of planned) {
    if (task.signal?.aborted) return { submitted, stopped: task.signal.reason };
    const { job: after, fault } = await submit(task, job);
    submitted.push(after);
    task.onJob?.(after);
    if (fault !== undefined && !fault.goOn) return { submitted, stopped: fault.error };
  }
  return { submitted };
}

/** The intent is committed before anything is sent: whatever happens after that, the job is never taken for unsent. */
async function submit(task: SubmitTask, planned: Job): Promise<{ job: Job; fault?: Fault }> {
  const { warehouse, now } = task;
  const cause = 'intent recorded, then sent';
  const job = await changeJob(warehouse, planned, { event: { kind: 'submit' }, now: now(), cause });
  const answer = await create(task, job.prompt);
  if ('remote' in answer) {
    const { remote } = answer;
    const event = { kind: 'accepted', status: remote.status } as const;
    const nextPollAt = addMilliseconds(now(), task.pollDelayMs);
    const created = { event, now: now(), cause: `created as ${remote.id}`, remote, nextPollAt };
    return { job: await changeJob(warehouse, job, created) };
  }
  const { event, goOn } = classifyFailure(answer.error);
  const words = messageOf(answer.error);
  const after = await changeJob(warehouse, job, { event, now: now(), cause: words, note: words });
  return { job: after, fault: { goOn, error: answer.error } };
}

async function create(
  { client, signal }: SubmitTask,
  prompt: string,
): Promise<{ remote: AgentJob } | { error: unknown }> {
  try {
    return { remote: await client.createJob(prompt, signal && withGrace(signal)) };
  } catch (error) {
    return { error };
  }
}
