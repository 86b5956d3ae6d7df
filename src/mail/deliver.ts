import pMap from 'p-map';
import { isSameRecipient } from '../config/recipients.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { withGrace } from '../sleep.js';
import {
  type Delivery,
  deliveryKey,
  readDeliveries,
  readDeliveriesTo,
  readDeliveryOf,
  removeDelivery,
  storeDelivery,
} from '../state/emails.js';
import { type Sender, storeOutcome } from '../state/sender.js';
import type { State } from '../state/state.js';
import { post } from './channel.js';
import type { OutgoingMessage } from './compose.js';
import {
  ALL_PROJECTS,
  type DeliveryAdmission,
  mayBeTried,
  mayHaveArrived,
  type Sent,
  settled,
} from './delivery.js';
import type { MailTransport } from './transport.js';

/** What sending needs. */
interface DeliveryParts {
  readonly state: State;
  readonly sender: Sender;
  readonly outgoing: {
    /** For emails; posts to channels need none. */
    readonly transport: () => MailTransport;
    /** The hosts of channels that did not answer since the command began. */
    readonly silentHosts: Set<string>;
  };
  readonly session: { readonly now: () => Date; readonly signal: AbortSignal };
}

/**
 * Sends the messages that may be sent, each recorded before and after. A failure of one does not
 * affect the others. After an interruption, it finishes those in progress and starts no others. The first
 * email goes alone, and once the mail server takes no more for now, none are begun: those are as they were before. So are
 * the posts to a host that has not answered one, which get them one after another.
 */
export async function deliver(
  parts: DeliveryParts,
  messages: readonly OutgoingMessage[],
  admission: DeliveryAdmission,
): Promise<Sent> {
  const { transport: openTransport, silentHosts: silent } = parts.outgoing;
  const failures: unknown[] = [];
  const transport = openTransport();
  const deliveries = new Map<OutgoingMessage, Delivery>();
  const silentHosts = new Set<string>();
  const attempt = async (message: OutgoingMessage): Promise<void> => {
    const isDue = () => isToBeTried(parts.state, transport, message, admission, parts.session.now());
    const host = hostOf(message);
    try {
      const delivery = await sendOnce(parts, transport, message, admission);
      if (delivery !== undefined) deliveries.set(message, delivery);
      else if (host !== undefined && silent.has(host) && isDue()) silentHosts.add(host);
    } catch (error) {
      failures.push(error);
    }
  };
  const emails = messages.filter((message) => !('channel' in message));
  const posts = messages.filter((message) => 'channel' in message);
  const sendEmails = async () => {
    await pMap(emails.slice(0, 1), attempt);
    await pMap(emails.slice(1), attempt, { concurrency: transport.atOnce() });
    if (!transport.slowDown()) return;
    const left = emails.filter((email) => !deliveries.has(email));
    await pMap(left, attempt, { concurrency: 1 });
  };
  const postTo = (host: string | undefined) =>
    pMap(
      posts.filter((post) => hostOf(post) === host),
      attempt,
      { concurrency: 1 },
    );
  await Promise.all([sendEmails(), ...[...new Set(posts.map(hostOf))].map(postTo)]);
  // Only storage can fail here. The error is thrown once every conversation in progress has ended.
  if (failures.length > 0) throw failures[0];
  const inOrder = messages.flatMap((message) => deliveries.get(message) ?? []);
  return { deliveries: inOrder, pausedBy: transport.pausedBy(), silentHosts };
}

/** The host that gets a post; undefined for an email, and for a channel without an address. */
const hostOf = (message: OutgoingMessage): string | undefined =>
  'channel' in message && 'url' in message.channel ? message.channel.url.host : undefined;

const isToBeTried = (
  state: State,
  transport: MailTransport,
  { key }: OutgoingMessage,
  admission: DeliveryAdmission,
  now: Date,
): boolean => mayBeTried(readDeliveriesTo(state, key), key.project, admission, () => transport.via, now);

/**
 * Records that a message is being sent, sends it, and records its outcome; undefined if it must not be sent now, or the mail
 * server or the channel's host takes nothing now.
 */
async function sendOnce(
  { state, sender, outgoing: { silentHosts }, session: { now, signal } }: DeliveryParts,
  transport: MailTransport,
  message: OutgoingMessage,
  admission: DeliveryAdmission,
): Promise<Delivery | undefined> {
  const { key, id, figures } = message;
  const at = now();
  const host = hostOf(message);
  const isPaused = () =>
    'channel' in message ? host !== undefined && silentHosts.has(host) : transport.pausedBy() !== undefined;
  const isToBeSent = () =>
    !signal.aborted && !isPaused() && isToBeTried(state, transport, message, admission, at);
  if (!isToBeSent()) return undefined;
  const refusal = await sender.refusal();
  if (refusal !== undefined) throw refusal;
  let before: Delivery | undefined;
  const mark = (attempt: number): boolean => {
    if (!isToBeSent()) return false;
    before = readDeliveriesTo(state, key).find(({ project }) => project === key.project);
    storeDelivery(state, {
      ...deliveryKey.parse(key),
      state: 'sending',
      via: 'channel' in message ? message.channel.kind : transport.via,
      message_id: id,
      attempt,
      attempts: (before?.attempts ?? 0) + 1,
      tried_at: at,
      settled_at: null,
      next_attempt_at: null,
      note: null,
      days_covered: figures?.days ?? null,
      human: figures?.human ?? null,
      ai: figures?.ai ?? null,
    });
    return true;
  };
  const unmark = () => {
    if (before === undefined) removeDelivery(state, key);
    else storeDelivery(state, before);
  };
  const attempt = await sender.begin(at, mark, unmark);
  if (attempt === undefined) return undefined;
  const { kind, words, isSilent } = await ('channel' in message
    ? post(message, attempt, now(), withGrace(signal))
    : transport.send(message, attempt, withGrace(signal)));
  if (isSilent === true && host !== undefined) silentHosts.add(host);
  const settle = () => {
    // Later attempts and their outcomes stay.
    const delivery = readDeliveryOf(state, attempt.number);
    if (delivery === undefined) return undefined;
    if (kind === 'not-now') {
      unmark();
      return undefined;
    }
    // Who was sent it before is not sent it again because a file was asked for.
    const kept = kind === 'written' && before !== undefined && mayHaveArrived(before) ? before : undefined;
    const after = kept ?? settled(delivery, { kind, words }, now());
    storeDelivery(state, after);
    return after;
  };
  return storeOutcome(state, settle, signal);
}

/**
 * The emails that were only written to a file, and are sent once there is a mail server: about the last period that their
 * report was written or sent about, to those who are still to get them.
 */
export function readWritten(
  state: State,
  { settings, projects }: { readonly settings: Settings; readonly projects: readonly ProjectSettings[] },
  now: Date,
): Delivery[] {
  const all = readDeliveries(state);
  const isExpected = ({ report, project, recipient }: Delivery) =>
    (project === ALL_PROJECTS || projects.some(({ id }) => id === project)) &&
    (settings.reports.audiences[report] ?? []).some(
      ({ to, digest }) =>
        digest === (project === ALL_PROJECTS) && to.some((one) => isSameRecipient(one, recipient)),
    );
  return all.filter((written) => {
    if (written.state !== 'written' || !isExpected(written)) return false;
    const ofReport = all.filter(({ report }) => report === written.report);
    if (ofReport.some(({ project, period }) => project === written.project && period > written.period))
      return false;
    const toRecipient = ofReport.filter(
      ({ period, recipient }) => period === written.period && isSameRecipient(recipient, written.recipient),
    );
    return mayBeTried(toRecipient, written.project, 'due', () => 'smtp', now);
  });
}
