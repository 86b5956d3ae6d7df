import pMap from 'p-map';
import { withGrace } from '../sleep.js';
import {
  type Delivery,
  deliveryKey,
  readDeliveriesTo,
  readDeliveryOf,
  removeDelivery,
  storeDelivery,
} from '../state/emails.js';
import { type Attempt, type Sender, storeOutcome } from '../state/sender.js';
import type { State } from '../state/state.js';
import { post } from './channel.js';
import type { OutgoingMessage } from './compose.js';
import { type DeliveryAdmission, mayBeTried, settled } from './delivery.js';
import type { MailTransport } from './transport.js';

/** Concurrency: one slow server does not delay other recipients, and no server is flooded. */
const MAX_AT_ONCE = 4;

interface DeliveryTask {
  readonly state: State;
  readonly sender: Sender;
  /** For emails; posts to channels need none. */
  readonly transport: MailTransport;
  readonly admission: DeliveryAdmission;
  readonly now: () => Date;
  readonly signal: AbortSignal;
}

/**
 * Sends the messages that may be sent, each recorded before and after. A failure of one does not
 * affect the others. After an interruption, it finishes those in progress and starts no others. The first
 * email goes alone, and after a mail server stopped answering, no more emails are begun: hundreds of them would take
 * hours, and nobody would know which of them arrived. Returns the attempted deliveries.
 */
export async function deliver(task: DeliveryTask, messages: readonly OutgoingMessage[]): Promise<Delivery[]> {
  const failures: unknown[] = [];
  const attempt = (message: OutgoingMessage) =>
    deliverOne(task, message).catch((error: unknown) => {
      failures.push(error);
    });
  const first = messages.find(isEmail);
  const others = messages.filter((message) => message !== first);
  const attempted = [
    first && (await attempt(first)),
    ...(await pMap(others, attempt, { concurrency: MAX_AT_ONCE })),
  ];
  // Only storage can fail here. The error is thrown once every conversation in progress has ended.
  if (failures.length > 0) throw failures[0];
  return attempted.filter((delivery) => delivery !== undefined);
}

const isEmail = (message: OutgoingMessage): boolean => !('channel' in message);

async function deliverOne(task: DeliveryTask, message: OutgoingMessage): Promise<Delivery | undefined> {
  const { state, transport, now, signal } = task;
  const isSilent = () => isEmail(message) && transport.isSilent();
  const attempt = await begin(task, message, () => signal.aborted || isSilent());
  if (attempt === undefined) return undefined;
  const outcome = await ('channel' in message
    ? post(message, attempt, now(), withGrace(signal))
    : transport.send(message, attempt, withGrace(signal)));
  return storeOutcome(
    state,
    () => {
      // Later attempts and their outcomes stay.
      const delivery = readDeliveryOf(state, attempt.number);
      const after = delivery && settled(delivery, outcome, now());
      if (after !== undefined) storeDelivery(state, after);
      return after;
    },
    signal,
  );
}

/**
 * Records that a message is being sent. Returns the proof that nothing is sent without, or undefined if the message must
 * not be sent now.
 */
async function begin(
  { state, sender, transport, admission, now }: DeliveryTask,
  message: OutgoingMessage,
  isStopped: () => boolean,
): Promise<Attempt | undefined> {
  const { key, id, figures } = message;
  const at = now();
  const via = 'channel' in message ? message.channel.kind : transport.via;
  const known = () => readDeliveriesTo(state, key);
  const isToBeSent = () => !isStopped() && mayBeTried(known(), key.project, admission, at);
  if (!isToBeSent()) return undefined;
  const refusal = await sender.refusal();
  if (refusal !== undefined) throw refusal;
  let before: Delivery | undefined;
  const mark = (attempt: number): boolean => {
    if (!isToBeSent()) return false;
    before = known().find(({ project }) => project === key.project);
    storeDelivery(state, {
      ...deliveryKey.parse(key),
      state: 'sending',
      via,
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
  return sender.begin(at, mark, unmark);
}
