import { addMilliseconds } from 'date-fns';
import type { Client } from '../api/client.js';
import type { AgentJob } from '../api/schema.js';
import { messageOf } from '../errors.js';
import { withGrace } from '../grace.js';
import type { Departure, EffectsJournal } from '../warehouse/effects.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { type FailedOutcome, outcomeOf, pauseAfter } from './failures.js';
import { EVENT_OF, sentAs } from './journal.js';
import type { Job } from './ledger.js';
import { nextTurn, pause } from './rate.js';
import { type PromptKind, TurnError } from './turn-error.js';

export interface SubmitTask {
  readonly warehouse: Warehouse;
  readonly journal: EffectsJournal;
  readonly client: Pick<Client, 'createJob' | 'sendMessage'>;
  readonly project: string;
  readonly now: () => Date;
  readonly pollDelayMs: number;
  readonly signal?: AbortSignal;
  /** Told of every job that was sent, or that a message was sent to, whatever came of it. */
  readonly onJob?: (job: Job) => void;
}

/** A planned prompt, and how its fate is committed. `accepted` and `failed` return the job as it is then. */
export interface Intent {
  readonly begin: (now: Date) => Promise<Departure>;
  readonly post: (departure: Departure, signal: AbortSignal | undefined) => Promise<AgentJob>;
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

/**
 * The journal first, then the database, before anything is sent and again when its outcome is known: whatever happens
 * in between, it is never taken for unsent.
 */
async function submit(task: SubmitTask, intent: Intent): Promise<{ job: Job; error?: unknown }> {
  const departure = await intent.begin(task.now());
  const answer = await post(intent, departure, task.signal);
  if ('remote' in answer) {
    await departure.ended(sentAs(answer.remote), task.now());
    return { job: await intent.accepted(answer.remote, task.now()) };
  }
  const { error } = answer;
  const cause = messageOf(error);
  const outcome = outcomeOf(error);
  const now = task.now();
  await departure.ended({ event: EVENT_OF[outcome], note: cause }, now);
  const pauseMs = pauseAfter(error);
  if (pauseMs !== undefined)
    await pause(task.warehouse, task.project, { now, until: addMilliseconds(now, pauseMs), cause });
  return { job: await intent.failed(outcome, cause, now), error };
}

async function post(
  intent: Intent,
  departure: Departure,
  signal: AbortSignal | undefined,
): Promise<{ remote: AgentJob } | { error: unknown }> {
  try {
    return { remote: await intent.post(departure, signal && withGrace(signal)) };
  } catch (error) {
    return { error };
  }
}
