import type { Reader } from '../warehouse/query.js';
import type { Transaction } from '../warehouse/transaction.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import type { Ending, JournalEntry, EntryOf } from './entries.js';
import type { EffectsJournal } from './journal.js';
import { type Difference, differences, type StoredEffect } from './settle.js';

/** A table of the database whose rows are effects, and how these become journal entries and back. */
export interface EffectLedger<Kind extends JournalEntry['effect'], Row extends StoredEffect> {
  readonly kind: Kind;
  readonly read: (reader: Reader) => Promise<readonly Row[]>;
  /** The entry that the journal lacks, based on whichever of the two has more information. */
  readonly entry: (
    found: Difference<EntryOf<Kind>, Row>,
    event: Ending,
    now: Date,
  ) => JournalEntry | undefined;
  /** Stores the effects, and outcomes of effects, that the database lacks. */
  readonly store: (
    transaction: Transaction,
    found: readonly Difference<EntryOf<Kind>, Row>[],
    now: Date,
  ) => Promise<void>;
}

/** Brings the effects of one kind in the journal and the database into agreement. Returns where they differed. */
export async function reconcile<Kind extends JournalEntry['effect'], Row extends StoredEffect>(
  ledger: EffectLedger<Kind, Row>,
  journal: EffectsJournal,
  warehouse: Warehouse,
  now: Date,
): Promise<Difference<EntryOf<Kind>, Row>[]> {
  const found = differences(journal.known(ledger.kind), await ledger.read(warehouse));
  if (found.length === 0) return found;
  await journal.append(
    found.flatMap((one) => (one.write === undefined ? [] : (ledger.entry(one, one.write, now) ?? []))),
  );
  await warehouse.transaction((transaction) => ledger.store(transaction, found, now));
  return found;
}
