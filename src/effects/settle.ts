import type { Effect, Ending, JournalEntry, Fate } from './entries.js';

/** How to reconcile an effect between the journal and the database. */
export interface Settlement {
  /** Whether the database lost a commit: the journal has the end of an attempt whose beginning it lacks. */
  readonly isLost?: boolean;
  /** Which of the two is believed. */
  readonly knows: 'journal' | 'database';
  /** The state to store in the database. */
  readonly store?: Ending;
  /** The event to add to the journal. */
  readonly write?: Ending;
}

/** The process that was sending has ended, so nobody knows whether it was sent. */
const endingOf = (fate: Fate): Ending => (fate === 'sending' ? 'unknown' : fate);

/** The state of an effect in the database; `attempt` is when its last attempt began. */
interface StoredFate {
  readonly fate: Fate;
  readonly attempt: string;
}
export interface StoredEffect extends StoredFate {
  readonly reference: string;
}

/**
 * Reconciles an effect between the journal and the database. Attempts, not clocks, decide which of
 * the two is newer: an attempt that is missing from the journal was written to the database after
 * the journal was lost or restored. An effect that may have been sent is never marked as safe to
 * send again, unless a later entry says so.
 */
export function settle(
  journal: Pick<Effect, 'last' | 'attempts'> | undefined,
  stored: StoredFate | undefined,
): Settlement {
  const fate = journal === undefined ? 'not-sent' : endingOf(journal.last.event);
  const byJournal = (): Settlement => ({
    knows: 'journal',
    ...(fate === (stored?.fate ?? 'not-sent') ? {} : { store: fate }),
    ...(journal?.last.event === 'sending' ? { write: 'unknown' } : {}),
    ...(isLost(journal, stored) ? { isLost: true } : {}),
  });
  // The database says that nothing was sent; the journal, which is written first, may know better.
  if (stored === undefined || stored.fate === 'not-sent') return byJournal();
  const ended = endingOf(stored.fate);
  if (!journal?.attempts.has(stored.attempt))
    return { knows: 'database', ...(ended === stored.fate ? {} : { store: ended }), write: ended };
  // The database may have an outcome that the journal lost. It is believed only if nothing will be sent again.
  const isOpen = journal.last.event === 'sending' || journal.last.event === 'unknown';
  const knowsMore = ended === 'sent' || (isOpen && ended === 'refused');
  if (journal.last.attempt !== stored.attempt || !knowsMore) return byJournal();
  return { knows: 'database', ...(fate === ended ? {} : { write: ended }) };
}

/** An attempt is committed before anything is sent, so its outcome proves that commit. */
const isLost = (journal: Pick<Effect, 'last'> | undefined, stored: StoredFate | undefined): boolean =>
  (journal?.last.event === 'sent' || journal?.last.event === 'refused') &&
  (stored?.fate === 'not-sent' || journal.last.attempt !== stored?.attempt);

/** An effect on which the journal and the database differ. */
export interface Difference<Of extends JournalEntry, Row extends StoredEffect> extends Settlement {
  readonly reference: string;
  readonly row: Row | undefined;
  /** The journal's last entry and the attempts in it, if the journal is the newer of the two. */
  readonly last: Of | undefined;
  readonly attempts: ReadonlySet<string>;
}

/** The effects to store or write so that the journal and the database agree. */
export function differences<Of extends JournalEntry, Row extends StoredEffect>(
  known: ReadonlyMap<string, Effect<Of>>,
  rows: readonly Row[],
): Difference<Of, Row>[] {
  const stored = new Map(rows.map((row) => [row.reference, row]));
  return [...new Set([...known.keys(), ...stored.keys()])].flatMap((reference) => {
    const [effect, row] = [known.get(reference), stored.get(reference)];
    const settlement = settle(effect, row);
    if (settlement.store === undefined && settlement.write === undefined) return [];
    const newer = settlement.knows === 'journal' ? effect : undefined;
    return [
      { ...settlement, reference, row, last: newer?.last, attempts: newer?.attempts ?? new Set<string>() },
    ];
  });
}

/** Counts the results of `differences` for display. */
export const countDifferences = (found: readonly Settlement[]) => ({
  /** Effects, or outcomes of effects, that the database lacked. */
  stored: found.filter(({ store }) => store !== undefined).length,
  /** Those of them that the database had, and lost. */
  lost: found.filter(({ isLost }) => isLost).length,
  /** Those of them that may or may not have been sent. */
  unknown: found.filter(({ store }) => store === 'unknown').length,
  /** Effects, or outcomes of effects, that the journal lacked. */
  written: found.filter(({ knows }) => knows === 'database').length,
});
