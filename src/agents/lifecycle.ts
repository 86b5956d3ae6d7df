import { RefusedError, TryLaterError } from '../api/errors.js';
import { ENDED_STATUSES } from '../api/schema.js';

/**
 * The life of an agent job: `planned → submitting → active → completed | failed | archived`, or else `unconfirmed` (the
 * reply was lost, so the job may exist on the platform) or `refused` (the platform rejected it).
 */
export const LOCAL_STATES = ['planned', 'submitting', 'unconfirmed', 'refused'] as const;
/** States of a job that exists on the platform under a known id. */
export const REMOTE_STATES = ['active', ...ENDED_STATUSES] as const;
export const JOB_STATES = [...LOCAL_STATES, ...REMOTE_STATES] as const;
export type JobState = (typeof JOB_STATES)[number];
export type RemoteState = (typeof REMOTE_STATES)[number];

/** A page with a job in one of these states gets no other job. */
export const OPEN_STATES: ReadonlySet<JobState> = new Set(['planned', 'submitting', 'active', 'unconfirmed']);

/** What can happen to a job. `status` is as reported by the server. */
export type JobEvent =
  | { readonly kind: 'submit' }
  | { readonly kind: 'accepted'; readonly status: string }
  | { readonly kind: 'not-done' }
  | { readonly kind: 'outcome-unknown' }
  | { readonly kind: 'refused' }
  | { readonly kind: 'polled'; readonly status: string }
  | { readonly kind: 'followed-up' }
  | { readonly kind: 'found-created' }
  | { readonly kind: 'found-not-created' }
  | { readonly kind: 'found-gone' };

/** The state after `event`, or undefined when it cannot happen in `state`. */
export function nextState(state: JobState, event: JobEvent): JobState | undefined {
  switch (event.kind) {
    case 'submit':
      return state === 'planned' ? 'submitting' : undefined;
    case 'accepted':
      return state === 'submitting' ? stateOfStatus(event.status) : undefined;
    case 'not-done':
      return state === 'submitting' ? 'planned' : undefined;
    case 'outcome-unknown':
      return state === 'submitting' ? 'unconfirmed' : undefined;
    case 'refused':
      return state === 'submitting' ? 'refused' : undefined;
    case 'polled':
      return state === 'active' ? stateOfStatus(event.status) : undefined;
    case 'followed-up':
      return isRemote(state) ? 'active' : undefined;
    case 'found-created':
      return state === 'unconfirmed' ? 'active' : undefined;
    case 'found-not-created':
      return state === 'unconfirmed' ? 'planned' : undefined;
    case 'found-gone':
      return state === 'active' ? 'failed' : undefined;
  }
}

/** Whether the job is known to exist on the platform, which polling and messages require. */
export const isRemote = (state: JobState): state is RemoteState =>
  (REMOTE_STATES as readonly JobState[]).includes(state);

/** A server may use undocumented statuses; any that is not an end means the job is active. */
const stateOfStatus = (status: string): JobState =>
  ENDED_STATUSES.find((ended) => ended === status) ?? 'active';

/** The life of a follow-up message: `planned → submitting → sent`, or else `unconfirmed` or `refused` as for a job. */
export const MESSAGE_STATES = ['planned', 'submitting', 'sent', 'unconfirmed', 'refused'] as const;
export type MessageState = (typeof MESSAGE_STATES)[number];

/** A job with a message in one of these states gets no other message. */
export const OPEN_MESSAGE_STATES: ReadonlySet<MessageState> = new Set([
  'planned',
  'submitting',
  'unconfirmed',
]);

/** What can happen to a message. */
export type MessageEvent =
  'submit' | 'accepted' | 'not-done' | 'outcome-unknown' | 'refused' | 'found-sent' | 'found-not-sent';

const MESSAGE_TRANSITIONS: Readonly<Record<MessageEvent, readonly [from: MessageState, to: MessageState]>> = {
  submit: ['planned', 'submitting'],
  accepted: ['submitting', 'sent'],
  'not-done': ['submitting', 'planned'],
  'outcome-unknown': ['submitting', 'unconfirmed'],
  refused: ['submitting', 'refused'],
  'found-sent': ['unconfirmed', 'sent'],
  'found-not-sent': ['unconfirmed', 'planned'],
};

/** The state after `event`, or undefined when it cannot happen in `state`. */
export function nextMessageState(state: MessageState, event: MessageEvent): MessageState | undefined {
  const [from, to] = MESSAGE_TRANSITIONS[event];
  return state === from ? to : undefined;
}

/** Milliseconds before the next poll of a job, doubling with each poll, within bounds. */
export const pollDelayMs = (polls: number, minDelayMs: number, maxDelayMs: number): number =>
  Math.min(maxDelayMs, minDelayMs * 2 ** Math.min(polls, 30));

/** Refusals that concern the account, not the prompt: once fixed, the same prompt can be sent. */
const ACCOUNT_STATUSES = new Set([401, 402, 403]);

/** The pause after a 429 without a Retry-After. */
const DEFAULT_PAUSE_MS = 10 * 60_000;

/** What a failed POST says about its outcome. */
export type FailedOutcome = 'not-done' | 'refused' | 'outcome-unknown';

/**
 * What a failure says about the outcome of a POST. A prompt may be sent again only if the server is known not to have
 * acted. Anything ambiguous, including a bug of ours, is unknown and is never sent again automatically.
 */
export function outcomeOf(error: unknown): FailedOutcome {
  if (error instanceof TryLaterError && error.isKnownNotDone) return 'not-done';
  if (error instanceof RefusedError) return ACCOUNT_STATUSES.has(error.status) ? 'not-done' : 'refused';
  return 'outcome-unknown';
}

/** How long the platform wants no prompts; undefined if it did not say. */
export function pauseAfter(error: unknown): number | undefined {
  if (!(error instanceof TryLaterError)) return undefined;
  return error.reason === 'rate-limited' ? (error.retryAfterMs ?? DEFAULT_PAUSE_MS) : error.retryAfterMs;
}
