import { type Reader, readSql } from '../warehouse/query.js';
import type { Transaction, Warehouse } from '../warehouse/warehouse.js';
import {
  type DeliveryAdmission,
  type Delivery,
  deliveryRow,
  mayBeTried,
  type Outcome,
  settled,
} from './delivery.js';
import type { Message } from './message.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const DELIVERIES = statement('deliveries');
const DELIVERY = statement('delivery');
const REMOVE_DELIVERY = statement('remove-delivery');
const STORE_DELIVERY = statement('store-delivery');

/** Every delivery ever attempted, by project, report, period and recipient. */
export const readDeliveries = (reader: Reader): Promise<Delivery[]> => reader.query(DELIVERIES, deliveryRow);

/** Commits the intent to send a mail, or returns undefined when it must not be sent now. Nothing leaves before this. */
export function claim(
  warehouse: Warehouse,
  { key, id }: Message,
  attempt: { readonly via: Delivery['via']; readonly admission: DeliveryAdmission; readonly now: Date },
): Promise<Delivery | undefined> {
  const { via, admission, now } = attempt;
  return warehouse.transaction(async (transaction) => {
    const [known] = await transaction.query(DELIVERY, deliveryRow, { ...key });
    if (!mayBeTried(known, admission, now)) return undefined;
    const claimed: Delivery = {
      ...key,
      ...{ via, message_id: id, state: 'sending', attempts: (known?.attempts ?? 0) + 1, tried_at: now },
      ...{ settled_at: null, next_attempt_at: null, note: null },
    };
    await store(transaction, claimed);
    return claimed;
  });
}

/** Commits how an attempt ended. */
export function record(
  warehouse: Warehouse,
  delivery: Delivery,
  outcome: Outcome,
  now: Date,
): Promise<Delivery> {
  const after = settled(delivery, outcome, now);
  return warehouse.transaction(async (transaction) => {
    await store(transaction, after);
    return after;
  });
}

/**
 * Marks deliveries that a killed process left `sending` as `unknown`: the mail may have arrived. Sound because only
 * the holder of the live database sends.
 */
export async function settleInterruptedDeliveries(warehouse: Warehouse, now: Date): Promise<Delivery[]> {
  const interrupted = (await readDeliveries(warehouse)).filter(({ state }) => state === 'sending');
  const words = 'the process ended before the outcome was recorded';
  return Promise.all(
    interrupted.map((delivery) => record(warehouse, delivery, { kind: 'unknown', words }, now)),
  );
}

async function store(transaction: Transaction, delivery: Delivery): Promise<void> {
  await transaction.execute(REMOVE_DELIVERY, delivery);
  await transaction.execute(STORE_DELIVERY, delivery);
}
