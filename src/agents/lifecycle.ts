import { subHours } from 'date-fns';
import { RefusedError, TryLaterError } from '../api/errors.js';
import { LONGEST_WAIT_MS } from '../api/retry-after.js';
import { ENDED_STATUSES } from '../api/schema.js';
import type { Job, JobState } from '../state/jobs.js';
import type { JobMessage, MessageState } from '../state/messages.js';

/** States of a job that exists on the platform under a known id. */
const REMOTE_STATES = ['active', ...ENDED_STATUSES] as const;
export type RemoteState = (typeof REMOTE_STATES)[number];

/** A page with a job in one of these states gets no other job. */
export const OPEN_STATES: ReadonlySet<JobState> = new Set(['planned', 'sending', 'active', 'unknown']);
/** A job with a message in one of these states gets no other message. */
export const OPEN_MESSAGE_STATES: ReadonlySet<MessageState> = new Set(['planned', 'sending', 'unknown']);

/** Whether the job is known to exist on the platform, which polling and messages require. */
export const isRemote = (state: JobState): state is RemoteState =>
  (REMOTE_STATES as readonly JobState[]).includes(state);

type Transitions<Event extends string, State> = Readonly<
  Record<Event, readonly [from: readonly State[], to: State]>
>;

/**
 * What happens to a job or a message on its way to the platform; `found-`: a person found out. The reply to an attempt may
 * come after another worker, or a person, took it for lost.
 */
const SUBMISSION = {
  submit: [['planned'], 'sending'],
  'not-sent': [['sending', 'unknown'], 'planned'],
  unknown: [['sending'], 'unknown'],
  refused: [['sending', 'unknown', 'planned'], 'refused'],
  'found-not-sent': [['unknown'], 'planned'],
  withdrawn: [['planned', 'unknown'], 'refused'],
} as const;

export type MessageEvent = keyof typeof SUBMISSION | 'sent' | 'found-sent';
const MESSAGE_TRANSITIONS: Transitions<MessageEvent, MessageState> = {
  ...SUBMISSION,
  sent: [['sending', 'unknown', 'planned', 'refused'], 'sent'],
  'found-sent': [['planned', 'unknown'], 'sent'],
};

/**
 * The life of an agent job: `planned → sending → active → completed | failed | archived`, or else `unknown` (the reply was
 * lost, so the job may exist on the platform) or `refused` (the platform rejected it, or a person ended it before it was
 * known to be sent).
 */
export type JobEvent = MessageEvent | 'polled' | 'followed-up' | 'found-over' | 'found-pull-request';
const JOB_TRANSITIONS: Transitions<JobEvent, JobState> = {
  ...SUBMISSION,
  sent: [['sending', 'unknown', 'planned', 'refused'], 'active'],
  // A person may correct what was settled before, also the id of a job.
  'found-sent': [['planned', 'unknown', 'refused', ...REMOTE_STATES], 'active'],
  polled: [['active', 'completed'], 'active'],
  'followed-up': [REMOTE_STATES, 'active'],
  'found-over': [['active'], 'failed'],
  'found-pull-request': [['unknown', 'active'], 'completed'],
};

/** The state of a message after `event`, or undefined when it cannot happen in `state`. */
export const nextMessageState = (state: MessageState, event: MessageEvent): MessageState | undefined =>
  after(MESSAGE_TRANSITIONS[event], state);

/**
 * The state of a job, as above; the status with which the platform answers a creation or a poll may
 * end it. A poll without an answer changes nothing.
 */
export function nextState(state: JobState, event: JobEvent, status?: string): JobState | undefined {
  const next = after(JOB_TRANSITIONS[event], state);
  if (next === undefined || (event !== 'sent' && event !== 'polled')) return next;
  if (event === 'polled' && status === undefined) return state;
  // A server may use undocumented statuses; any that is not an end means the job is active.
  return ENDED_STATUSES.find((ended) => ended === status?.toLowerCase()) ?? next;
}

const after = <State>([from, to]: readonly [readonly State[], State], state: State): State | undefined =>
  from.includes(state) ? to : undefined;

/** The bounds of the time between two polls of a job. Jobs may end within seconds, or take hours. */
export const SHORTEST_POLL_DELAY_MS = 1_000;
const LONGEST_POLL_DELAY_MS = 5 * 60_000;

/** Milliseconds before the next poll of a job, doubling with each poll, within bounds. */
export const pollDelayMs = (polls: number): number =>
  Math.min(LONGEST_POLL_DELAY_MS, SHORTEST_POLL_DELAY_MS * 2 ** polls);

/** For so long, a job that completed without a pull request is still polled, since the link may come later. */
const LINK_HOURS = 1;

/** Whether a job is polled again. */
export const isPolled = (state: JobState, link: string | null, ended: Date | null, now: Date): boolean =>
  state === 'active' ||
  (state === 'completed' && link === null && ended !== null && ended > subHours(now, LINK_HOURS));

/**
 * When a job is polled next. A time later than any delay allows was stored by a clock that
 * was ahead, and does not count; after an error, which leaves a note, the platform may ask for more.
 */
export function nextPoll(
  { next_poll_at: at, note }: { readonly next_poll_at: Date | null; readonly note: string | null },
  now: Date,
): Date {
  const longestMs = note === null ? LONGEST_POLL_DELAY_MS : LONGEST_WAIT_MS;
  return at === null || at.getTime() > now.getTime() + longestMs ? EARLIEST : at;
}

export const EARLIEST = new Date(0);

/** Refusals that concern the account, not the prompt: once fixed, the same prompt can be sent. */
const ACCOUNT_STATUSES = new Set([401, 402, 403]);

/** The pause after a 429 without a Retry-After. */
const DEFAULT_PAUSE_MS = 10 * 60_000;

/**
 * What a failure says about the outcome of a POST. A prompt may be sent again only if the server is
 * known not to have acted. Anything ambiguous, including a bug of ours, is unknown and is never
 * sent again automatically.
 */
export function outcomeOf(error: unknown): 'not-sent' | 'refused' | 'unknown' {
  if (error instanceof TryLaterError && error.isKnownNotDone) return 'not-sent';
  if (error instanceof RefusedError) return ACCOUNT_STATUSES.has(error.status) ? 'not-sent' : 'refused';
  return 'unknown';
}

/** How long the platform wants no prompts; undefined if it did not say. */
export function pauseAfter(error: unknown): number | undefined {
  if (!(error instanceof TryLaterError)) return undefined;
  return error.reason === 'rate-limited' ? (error.retryAfterMs ?? DEFAULT_PAUSE_MS) : error.retryAfterMs;
}

/** A job that has been active for much longer than such jobs usually are. */
export interface LateJob {
  readonly id: number;
  readonly project: string;
  readonly path: string;
  /** Since it was sent, or the last message to it. */
  readonly since: Date;
  /** How long the jobs that have ended usually took; null without any. */
  readonly usualMs: number | null;
}

/** A day: agents take minutes or hours. */
const SHORTEST_MS = 24 * 3_600_000;
const TIMES_USUAL = 3;

/** The jobs that are late, the longest active first: most likely the platform has lost them, or waits for a person. */
export function lateJobs(jobs: readonly Job[], messages: readonly JobMessage[], now: Date): LateJob[] {
  const usualMs = usualTime(jobs);
  const limit = Math.max(SHORTEST_MS, TIMES_USUAL * (usualMs ?? 0));
  return jobs
    .filter(({ state }) => state === 'active')
    .map(({ id, project, path, submitted_at, planned_at }) => {
      const own = messages.filter(({ job }) => job === id).flatMap((message) => message.submitted_at ?? []);
      const since = own.at(-1) ?? submitted_at ?? planned_at;
      return { id, project, path, since, usualMs };
    })
    .filter(({ since }) => now.getTime() - since.getTime() > limit)
    .sort((one, two) => one.since.getTime() - two.since.getTime());
}

/** The median. */
function usualTime(jobs: readonly Job[]): number | null {
  const times = jobs.flatMap(({ state, submitted_at, ended_at }) =>
    submitted_at === null || ended_at === null || state === 'refused'
      ? []
      : ended_at.getTime() - submitted_at.getTime(),
  );
  return times.sort((one, two) => one - two)[Math.floor(times.length / 2)] ?? null;
}
