import { z } from 'zod';
import { messageOf, StorageError } from '../errors.js';

/** What the journal says of an effect; `not-sent` may be sent again, `refused` will not be. */
const EVENTS = ['sending', 'sent', 'not-sent', 'refused', 'unknown'] as const;
type Event = (typeof EVENTS)[number];

/** A moment as the journal writes it: ISO 8601 in UTC. */
const moment = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/, 'not a moment such as 2026-11-21T03:00:00.000Z');

const common = {
  at: moment,
  event: z.enum(EVENTS),
  /** The same in every database that knows the effect. */
  ref: z.string().min(1),
  /** When the attempt began that the entry is about. */
  attempt: moment,
  /** What the platform, the server or a person said. */
  note: z.string().optional(),
};

const remote = {
  remoteId: z.string().optional(),
  remoteStatus: z.string().optional(),
  prLink: z.string().optional(),
};

/** Every entry has all that its row in the database can be made from. */
const entrySchema = z.discriminatedUnion('effect', [
  z.object({
    effect: z.literal('job'),
    ...common,
    project: z.string(),
    path: z.string(),
    plannedAt: moment,
    ...remote,
    reason: z.string(),
    /** Columns of `agent_jobs`. */
    evidence: z.record(z.string(), z.unknown()),
    prompt: z.string(),
  }),
  z.object({
    effect: z.literal('message'),
    ...common,
    project: z.string(),
    path: z.string(),
    /** Reference of the job that it is for. */
    job: z.string(),
    plannedAt: moment,
    origin: z.enum(['typed', 'askWhenNoChange']),
    prompt: z.string(),
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

/** The line that says which workspace the journal belongs to. */
const ownerSchema = z.object({ effect: z.literal('workspace'), id: z.string().min(1) });
const lineSchema = z.discriminatedUnion('effect', [ownerSchema, ...entrySchema.options]);
export type Line = z.infer<typeof lineSchema>;
export type EntryOf<Kind extends Entry['effect']> = Extract<Entry, { effect: Kind }>;
export const isOfKind = <Kind extends Entry['effect']>(entry: Entry, kind: Kind): entry is EntryOf<Kind> =>
  entry.effect === kind;

type Without<Whole, Keys extends PropertyKey> = Whole extends unknown ? Omit<Whole, Keys> : never;
/** What is to be sent: an entry before anything has happened. */
export type Intent = Without<Entry, 'at' | 'event' | 'attempt' | 'note'>;

/** How an attempt ended, and what the platform or the server said. */
export interface Outcome {
  readonly event: Exclude<Event, 'sending'>;
  readonly note?: string;
  readonly remoteId?: string;
  readonly remoteStatus?: string;
  readonly prLink?: string;
}

/** The last entry of an effect, and when each of its attempts began. */
export interface Effect<Of extends Entry = Entry> {
  readonly last: Of;
  readonly attempts: ReadonlySet<string>;
}

/** The line that a text is; undefined when it is none, as when it was cut short. */
export function lineIn(text: string): Line | undefined {
  try {
    return lineSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Reads a line. Throws a `StorageError` that says what to do when it cannot be read. */
export function parseLine(line: string, path: string, number: number): Line {
  try {
    return lineSchema.parse(JSON.parse(line));
  } catch (cause) {
    const problem = cause instanceof z.ZodError ? z.prettifyError(cause) : messageOf(cause);
    throw new StorageError(
      `Line ${number} of the effects journal ${path} cannot be read: ${problem.replaceAll('\n', ' ')}\n` +
        `Nothing was sent. The journal keeps jobs, messages and emails from being sent twice, so put back a whole copy of it, ` +
        `or correct the line. If there is no copy, and the live database was not restored from an older one, ` +
        `move the file away: the next command writes it again from the database.\n  mv "${path}" "${path}.damaged"`,
      { cause },
    );
  }
}

/** How far an effect has come, as a ledger of the database has it. */
export type Fate = 'unsent' | 'sending' | 'sent' | 'refused' | 'unknown';

/** What to do so that journal and database say the same, and which of the two knows more. */
export interface Settlement {
  readonly knows: 'journal' | 'database';
  /** The fate to store in the database. */
  readonly store?: Exclude<Fate, 'sending'>;
  /** The event to add to the journal. */
  readonly write?: Outcome['event'];
}

const FATES: Readonly<Record<Event, Exclude<Fate, 'sending'>>> = {
  // The process that wrote it is gone.
  ...{ sending: 'unknown', unknown: 'unknown' },
  ...{ sent: 'sent', refused: 'refused', 'not-sent': 'unsent' },
};

/** An effect as a row of the database has it; `attempt` is when its last attempt began. */
export interface StoredEffect {
  readonly reference: string;
  readonly fate: Fate;
  readonly attempt: string;
}

/**
 * Settles an effect between the journal and the database. Attempts, not clocks, say which of the two knows more: an
 * attempt that the journal does not have was written to the database after the journal was lost or put back. What may
 * have been sent never becomes something that may be sent again, unless a later entry says so.
 */
export function settle(
  journal: Pick<Effect, 'last' | 'attempts'> | undefined,
  stored: Omit<StoredEffect, 'reference'> | undefined,
): Settlement {
  const fate = journal === undefined ? 'unsent' : FATES[journal.last.event];
  const byJournal = (): Settlement => ({
    knows: 'journal',
    ...(fate === (stored?.fate ?? 'unsent') ? {} : { store: fate }),
    ...(journal?.last.event === 'sending' ? { write: 'unknown' } : {}),
  });
  if (stored === undefined || stored.fate === 'unsent') return byJournal();
  const ended = stored.fate === 'sending' ? 'unknown' : stored.fate;
  if (!journal?.attempts.has(stored.attempt))
    return { knows: 'database', ...(ended === stored.fate ? {} : { store: ended }), write: ended };
  const isOpen = journal.last.event === 'sending' || journal.last.event === 'unknown';
  const knowsMore = ended === 'sent' || (isOpen && ended === 'refused');
  if (journal.last.attempt !== stored.attempt || !knowsMore) return byJournal();
  return { knows: 'database', ...(fate === ended ? {} : { write: ended }) };
}

/** An effect on which journal and database differ. */
export interface Difference<Of extends Entry, Row extends StoredEffect> extends Settlement {
  readonly effect: Effect<Of> | undefined;
  readonly row: Row | undefined;
}

/** The effects that have to be stored or written so that journal and database say the same. */
export function differences<Of extends Entry, Row extends StoredEffect>(
  known: ReadonlyMap<string, Effect<Of>>,
  rows: readonly Row[],
): Difference<Of, Row>[] {
  const stored = new Map(rows.map((row) => [row.reference, row]));
  return [...new Set([...known.keys(), ...stored.keys()])]
    .map((reference) => ({ effect: known.get(reference), row: stored.get(reference) }))
    .map(({ effect, row }) => ({ effect, row, ...settle(effect, row) }))
    .filter(({ store, write }) => store !== undefined || write !== undefined);
}

/** What reconciling a ledger with the journal came to. */
export interface Reconciliation {
  /** Effects that the database did not know, or whose fate it did not know. */
  readonly stored: number;
  /** Those of them that may have been sent or not. */
  readonly unknown: number;
  /** Effects that the journal did not know, or whose outcome it did not know. */
  readonly written: number;
}

/** Counts what `differences` found, for a person. */
export const countedDifferences = (found: readonly Settlement[]): Reconciliation => ({
  stored: found.filter(({ store }) => store !== undefined).length,
  unknown: found.filter(({ store }) => store === 'unknown').length,
  written: found.filter(({ write, knows }) => write !== undefined && knows === 'database').length,
});
