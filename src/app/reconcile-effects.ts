import { reconcileJobs, reconcileMessages } from '../agents/reconcile.js';
import { counted } from '../format/numbers.js';
import type { Delivery } from '../mail/delivery.js';
import { reconcileDeliveries } from '../mail/ledger.js';
import type { Reconciliation } from '../warehouse/effect.js';
import type { EffectsJournal } from '../warehouse/effects.js';
import type { Warehouse } from '../warehouse/warehouse.js';

/** What making journal and database agree came to. */
export interface Reconciled {
  /** For a person, in one line; undefined when both agreed. */
  readonly words: string | undefined;
  /** Emails that may have arrived or not, as was not known before. */
  readonly unknownDeliveries: readonly Delivery[];
}

/**
 * Makes the effects journal and the ledgers of the database agree, both ways: done whenever the live database has been
 * opened, before anything else is decided. Nothing is sent.
 */
export async function reconcileEffects(
  journal: EffectsJournal,
  warehouse: Warehouse,
  now: Date,
): Promise<Reconciled> {
  const jobs = await reconcileJobs(journal, warehouse, now);
  const messages = await reconcileMessages(journal, warehouse, now);
  const { deliveries, ...emails } = await reconcileDeliveries({ journal, warehouse }, now);
  const words = [
    ...(journal.cutBytes > 0 ? [`the torn last line of ${journal.path} was cut off`] : []),
    ...wordsOf({ job: jobs, message: messages, email: emails }, journal),
  ];
  return {
    words: words.length === 0 ? undefined : `Effects journal: ${words.join('; ')}.`,
    unknownDeliveries: deliveries,
  };
}

function wordsOf(
  kinds: Readonly<Record<'job' | 'message' | 'email', Reconciliation>>,
  { found }: EffectsJournal,
): string[] {
  const list = (count: (of: Reconciliation) => number): string | undefined => {
    const parts = Object.entries(kinds).flatMap(([kind, of]) =>
      count(of) > 0 ? counted(count(of), kind) : [],
    );
    return parts.length === 0 ? undefined : parts.join(', ');
  };
  const stored = list((of) => of.stored);
  const unknown = list((of) => of.unknown);
  const written = list((of) => of.written);
  return [
    ...(stored === undefined ? [] : [`the database did not know what became of ${stored}, and does now`]),
    ...(unknown === undefined
      ? []
      : [`${unknown} may have been sent or not, and will not be sent again by itself: readership status`]),
    ...(written === undefined
      ? []
      : [`it ${found ? 'lacked' : 'was missing; the database knew of'} ${written}, which it has now`]),
  ];
}
