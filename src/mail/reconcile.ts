import type { EntryOf } from '../effects/entries.js';
import type { EffectLedger } from '../effects/reconcile.js';
import type { Difference, StoredEffect } from '../effects/settle.js';
import { type Delivery, fingerprintOf, settled } from './delivery.js';
import { begun, entryAbout, EVENT_OF, readDeliveries, storeDelivery } from './ledger.js';

const INTERRUPTED = 'the process ended before the outcome was recorded';

interface StoredDelivery extends StoredEffect {
  readonly delivery: Delivery;
}

/**
 * Emails and posts. Those that a killed process left half sent become `unknown`, because they may have arrived. This is
 * safe because only the holder of the live database sends.
 */
export const EMAILS: EffectLedger<'email', StoredDelivery> = {
  kind: 'email',
  read: async (reader) =>
    (await readDeliveries(reader)).map((delivery) => ({
      delivery,
      reference: fingerprintOf(delivery),
      fate: delivery.state === 'sending' ? ('sending' as const) : EVENT_OF[delivery.state],
      attempt: delivery.tried_at.toISOString(),
    })),
  entry: (found, event, now) => {
    const after = deliveryAfter(found, now);
    return after && { ...entryAbout(after, now), event };
  },
  store: async (transaction, found, now) => {
    for (const one of found) {
      const after = deliveryAfter(one, now);
      if (one.store !== undefined && after !== undefined) await storeDelivery(transaction, after);
    }
  },
};

/** A delivery on which the journal and the database differ, as both have it afterwards. */
export function deliveryAfter(
  { row, last, store: kind }: Difference<EntryOf<'email'>, StoredDelivery>,
  now: Date,
): Delivery | undefined {
  const before = last === undefined ? row?.delivery : begun(last, new Date(last.attempt), last.figures);
  if (before === undefined || kind === undefined) return before;
  const at = last === undefined || last.event === 'sending' ? now : new Date(last.at);
  return settled(before, { kind, words: last?.note ?? INTERRUPTED }, at);
}
