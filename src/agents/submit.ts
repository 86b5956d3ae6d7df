import { addMilliseconds } from 'date-fns';
import type { Client } from '../api/client.js';
import type { AgentJob } from '../api/schema.js';
import { messageOf } from '../errors.js';
import { withGrace } from '../grace.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { type FailedOutcome, outcomeOf, pauseAfter } from './failures.js';
import type { Job } from './ledger.js';
import { nextTurn, pause } from './rate.js';
import { type PromptKind, TurnError } from './turn-error.js';

export interface SubmitTask {
  readonly warehouse: Warehouse;
  readonly client: Pick<Client, 'createJob' | 'sendMessage'>;
  readonly project: string;
  readonly now: () => Date;
  readonly pollDelayMs: number;
  readonly signal?: AbortSignal;
  /** Told of every job that was sent, or that a message was sent to, whatever came of it. */
  readonly onJob?: (job: Job) => void;
}

/** A planned prompt, and how its fate is committed. Each of these is a transaction, and returns the job as it is then. */
export interface Intent {
  readonly begin: (now: Date) => Promise<void>;
  readonly post: (signal: AbortSignal | undefined) => Promise<AgentJob>;
  readonly accepted: (remote: AgentJob, now: Date) => Promise<Job>;
  readonly failed: (outcome: FailedOutcome, words: string, now: Date) => Promise<Job>;
}

/** What a submission did. `stopped` is what kept the rest waiting. */
export interface SubmitOutcome {
  readonly submitted: readonly Job[];
  readonly stopped?: unknown;
}

/**
 * Sends planned prompts one after another, each at most once, within the hourly limit and outside pauses. The first
 * failure stops it: what befell one is likely to befall the next, and the rest are kept.
 */
export async function submitAll(
  task: SubmitTask,
  kind: PromptKind,
  intents: readonly Intent[],
): Promise<SubmitOutcome> {
  const submitted: Job[] = [];
  for (const [index, intent] of intents.entries()) {
    if (task.signal?.aborted) return { submitted, stopped: task.signal.reason };
    const turn = await nextTurn(task.warehouse, task.project, task.now());
    if (turn !== undefined) return { submitted, stopped: new TurnError(intents.length - index, turn, kind) };
    const { job, error } = await submit(task, intent);
    submitted.push(job);
    task.onJob?.(job);
    if (error !== undefined) return { submitted, stopped: error };
  }
  return { submitted };
}

/** The intent is committed before anything is sent: whatever happens after that, it is never taken for unsent. */
async function submit(task: SubmitTask, intent: Intent): Promise<{ job: Job; error?: unknown }> {
  await intent.begin(task.now());
  const answer = await post(intent, task.signal);
  if ('remote' in answer) return { job: await intent.accepted(answer.remote, task.now()) };
  const { error } = answer;
  const cause = messageOf(error);
  const now = task.now();
  const pauseMs = pauseAfter(error);
  if (pauseMs !== undefined)
    await pause(task.warehouse, task.project, { now, until: addMilliseconds(now, pauseMs), cause });
  return { job: await intent.failed(outcomeOf(error), cause, now), error };
}

async function post(
  intent: Intent,
  signal: AbortSignal | undefined,
): Promise<{ remote: AgentJob } | { error: unknown }> {
  try {
    return { remote: await intent.post(signal && withGrace(signal)) };
  } catch (error) {
    return { error };
  }
}
