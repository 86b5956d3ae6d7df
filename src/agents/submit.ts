import { addMilliseconds } from 'date-fns';
import type { Client } from '../api/client.js';
import { RollingHour } from '../api/hour.js';
import { type AgentJob, LIMITS } from '../api/schema.js';
import { messageOf, ReadershipError } from '../errors.js';
import { nextMinute } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { withGrace } from '../sleep.js';
import { type Job, readJobs } from '../state/jobs.js';
import { readPromptPause, readSentPrompts, recordPromptPause } from '../state/messages.js';
import { type Attempt, type Sender, storeOutcome } from '../state/sender.js';
import type { State } from '../state/state.js';
import {
  changePrompt,
  currentPrompt,
  isRemoteJob,
  type JobChange,
  type JobsTask,
  type Prompt,
  readPrompts,
} from './jobs.js';
import {
  type MessageEvent,
  nextMessageState,
  nextState,
  outcomeOf,
  pauseAfter,
  SHORTEST_POLL_DELAY_MS,
} from './lifecycle.js';
import { roomFor } from './plan.js';
import type { Settings } from '../config/schema.js';

export interface SubmitTask extends JobsTask {
  readonly sender: Sender;
  readonly client: Pick<Client, 'createJob' | 'sendMessage'>;
  /** The limits on jobs. */
  readonly rules: Settings['improve'];
  /** Whether jobs that no person approved are sent as well. */
  readonly sendsAll: boolean;
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
 * Sends the planned jobs of a project, or the planned messages to them, one after another, the oldest first, each at
 * most once, within the hourly limit, the limits on jobs, and outside pauses. It stops at the first failure, since the
 * next prompt would probably fail too, and keeps the rest.
 */
export async function submitPrompts(task: SubmitTask, kind: PromptKind): Promise<SubmitOutcome> {
  const { state, sender, project, now, signal } = task;
  const room = kind === 'job' ? roomFor(readJobs(state, project), task.rules, now()).toSend.count : Infinity;
  const ready = readPrompts(state, kind, project)
    .filter((prompt) => isReady(task, prompt))
    .slice(0, room);
  const refusal = ready.length === 0 ? undefined : await sender.refusal();
  if (refusal !== undefined) return { sent: 0, stopped: refusal };
  let sent = 0;
  for (const [index, prompt] of ready.entries()) {
    if (signal?.aborted) return { sent, stopped: signal.reason };
    const limit = promptLimit(state, project, now());
    if (limit !== undefined)
      return { sent, stopped: new PromptLimitError(ready.length - index, limit, kind) };
    const submitted = await submit(task, prompt);
    // It was sent or settled by another process, or there is no room anymore.
    if (submitted === undefined) continue;
    task.onJob?.(submitted.job);
    if (submitted.error !== undefined) return { sent, stopped: submitted.error };
    sent += 1;
  }
  return { sent };
}

/** A message waits until its job is known to exist on the platform. */
const isReady = ({ sendsAll }: SubmitTask, { job, message }: Prompt): boolean =>
  message === undefined
    ? job.state === 'planned' && (job.is_approved || sendsAll)
    : message.state === 'planned' && isRemoteJob(job);

/** Whether a prompt may be sent now, as far as the state says. */
function mayBeSent(task: SubmitTask, prompt: Prompt, now: Date): boolean {
  const { state, project, rules } = task;
  if (!isReady(task, prompt) || promptLimit(state, project, now) !== undefined) return false;
  return prompt.message !== undefined || roomFor(readJobs(state, project), rules, now).toSend.count > 0;
}

/**
 * Sends a prompt that may be sent: it is stored as being sent before, and its outcome after, so that it is never sent
 * twice, whatever happens in between. Undefined if it may no longer be sent.
 */
async function submit(
  task: SubmitTask,
  prompt: Prompt,
): Promise<{ readonly job: Job; readonly error?: unknown } | undefined> {
  const { state, sender, project, now, signal } = task;
  const begun = now();
  const mark = (attempt: number): boolean => {
    const current = currentPrompt(state, prompt);
    if (!mayBeSent(task, current, begun)) return false;
    changePrompt(state, current, { event: 'submit', now: begun, cause: 'about to be sent', attempt });
    return true;
  };
  const unmark = () => {
    const cause = 'the attempt could not be recorded';
    changePrompt(state, currentPrompt(state, prompt), { event: 'not-sent', now: begun, cause });
  };
  const attempt = await sender.begin(begun, mark, unmark);
  if (attempt === undefined) return undefined;
  const answer: PromptAnswer = await postPrompt(task, prompt, attempt).then(
    (remote) => ({ remote }),
    (error: unknown) => ({ error }),
  );
  const ended = now();
  const change = changeAfter(prompt, answer, ended);
  const pauseMs = 'error' in answer ? pauseAfter(answer.error) : undefined;
  const store = (): Job => {
    if (pauseMs !== undefined) {
      const until = addMilliseconds(ended, pauseMs);
      recordPromptPause(state, { project, now: ended, until, cause: change.cause });
    }
    const current = currentPrompt(state, prompt);
    return isCurrent(current, attempt, change) ? changePrompt(state, current, change).job : current.job;
  };
  const job = await storeOutcome(state, store, signal);
  return 'error' in answer ? { job, error: answer.error } : { job };
}

type PromptAnswer = { readonly remote: AgentJob } | { readonly error: unknown };

/** What an answer of the platform, or a failure, says of the prompt. */
function changeAfter({ message }: Prompt, answer: PromptAnswer, now: Date): JobChange<MessageEvent> {
  if ('error' in answer) {
    const cause = messageOf(answer.error);
    return { event: outcomeOf(answer.error), now, cause, note: cause };
  }
  const { remote } = answer;
  const cause = message === undefined ? `created as ${remote.id}` : 'accepted by the platform';
  const nextPollAt = addMilliseconds(now, SHORTEST_POLL_DELAY_MS);
  return { event: 'sent', now, cause, remote, nextPollAt };
}

/** Whether a change still concerns a prompt: no later attempt has begun, and no person knows better. */
function isCurrent({ job, message }: Prompt, attempt: Attempt, { event }: JobChange<MessageEvent>): boolean {
  const after = message === undefined ? nextState(job.state, event) : nextMessageState(message.state, event);
  return (message ?? job).attempt === attempt.number && after !== undefined;
}

async function postPrompt(
  { client, state, project, signal }: SubmitTask,
  { job, message }: Prompt,
  attempt: Attempt,
): Promise<AgentJob> {
  const late = signal && withGrace(signal);
  if (message !== undefined) {
    if (!isRemoteJob(job)) throw new Error(`job ${job.id} is not known to exist on the platform`);
    return client.sendMessage(job.remote_id, message.prompt, attempt, late);
  }
  const remote = await client.createJob(job.prompt, attempt, late);
  const other = readJobs(state, project).find(({ remote_id }) => remote_id === remote.id);
  if (other !== undefined)
    throw new SharedIdError(
      `Could not create the agent job: the platform answered with ${remote.id}, which is job ${other.id}.`,
    );
  return remote;
}

/** The platform answered a creation with the id of another job, so it is not known whether it created one. */
class SharedIdError extends ReadershipError {}

/** Until when no prompt may be sent, and why. */
interface PromptLimit {
  readonly until: Date;
  readonly why: string;
}

/**
 * What keeps a project's next prompt from being sent now, if so. Each attempt is stored before its prompt is sent, so the
 * attempts of the last hour are the prompts to count, including those of killed processes.
 */
export function promptLimit(state: State, project: string, now: Date): PromptLimit | undefined {
  const sent = readSentPrompts(state, project, now).map((at) => ({ at, requests: 1 }));
  const freeAt = new RollingHour(sent, now).nextFreeAt(LIMITS.usesPerHour, now);
  const pausedUntil = readPromptPause(state, project, now);
  if (pausedUntil !== undefined && pausedUntil >= freeAt)
    return { until: pausedUntil, why: 'the platform requested a pause' };
  if (freeAt <= now) return undefined;
  return { until: freeAt, why: `the limit of ${LIMITS.usesPerHour} prompts an hour has been reached` };
}

/** Jobs and messages are sent by different commands. */
const SENT_BY: Readonly<Record<PromptKind, string>> = {
  job: 'Send them then with readership improve --apply, or let the schedule do it if improve.mode is apply.',
  message: 'Send them then with readership jobs poll, or let the schedule do it.',
};

/** Prompts are left to send later: the hourly limit was reached, or the platform requested a pause. */
export class PromptLimitError extends ReadershipError {
  override readonly exitCode = 75;
  override readonly resumeAt: Date;

  constructor(waiting: number, { until, why }: PromptLimit, kind: PromptKind) {
    super(
      `${counted(waiting, 'prompt')} not sent yet: ${why}. The next can be sent from ${nextMinute(until)}. ` +
        SENT_BY[kind],
    );
    this.resumeAt = until;
  }
}
