import { z } from 'zod';
import { messageOf, StorageError } from '../errors.js';

/** The progress of an effect; `not-sent` may be sent again, `refused` will not be. */
const FATES = ['sending', 'sent', 'not-sent', 'refused', 'unknown'] as const;
export type Fate = (typeof FATES)[number];
/** How an attempt ended. */
export type Ending = Exclude<Fate, 'sending'>;

/** A time as the journal writes it: ISO 8601 in UTC. */
const moment = z.string().regex(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/, 'not a time such as 2026-11-21T03:00:00.000Z');

const common = {
  at: moment,
  event: z.enum(FATES),
  /** The same in every database that contains the effect. */
  ref: z.string().min(1),
  /** When the attempt in question began. */
  attempt: moment,
  /** The message from the platform, the server or a person. */
  note: z.string().optional(),
};

const prompted = { project: z.string(), path: z.string(), plannedAt: moment, prompt: z.string() };

/** Every entry contains enough to rebuild its row in the database. */
const entrySchema = z.discriminatedUnion('effect', [
  z.object({
    effect: z.literal('job'),
    ...{ ...common, ...prompted },
    remoteId: z.string().optional(),
    remoteStatus: z.string().optional(),
    prLink: z.string().optional(),
    reason: z.string(),
    /** Columns of `agent_jobs`. */
    evidence: z.record(z.string(), z.unknown()),
  }),
  z.object({
    effect: z.literal('message'),
    ...{ ...common, ...prompted },
    /** Reference of the job that it is for. */
    job: z.string(),
    origin: z.enum(['typed', 'askWhenNoChange']),
  }),
  z.object({
    effect: z.literal('email'),
    ...common,
    report: z.string(),
    project: z.string(),
    period: z.string(),
    recipient: z.string(),
    via: z.enum(['smtp', 'outbox', 'slack', 'teams', 'webhook']),
    messageId: z.string(),
    attempts: z.int(),
    figures: z.object({ days: z.int(), human: z.int(), ai: z.int() }).optional(),
  }),
]);
export type Entry = z.infer<typeof entrySchema>;

/** The line that identifies the journal's workspace. */
const ownerSchema = z.object({ effect: z.literal('workspace'), id: z.string().min(1) });
const lineSchema = z.discriminatedUnion('effect', [ownerSchema, ...entrySchema.options]);
export type Line = z.infer<typeof lineSchema>;
export type EntryOf<Kind extends Entry['effect']> = Extract<Entry, { effect: Kind }>;
export const isOfKind = <Kind extends Entry['effect']>(entry: Entry, kind: Kind): entry is EntryOf<Kind> =>
  entry.effect === kind;

type Without<Whole, Keys extends PropertyKey> = Whole extends unknown ? Omit<Whole, Keys> : never;
/** An effect to be sent: an entry before its first event. */
export type Intent = Without<Entry, 'at' | 'event' | 'attempt' | 'note'>;

/** How an attempt ended, with the message of the platform or server. */
export interface Outcome extends Pick<EntryOf<'job'>, 'note' | 'remoteId' | 'remoteStatus' | 'prLink'> {
  readonly event: Ending;
}

/** The last entry of an effect, and when each of its attempts began. */
export interface Effect<Of extends Entry = Entry> {
  readonly last: Of;
  readonly attempts: ReadonlySet<string>;
}

/** The parsed line; undefined if it is not valid, for example because it was cut short. */
export function lineIn(text: string): Line | undefined {
  try {
    return lineSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Parses a line. Throws a `StorageError` that says what to do if it is not valid. */
export function parseLine(line: string, path: string, number: number): Line {
  try {
    return lineSchema.parse(JSON.parse(line));
  } catch (cause) {
    const problem = cause instanceof z.ZodError ? z.prettifyError(cause) : messageOf(cause);
    throw new StorageError(
      `Line ${number} of the effects journal ${path} cannot be read: ${problem.replaceAll('\n', ' ')}\n` +
        `Nothing was sent. The journal prevents jobs, messages and emails from being sent twice, so restore an intact copy of it, ` +
        `or fix the line. If there is no copy, and the live database was not restored from an older one, ` +
        `move the file away: the next command rebuilds it from the database.\n  mv "${path}" "${path}.damaged"`,
      { cause },
    );
  }
}

/** How to reconcile an effect between the journal and the database. */
export interface Settlement {
  /** Which of the two is believed. */
  readonly knows: 'journal' | 'database';
  /** The state to store in the database. */
  readonly store?: Ending;
  /** The event to add to the journal. */
  readonly write?: Ending;
}

/** The process that was sending has ended, so nobody knows whether it was sent. */
const endingOf = (fate: Fate): Ending => (fate === 'sending' ? 'unknown' : fate);

/** An effect as stored in the database; `attempt` is when its last attempt began. */
export interface StoredEffect {
  readonly reference: string;
  readonly fate: Fate;
  readonly attempt: string;
}

/**
 * Reconciles an effect between the journal and the database. Attempts, not clocks, decide which of
 * the two is newer: an attempt that is missing from the journal was written to the database after
 * the journal was lost or restored. An effect that may have been sent is never marked as safe to
 * send again, unless a later entry says so.
 */
export function settle(
  journal: Pick<Effect, 'last' | 'attempts'> | undefined,
  stored: Omit<StoredEffect, 'reference'> | undefined,
): Settlement {
  const fate = journal === undefined ? 'not-sent' : endingOf(journal.last.event);
  const byJournal = (): Settlement => ({
    knows: 'journal',
    ...(fate === (stored?.fate ?? 'not-sent') ? {} : { store: fate }),
    ...(journal?.last.event === 'sending' ? { write: 'unknown' } : {}),
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

/** An effect on which the journal and the database differ. */
export interface Difference<Of extends Entry, Row extends StoredEffect> extends Settlement {
  readonly row: Row | undefined;
  /** The journal's last entry and the attempts in it, if the journal is the newer of the two. */
  readonly last: Of | undefined;
  readonly attempts: ReadonlySet<string>;
}

/** The effects to store or write so that the journal and the database agree. */
export function differences<Of extends Entry, Row extends StoredEffect>(
  known: ReadonlyMap<string, Effect<Of>>,
  rows: readonly Row[],
): Difference<Of, Row>[] {
  const stored = new Map(rows.map((row) => [row.reference, row]));
  return [...new Set([...known.keys(), ...stored.keys()])].flatMap((reference) => {
    const [effect, row] = [known.get(reference), stored.get(reference)];
    const settlement = settle(effect, row);
    if (settlement.store === undefined && settlement.write === undefined) return [];
    const newer = settlement.knows === 'journal' ? effect : undefined;
    return [{ ...settlement, row, last: newer?.last, attempts: newer?.attempts ?? new Set<string>() }];
  });
}

/** The result of reconciling a ledger with the journal. */
export interface Reconciliation {
  /** Effects, or outcomes of effects, that the database lacked. */
  readonly stored: number;
  /** Those of them that may or may not have been sent. */
  readonly unknown: number;
  /** Effects, or outcomes of effects, that the journal lacked. */
  readonly written: number;
}

/** Counts the results of `differences` for display. */
export const countedDifferences = (found: readonly Settlement[]): Reconciliation => ({
  stored: found.filter(({ store }) => store !== undefined).length,
  unknown: found.filter(({ store }) => store === 'unknown').length,
  written: found.filter(({ write, knows }) => write !== undefined && knows === 'database').length,
});
