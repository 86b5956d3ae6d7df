import { addMilliseconds, subHours } from 'date-fns';
import { z } from 'zod';
import type { Client } from '../api/client.js';
import { RollingHour } from '../api/hour.js';
import { type AgentJob, LIMITS } from '../api/schema.js';
import { messageOf, ReadershipError } from '../errors.js';
import { moment } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { withGrace } from '../sleep.js';
import type { Intent } from '../effects/entries.js';
import type { Departure, EffectsJournal } from '../effects/journal.js';
import { type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import { type Change, changeJob, isRemoteJob, type Job, type ProjectTask, readJobs } from './ledger.js';
import { type MessageEvent, outcomeOf, pauseAfter, SHORTEST_POLL_DELAY_MS } from './lifecycle.js';
import { changeMessage, readMessages, settleAsSent } from './messages.js';
import { jobIntent, messageIntent, sentAs } from './intents.js';

export interface SubmitTask extends ProjectTask {
  readonly journal: EffectsJournal;
  readonly client: Pick<Client, 'createJob' | 'sendMessage'>;
  /** Called with each job after its prompt or message was sent, whatever the outcome. */
  readonly onJob?: (job: Job) => void;
}

/** What was sent, and what stopped the rest. */
export interface SubmitOutcome {
  readonly submitted: readonly Job[];
  readonly stopped?: unknown;
}

/** A planned prompt: its journal record, how to send it, and how to store what happened to it. */
interface PlannedPrompt {
  readonly intent: Intent;
  readonly post: (departure: Departure, signal: AbortSignal | undefined) => Promise<AgentJob>;
  /** Both return the job, or the job of the message. */
  readonly accepted: (change: {
    event: 'sent';
    now: Date;
    remote: AgentJob;
    nextPollAt: Date;
  }) => Promise<Job>;
  readonly change: (change: Change<Exclude<MessageEvent, 'sent'>>) => Promise<Job>;
}

/** Creates the planned jobs of a project on the platform. */
export async function submitJobs(task: SubmitTask): Promise<SubmitOutcome> {
  const { warehouse, client, project } = task;
  const planned = (await readJobs(warehouse, project)).filter(({ state }) => state === 'planned');
  return submitAll(
    task,
    'jobs',
    planned.map((job): PlannedPrompt => {
      let latest: Job = job;
      const change = async (next: Parameters<typeof changeJob>[2]) =>
        (latest = await changeJob(warehouse, latest, next));
      return {
        intent: jobIntent(job),
        post: async (departure, signal) => {
          const remote = await client.createJob(job.prompt, departure, signal);
          const other = (await readJobs(warehouse, project)).find(({ remote_id }) => remote_id === remote.id);
          if (other !== undefined) throw new SharedIdError(remote, other);
          return remote;
        },
        accepted: (next) => change({ ...next, cause: `created as ${next.remote.id}` }),
        change,
      };
    }),
  );
}

/** The platform answered a creation with the id of another job, so it is not known whether it created one. */
class SharedIdError extends ReadershipError {
  readonly exitCode = 1;

  constructor({ id: remoteId }: AgentJob, { id }: Job) {
    super(`Could not create the agent job: the platform answered with ${remoteId}, which is job ${id}.`);
  }
}

/** Sends the planned follow-up messages of a project. */
export async function submitMessages(task: SubmitTask): Promise<SubmitOutcome> {
  const { warehouse, client, project } = task;
  const jobs = (await readJobs(warehouse, project)).filter(isRemoteJob);
  const planned = (await readMessages(warehouse, project)).filter(({ state }) => state === 'planned');
  return submitAll(
    task,
    'messages',
    planned.flatMap((message): PlannedPrompt[] => {
      const job = jobs.find(({ id }) => id === message.job);
      if (job === undefined) return [];
      let latest = message;
      return [
        {
          intent: messageIntent(message),
          post: (departure, signal) => client.sendMessage(job.remote_id, message.prompt, departure, signal),
          accepted: (next) =>
            settleAsSent(warehouse, latest, job, { ...next, cause: 'accepted by the platform' }),
          change: async (next) => {
            latest = await changeMessage(warehouse, latest, next);
            return job;
          },
        },
      ];
    }),
  );
}

/**
 * Sends planned prompts one after another, each at most once, within the hourly limit and outside
 * pauses. It stops at the first failure, since the next prompt would probably fail too, and keeps
 * the rest.
 */
async function submitAll(
  task: SubmitTask,
  kind: PromptKind,
  prompts: readonly PlannedPrompt[],
): Promise<SubmitOutcome> {
  const submitted: Job[] = [];
  const refusal = prompts.length === 0 ? undefined : await task.journal.refusal();
  if (refusal !== undefined) return { submitted, stopped: refusal };
  for (const [index, prompt] of prompts.entries()) {
    if (task.signal?.aborted) return { submitted, stopped: task.signal.reason };
    const turn = await nextTurn(task.warehouse, task.project, task.now());
    if (turn !== undefined) return { submitted, stopped: new TurnError(prompts.length - index, turn, kind) };
    const { job, error } = await submit(task, prompt);
    submitted.push(job);
    task.onJob?.(job);
    if (error !== undefined) return { submitted, stopped: error };
  }
  return { submitted };
}

/**
 * Records the prompt in the journal and then in the database, before it is sent and again once its
 * outcome is known, so that it is never sent twice, whatever happens in between.
 */
async function submit(
  { warehouse, journal, project, now, signal }: SubmitTask,
  { intent, post, accepted, change }: PlannedPrompt,
): Promise<{ job: Job; error?: unknown }> {
  const begun = now();
  const departure = await journal.depart(intent, begun, () =>
    change({ event: 'submit', now: begun, cause: 'about to be sent' }),
  );
  let remote: AgentJob;
  try {
    remote = await post(departure, signal && withGrace(signal));
  } catch (error) {
    const ended = now();
    const cause = messageOf(error);
    const event = outcomeOf(error);
    await departure.ended({ event, note: cause }, ended);
    const pauseMs = pauseAfter(error);
    if (pauseMs !== undefined) {
      const pause = { project, now: ended, until: addMilliseconds(ended, pauseMs), cause };
      await warehouse.transaction((transaction) => transaction.execute(RECORD_PAUSE, pause));
    }
    return { job: await change({ event, now: ended, cause, note: cause }), error };
  }
  const ended = now();
  await departure.ended(sentAs(remote), ended);
  const nextPollAt = addMilliseconds(ended, SHORTEST_POLL_DELAY_MS);
  return { job: await accepted({ event: 'sent', now: ended, remote, nextPollAt }) };
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
 * When a project's next prompt may be sent; undefined for now. Each intent is committed before its
 * prompt is sent, so the intents of the last hour are the prompts to count, including those of
 * killed processes.
 */
export async function nextTurn(reader: Reader, project: string, now: Date): Promise<Turn | undefined> {
  const uses = await reader.query(USES_SINCE, useRow, { project, since: subHours(now, 2) });
  const [pause] = await reader.query(PAUSED_UNTIL, pauseRow, { project, now });
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
