import { addMilliseconds, subHours } from 'date-fns';
import type { Client } from '../api/client.js';
import { recordedUse, RollingHour } from '../api/hour.js';
import { type AgentJob, LIMITS } from '../api/schema.js';
import type { Departure, EffectsJournal } from '../effects/journal.js';
import { messageOf, ReadershipError } from '../errors.js';
import { nextMinute } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { withGrace } from '../sleep.js';
import { type Reader, readSql } from '../warehouse/query.js';
import { intentOf, sentAs } from './intents.js';
import { isRemoteJob, type Job, readJobs } from './job.js';
import type { JobsTask } from './ledger.js';
import { outcomeOf, pauseAfter, SHORTEST_POLL_DELAY_MS } from './lifecycle.js';
import { changePrompt, type Prompt, readPrompts } from './messages.js';

export interface SubmitTask extends JobsTask {
  readonly journal: EffectsJournal;
  readonly client: Pick<Client, 'createJob' | 'sendMessage'>;
  /** Called with each job after its prompt or message was sent, whatever the outcome. */
  readonly onJob?: (job: Job) => void;
}

/** How many prompts the platform accepted, and what stopped the rest. */
export interface SubmitOutcome {
  readonly sent: number;
  readonly stopped?: unknown;
}

type PromptKind = 'job' | 'message';

/**
 * Sends the planned jobs of a project, or the planned messages to them, one after another, each at most once,
 * within the hourly limit and outside pauses: the oldest, and no more than `most`. It stops at the first
 * failure, since the next prompt would probably fail too, and keeps the rest.
 */
export async function submitPrompts(
  task: SubmitTask,
  kind: PromptKind,
  most = Infinity,
): Promise<SubmitOutcome> {
  const { warehouse, journal, project, now, signal } = task;
  const prompts = (await readPrompts(warehouse, kind, project)).filter(isReady).slice(0, most);
  const refusal = prompts.length === 0 ? undefined : await journal.refusal();
  if (refusal !== undefined) return { sent: 0, stopped: refusal };
  for (const [sent, prompt] of prompts.entries()) {
    if (signal?.aborted) return { sent, stopped: signal.reason };
    const turn = await nextTurn(warehouse, project, now());
    if (turn !== undefined) return { sent, stopped: new TurnError(prompts.length - sent, turn, kind) };
    const { job, error } = await submit(task, prompt);
    task.onJob?.(job);
    if (error !== undefined) return { sent, stopped: error };
  }
  return { sent: prompts.length };
}

/** A message waits until its job is known to exist on the platform. */
const isReady = ({ job, message }: Prompt): boolean =>
  message === undefined ? job.state === 'planned' : message.state === 'planned' && isRemoteJob(job);

/**
 * Records the prompt in the journal and then in the database, before it is sent and again once its
 * outcome is known, so that it is never sent twice, whatever happens in between.
 */
async function submit(task: SubmitTask, prompt: Prompt): Promise<{ job: Job; error?: unknown }> {
  const { warehouse, journal, project, now } = task;
  const begun = now();
  let sending = prompt;
  const departure = await journal.depart(intentOf(prompt), begun, async () => {
    sending = await changePrompt(warehouse, prompt, {
      event: 'submit',
      now: begun,
      cause: 'about to be sent',
    });
  });
  let remote: AgentJob;
  try {
    remote = await post(task, prompt, departure);
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
    const { job } = await changePrompt(warehouse, sending, { event, now: ended, cause, note: cause });
    return { job, error };
  }
  const ended = now();
  await departure.ended(sentAs(remote), ended);
  const cause = prompt.message === undefined ? `created as ${remote.id}` : 'accepted by the platform';
  const nextPollAt = addMilliseconds(ended, SHORTEST_POLL_DELAY_MS);
  return changePrompt(warehouse, sending, { event: 'sent', now: ended, cause, remote, nextPollAt });
}

async function post(
  { client, warehouse, project, signal }: SubmitTask,
  { job, message }: Prompt,
  departure: Departure,
): Promise<AgentJob> {
  const late = signal && withGrace(signal);
  if (message !== undefined) {
    if (!isRemoteJob(job)) throw new Error(`job ${job.id} is not known to exist on the platform`);
    return client.sendMessage(job.remote_id, message.prompt, departure, late);
  }
  const remote = await client.createJob(job.prompt, departure, late);
  const other = (await readJobs(warehouse, project)).find(({ remote_id }) => remote_id === remote.id);
  if (other !== undefined)
    throw new SharedIdError(
      `Could not create the agent job: the platform answered with ${remote.id}, which is job ${other.id}.`,
    );
  return remote;
}

/** The platform answered a creation with the id of another job, so it is not known whether it created one. */
class SharedIdError extends ReadershipError {}

const RECENT_PROMPTS = readSql(import.meta.url, 'statements/recent-prompts.sql');
const RECORD_PAUSE = readSql(import.meta.url, 'statements/record-pause.sql');

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
  const parameters = { project, now, since: subHours(now, 2) };
  const hour = new RollingHour(await reader.query(RECENT_PROMPTS, recordedUse, parameters), now);
  const freeAt = hour.nextFreeAt(LIMITS.usesPerHour, now);
  const pausedUntil = hour.pausedUntil(now);
  if (pausedUntil !== undefined && pausedUntil >= freeAt)
    return { at: pausedUntil, why: 'the platform requested a pause' };
  if (freeAt <= now) return undefined;
  return { at: freeAt, why: `the limit of ${LIMITS.usesPerHour} prompts an hour has been reached` };
}

/** Jobs and messages are sent by different commands. */
const SENT_BY: Readonly<Record<PromptKind, string>> = {
  job: 'Send them then with readership improve --apply, or let the schedule do it if improve.mode is apply.',
  message: 'Send them then with readership jobs poll, or let the schedule do it.',
};

/** Prompts are left to send later: the hourly limit was reached, or the platform requested a pause. */
export class TurnError extends ReadershipError {
  override readonly exitCode = 75;
  override readonly resumeAt: Date;

  constructor(waiting: number, turn: Turn, kind: PromptKind) {
    super(
      `${counted(waiting, 'prompt')} not sent yet: ${turn.why}. The next can be sent from ${nextMinute(turn.at)}. ` +
        SENT_BY[kind],
    );
    this.resumeAt = turn.at;
  }
}
