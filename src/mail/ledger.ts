import pMap from 'p-map';
import { withGrace } from '../sleep.js';
import type { JournalEntry, EntryOf, Ending, Outcome as JournalOutcome } from '../effects/entries.js';
import type { Departure, EffectsJournal } from '../effects/journal.js';
import { type Reader, readSql } from '../warehouse/query.js';
import type { Transaction } from '../warehouse/transaction.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { post } from './channel.js';
import type { OutgoingMessage } from './compose.js';
import {
  type DeliveryAdmission,
  type Delivery,
  type DeliveryKey,
  deliveryKey,
  deliveryRow,
  type Figures,
  fingerprintOf,
  mayBeTried,
  settled,
} from './delivery.js';
import type { MailTransport } from './transport.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const DELIVERIES = statement('deliveries');
const REMOVE_DELIVERY = statement('remove-delivery');
const STORE_DELIVERY = statement('store-delivery');

/** Every attempted delivery, of a report, project, period or recipient if given, ordered by all of these. */
export const readDeliveries = (
  reader: Reader,
  of: { readonly [Part in keyof DeliveryKey]?: string | null } = {},
): Promise<Delivery[]> => reader.query(DELIVERIES, deliveryRow, { ...EVERY, ...of });

const EVERY = { report: null, project: null, period: null, recipient: null };

/** Where deliveries are recorded. */
interface DeliveryRecords {
  readonly warehouse: Warehouse;
  readonly journal: EffectsJournal;
}

/** Concurrency: one slow server does not delay other recipients, and no server is flooded. */
const MAX_AT_ONCE = 4;

interface DeliveryTask extends DeliveryRecords {
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

async function deliverOne(
  { transport, admission, now, signal, ...ledgers }: DeliveryTask,
  message: OutgoingMessage,
): Promise<Delivery | undefined> {
  if (signal.aborted || (isEmail(message) && transport.isSilent())) return undefined;
  const isPost = 'channel' in message;
  const via = isPost ? message.channel.kind : transport.via;
  const recorded = await recordIntent(ledgers, message, { via, admission, now: now() });
  if (recorded === undefined) return undefined;
  const { delivery, departure } = recorded;
  const outcome = await (isPost
    ? post(message, departure, now(), withGrace(signal))
    : transport.send(message, departure, withGrace(signal)));
  const after = settled(delivery, outcome, now());
  await departure.ended(endingOf(after), now());
  await ledgers.warehouse.transaction((transaction) => storeDelivery(transaction, after));
  return after;
}

/**
 * Writes the intent to send a message to the journal and commits it. Returns the delivery, and the
 * proof that it is in the journal, or undefined if it must not be sent now. Nothing is sent before this.
 */
export async function recordIntent(
  { warehouse, journal }: DeliveryRecords,
  { key, id, figures }: Pick<OutgoingMessage, 'key' | 'id' | 'figures'>,
  attempt: { readonly via: Delivery['via']; readonly admission: DeliveryAdmission; readonly now: Date },
) {
  const { via, admission, now } = attempt;
  const knownTo = async (reader: Reader) => {
    const [known] = await readDeliveries(reader, key);
    return known;
  };
  if (!mayBeTried(await knownTo(warehouse), admission, now)) return undefined;
  await journal.expectMaySend();
  const departures: Departure[] = [];
  const begin = async (transaction: Transaction) => {
    const known = await knownTo(transaction);
    if (!mayBeTried(known, admission, now)) return undefined;
    const attempts = (known?.attempts ?? 0) + 1;
    const delivery = begun({ ...key, via, messageId: id, attempts }, now, figures);
    const departure = await journal.depart(intentOf(delivery), now, () =>
      storeDelivery(transaction, delivery),
    );
    departures.push(departure);
    return { delivery, departure };
  };
  try {
    return await warehouse.transaction(begin);
  } catch (error) {
    // It could not be committed, as on a full disk, so nothing is sent.
    for (const departure of departures)
      await departure.ended({ event: 'not-sent' }, now).catch(() => undefined);
    throw error;
  }
}

/** Settles a delivery of unknown outcome. One that did not arrive is sent again when it is due. */
export async function resolveDelivery(
  { warehouse, journal }: DeliveryRecords,
  delivery: Delivery,
  found: 'delivered' | 'not delivered',
  now: Date,
): Promise<Delivery> {
  const words = `${found}, confirmed by a person`;
  const after =
    found === 'delivered'
      ? settled(delivery, { kind: 'sent', words }, now)
      : { ...settled({ ...delivery, attempts: 0 }, { kind: 'not-sent', words }, now), next_attempt_at: null };
  await journal.append([entryAbout(after, now)]);
  await warehouse.transaction((transaction) => storeDelivery(transaction, after));
  return after;
}

export const EVENT_OF = {
  waiting: 'not-sent',
  sent: 'sent',
  failed: 'refused',
  unknown: 'unknown',
  sending: 'unknown',
} as const satisfies Record<Delivery['state'], Ending>;

/** The effects journal's record of a delivery, written before it is sent. */
const intentOf = (delivery: Delivery) => ({
  effect: 'email' as const,
  ref: fingerprintOf(delivery),
  ...deliveryKey.parse(delivery),
  via: delivery.via,
  messageId: delivery.message_id,
  attempts: delivery.attempts,
  ...(delivery.days_covered === null
    ? {}
    : { figures: { days: delivery.days_covered, human: delivery.human ?? 0, ai: delivery.ai ?? 0 } }),
});

const endingOf = ({ state, note }: Delivery): JournalOutcome => ({
  event: EVENT_OF[state],
  ...(note === null ? {} : { note }),
});

export const entryAbout = (delivery: Delivery, now: Date): JournalEntry => ({
  ...intentOf(delivery),
  ...endingOf(delivery),
  attempt: delivery.tried_at.toISOString(),
  at: now.toISOString(),
});

/** A delivery that is being attempted. */
export const begun = (
  attempt: DeliveryKey & Pick<EntryOf<'email'>, 'messageId' | 'via' | 'attempts'>,
  triedAt: Date,
  figures: Figures | null | undefined,
): Delivery => ({
  ...deliveryKey.parse(attempt),
  state: 'sending',
  via: attempt.via,
  message_id: attempt.messageId,
  attempts: attempt.attempts,
  tried_at: triedAt,
  settled_at: null,
  next_attempt_at: null,
  note: null,
  days_covered: figures?.days ?? null,
  human: figures?.human ?? null,
  ai: figures?.ai ?? null,
});

export async function storeDelivery(transaction: Transaction, delivery: Delivery): Promise<void> {
  await transaction.execute(REMOVE_DELIVERY, delivery);
  await transaction.execute(STORE_DELIVERY, delivery);
}
