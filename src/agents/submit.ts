import { addMilliseconds, subHours } from 'date-fns';
import { z } from 'zod';
import type { Client } from '../api/client.js';
import { type AgentJob, LIMITS } from '../api/schema.js';
import { RollingHour } from '../budget/hour.js';
import { messageOf, ReadershipError } from '../errors.js';
import { moment } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { withGrace } from '../sleep.js';
import type { Departure, EffectsJournal } from '../warehouse/effects.js';
import { type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { EVENT_OF, jobIntent, sentAs } from './journal.js';
import { changeJob, type Job, readJobs } from './ledger.js';
import { type FailedOutcome, outcomeOf, pauseAfter } from './lifecycle.js';

export interface SubmitTask {
  readonly warehouse: Warehouse;
  readonly journal: EffectsJournal;
  readonly client: Pick<Client, 'createJob' | 'sendMessage'>;
  readonly project: string;
  readonly now: () => Date;
  readonly pollDelayMs: number;
  readonly signal?: AbortSignal;
  /** Called with each job after its prompt or message was sent, whatever the outcome. */
  readonly onJob?: (job: Job) => void;
}

/** A planned prompt and how to commit its outcome. `accepted` and `failed` return the updated job. */
export interface Intent {
  readonly begin: (now: Date) => Promise<Departure>;
  readonly post: (departure: Departure, signal: AbortSignal | undefined) => Promise<AgentJob>;
  readonly accepted: (remote: AgentJob, now: Date) => Promise<Job>;
  readonly failed: (outcome: FailedOutcome, words: string, now: Date) => Promise<Job>;
}

/** What was sent, and what stopped the rest. */
export interface SubmitOutcome {
  readonly submitted: readonly Job[];
  readonly stopped?: unknown;
}

/**
 * Sends planned prompts one after another, each at most once, within the hourly limit and outside pauses. It stops at
 * the first failure, since the next prompt would probably fail too, and keeps the rest.
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
 * Records the prompt in the journal and then in the database, before it is sent and again once its outcome is known, so
 * that it is never sent twice, whatever happens in between.
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

/** Creates the planned jobs of a project on the platform. */
export async function submitJobs(task: SubmitTask): Promise<SubmitOutcome> {
  const planned = (await readJobs(task.warehouse, task.project)).filter((job) => job.state === 'planned');
  return submitAll(
    task,
    'jobs',
    planned.map((job) => creationOf(task, job)),
  );
}

function creationOf({ warehouse, journal, client, pollDelayMs }: SubmitTask, planned: Job): Intent {
  let job = planned;
  return {
    begin: (now) =>
      journal.depart(jobIntent(job), now, async () => {
        job = await changeJob(warehouse, job, { event: { kind: 'submit' }, now, cause: 'about to be sent' });
      }),
    post: (departure, signal) => client.createJob(job.prompt, departure, signal),
    accepted: (remote, now) =>
      changeJob(warehouse, job, {
        event: { kind: 'accepted', status: remote.status },
        ...{ now, remote, cause: `created as ${remote.id}`, nextPollAt: addMilliseconds(now, pollDelayMs) },
      }),
    failed: (outcome, words, now) =>
      changeJob(warehouse, job, { event: { kind: outcome }, now, cause: words, note: words }),
  };
}

const USES_SINCE = readSql(import.meta.url, 'statements/uses-since.sql');
const PAUSED_UNTIL = readSql(import.meta.url, 'statements/paused-until.sql');
const RECORD_PAUSE = readSql(import.meta.url, 'statements/record-pause.sql');

const useRow = z.object({ changed_at: timestampColumn });
const pauseRow = z.object({ paused_until: timestampColumn.nullable() });

/** When the next prompt may be sent, and why not before. */
export interface Turn {
  readonly at: Date;
  readonly why: string;
}

/**
 * When a project's next prompt may be sent; undefined for now. Each intent is committed
 * before its prompt is sent, so the intents of the last hour are the prompts to count, including those of killed
 * processes.
 */
export async function nextTurn(reader: Reader, project: string, now: Date): Promise<Turn | undefined> {
  const uses = await reader.query(USES_SINCE, useRow, { project, since: subHours(now, 2) });
  const [pause] = await reader.query(PAUSED_UNTIL, pauseRow, { project });
  const rows = [
    ...uses.map(({ changed_at: used_at }) => ({ used_at, requests: 1, paused_until: null })),
    { used_at: now, requests: 0, paused_until: pause?.paused_until ?? null },
  ];
  const hour = new RollingHour(rows, now);
  const at = hour.nextFreeAt(LIMITS.usesPerHour, 1, now);
  if (at <= now) return undefined;
  const isPaused = at.getTime() === hour.pausedUntil(now)?.getTime();
  const limit = `the limit of ${LIMITS.usesPerHour} prompts an hour has been reached`;
  return { at, why: isPaused ? 'the platform requested a pause' : limit };
}

/** Stores a pause during which no process may send prompts to the platform. */
const pause = (
  warehouse: Warehouse,
  project: string,
  { now, until, cause }: { readonly now: Date; readonly until: Date; readonly cause: string },
): Promise<void> =>
  warehouse.transaction((transaction) => transaction.execute(RECORD_PAUSE, { project, now, until, cause }));

/** Jobs and messages are sent by different commands. */
type PromptKind = 'jobs' | 'messages';

const SENT_BY: Readonly<Record<PromptKind, string>> = {
  jobs: 'Send them then with readership improve --apply, or let the schedule do it if improve.mode is apply.',
  messages: 'Send them then with readership jobs poll, or let the schedule do it.',
};

/** Prompts are left to send later: the hourly limit was reached, or the platform requested a pause. */
export class TurnError extends ReadershipError {
  readonly exitCode = 75;
  override readonly resumeAt: Date;

  constructor(waiting: number, turn: Turn, kind: PromptKind) {
    super(
      `${counted(waiting, 'prompt')} not sent yet: ${turn.why}. The next can be sent from ${moment(addMilliseconds(turn.at, 59_999))}. ` +
        SENT_BY[kind],
    );
    this.resumeAt = turn.at;
  }
}
