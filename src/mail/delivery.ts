import { addMilliseconds } from 'date-fns';
import { createHash } from 'node:crypto';
import { isSameRecipient, type Recipient } from '../config/recipients.js';
import { ReadershipError } from '../errors.js';
import { counted } from '../format/numbers.js';
import type { Delivery, DeliveryKey } from '../state/emails.js';

/** The loaded days of a report's period, and the views on them of the pages that it is about. */
export interface Figures {
  readonly days: number;
  readonly human: number;
  readonly ai: number;
}

/** The report name of alerts among the deliveries, which prevent sending one twice. */
export const ALERT = 'alert';

/** The project of a delivery that is about all projects. */
export const ALL_PROJECTS = '-';

/** Always the same for the same report, project, period and recipient, however that is spelled. */
export const fingerprintOf = ({ report, project, period, recipient }: DeliveryKey): string =>
  createHash('sha256')
    .update(JSON.stringify([report, project, period, recipient.toLowerCase()]))
    .digest('hex')
    .slice(0, 32);

/**
 * How an attempt ended. Only after `sent` and `unknown` can the message have arrived. After `not-now`, the mail server took
 * nothing, whoever the recipient, so the attempt counts against nobody. The words are the server's, or the path of the file.
 */
export interface SendOutcome {
  readonly kind: 'sent' | 'written' | 'not-sent' | 'not-now' | 'refused' | 'unknown';
  readonly words: string;
  /** Whether the channel's host let the time for its answer, or for connecting, pass. */
  readonly isSilent?: boolean;
}

/** The most characters of a server's reply to store and to show on terminals. */
export const MAX_WORDS = 300;

/** Which deliveries to attempt: those that are due, all unsettled ones, or even those already sent. */
export type DeliveryAdmission = 'due' | 'unsettled' | 'force';

/** Over four days, as mail servers retry. */
const MAX_ATTEMPTS = 30;
const FIRST_RETRY_MS = 5 * 60_000;
const LAST_RETRY_MS = 4 * 3_600_000;

/**
 * Whether a report of a period may be sent to a recipient now, about a project or all of them, given the deliveries of
 * that report and period to the recipient. What arrived or may have arrived is sent again only with `force`, also where
 * it was about one project and this is about all of them, or the reverse. What was written to a file is sent when `via`
 * says that there is a mail server.
 */
export function mayBeTried(
  known: readonly Delivery[],
  project: string,
  admission: DeliveryAdmission,
  via: () => Delivery['via'],
  now: Date,
): boolean {
  const own = known.find((delivery) => delivery.project === project);
  if (own?.state === 'sending') return false;
  if (admission === 'force') return true;
  const isDigest = project === ALL_PROJECTS;
  if (known.some((one) => (one.project === ALL_PROJECTS) !== isDigest && mayHaveArrived(one))) return false;
  if (own === undefined) return true;
  const { state, attempts, next_attempt_at: next } = own;
  if (state === 'written') return admission !== 'due' || via() !== 'outbox';
  if (state !== 'waiting') return false;
  // A time later than its delay allows was stored by a clock that was ahead.
  const isAhead = next !== null && next > addMilliseconds(now, retryDelayMs(attempts));
  return admission !== 'due' || next === null || next <= now || isAhead;
}

export const mayHaveArrived = ({ state }: Delivery): boolean =>
  state === 'sending' || state === 'sent' || state === 'unknown';

/** The delivery after an attempt that counts. */
export function settled(
  delivery: Delivery,
  { kind, words: note }: SendOutcome & { readonly kind: Exclude<SendOutcome['kind'], 'not-now'> },
  now: Date,
): Delivery {
  const { attempts } = delivery;
  const ended = { ...delivery, settled_at: now, next_attempt_at: null, note };
  if (kind === 'refused') return { ...ended, state: 'failed' };
  if (kind !== 'not-sent') return { ...ended, state: kind };
  if (attempts >= MAX_ATTEMPTS)
    return { ...ended, state: 'failed', note: `gave up after ${attempts} attempts: ${note}` };
  const next_attempt_at = addMilliseconds(now, retryDelayMs(attempts));
  return { ...ended, state: 'waiting', settled_at: null, next_attempt_at };
}

/** A delivery of unknown outcome after a person settled it. One that did not arrive is sent again when it is due. */
export function resolved(delivery: Delivery, found: 'delivered' | 'not delivered', now: Date): Delivery {
  const words = `${found}, confirmed by a person`;
  if (found === 'delivered') return settled(delivery, { kind: 'sent', words }, now);
  const waiting = settled({ ...delivery, attempts: 0 }, { kind: 'not-sent', words }, now);
  return { ...waiting, next_attempt_at: null };
}

/** Doubles from five minutes, which suits greylisting, to hours, for a server that is down. */
const retryDelayMs = (attempts: number): number =>
  Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.max(0, attempts - 1));

/**
 * Emails and posts that did not arrive, or may not have, and why the mail server takes no more for now, if so. Exit code
 * 75 if all of them are retried automatically.
 */
export class DeliveryError extends ReadershipError {
  override readonly exitCode: 1 | 75;

  constructor({ deliveries, pausedBy, silentHosts }: Sent) {
    const isWaiting = deliveries.every(({ state }) => state === 'waiting');
    const one = ({ report, period, recipient, state, note }: Delivery) =>
      `  ${report} ${period} to ${recipient}: ${isWaiting ? '' : `${state}, `}${note ?? 'no reason given'}`;
    const heading = isWaiting ? 'Not sent:' : 'Not delivered, or outcome unknown:';
    // Those of several projects may read the same.
    const lines = deliveries.length === 0 ? [] : [...new Set([heading, ...deliveries.map(one)])];
    if (pausedBy !== undefined)
      lines.push(
        `The mail server is not accepting emails: ${pausedBy}`,
        'Emails to the recipients in readership.yaml will be tried again, and this does not count as an attempt. To try now: readership run',
      );
    for (const host of silentHosts)
      lines.push(
        `${host} did not answer, so nothing else was posted to it, and counts as untried. To try again: readership run`,
      );
    super([...lines, 'See: readership status'].join('\n'));
    this.exitCode = isWaiting ? 75 : 1;
  }
}

/** What became of messages. */
export interface Sent {
  /** Those that were attempted, unless the mail server took nothing. */
  readonly deliveries: Delivery[];
  /** Why the mail server takes no more emails for now; undefined if it may. */
  pausedBy: string | undefined;
  /** The hosts of channels to which posts were not begun, because they had not answered. */
  readonly silentHosts: Set<string>;
}

/** Adds what became of further messages. */
export function addSent(all: Sent, { deliveries, pausedBy, silentHosts }: Sent): void {
  all.deliveries.push(...deliveries);
  all.pausedBy ??= pausedBy;
  for (const host of silentHosts) all.silentHosts.add(host);
}

/** How many messages were sent, in words, and the error about those that were not, if there are any. */
export function sentOf({ deliveries, pausedBy, silentHosts }: Sent) {
  const sent = deliveries.filter(({ state }) => state === 'sent').length;
  const written = deliveries.filter(({ state }) => state === 'written').length;
  const others = deliveries.filter(({ state }) => state !== 'sent' && state !== 'written');
  const noun = deliveries.every(({ via }) => via === 'smtp' || via === 'outbox') ? 'email' : 'report';
  const first =
    sent === 0 && written > 0 ? `${counted(written, noun)} written to a file` : `${counted(sent, noun)} sent`;
  const second = sent > 0 && written > 0 ? `, ${written} written to a file` : '';
  return {
    words: `${first}${second}${others.length === 0 ? '' : `, ${others.length} not`}`,
    error:
      others.length === 0 && pausedBy === undefined && silentHosts.size === 0
        ? undefined
        : new DeliveryError({ deliveries: others, pausedBy, silentHosts }),
  };
}

/** A report of one period, and its stored data. */
export interface PeriodState {
  readonly days: number;
  readonly daysLoaded: number;
  /** When its schedule allows sending it. */
  readonly from: Date;
  /** When to stop waiting for missing days. */
  readonly until: Date;
  readonly recipients: readonly Recipient[];
  /** How emails are sent. */
  readonly via: () => Delivery['via'];
  /** A project id, or `-` for all projects. */
  readonly project: string;
  /** The deliveries of this report and period, about this project or all of them. */
  readonly deliveries: readonly Delivery[];
}

/** What a report waits for, until the time is up; without any loaded day, however long it takes. */
export interface Wait {
  readonly for: string;
  readonly until: Date | null;
}

/**
 * The recipients to send a report to now: those not yet attempted, and those whose next attempt is
 * due, once all days of the period are loaded or the wait for them is over. A report without any
 * loaded day is never sent. Undefined if it is too early, or every delivery was sent, is retried
 * later, or has failed.
 */
export function whatIsDue(
  { days, daysLoaded, from, until, recipients, via, project, deliveries }: PeriodState,
  now: Date,
): { readonly recipients: readonly Recipient[] } | Wait | undefined {
  const open = recipients.filter((recipient) =>
    mayBeTried(
      deliveries.filter((delivery) => isSameRecipient(delivery.recipient, recipient)),
      project,
      'due',
      via,
      now,
    ),
  );
  if (now < from || open.length === 0) return undefined;
  if (daysLoaded === days || (daysLoaded > 0 && now >= until)) return { recipients: open };
  return { for: counted(days - daysLoaded, 'missing day'), until: daysLoaded > 0 ? until : null };
}
