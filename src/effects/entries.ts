import { z } from 'zod';

/** The progress of an effect; `not-sent` may be sent again, `refused` will not be. */
const FATES = ['sending', 'sent', 'not-sent', 'refused', 'unknown'] as const;
export type Fate = (typeof FATES)[number];
/** How an attempt ended. */
export type Ending = Exclude<Fate, 'sending'>;

/** A time as the journal writes it: ISO 8601 in UTC. */
const time = z.string().regex(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/, 'not a time such as 2026-11-21T03:00:00.000Z');

const common = {
  at: time,
  event: z.enum(FATES),
  /** The same in every database that contains the effect. */
  ref: z.string().min(1),
  /** When the attempt in question began. */
  attempt: time,
  /** The message from the platform, the server or a person. */
  note: z.string().optional(),
};

const prompted = { project: z.string(), path: z.string(), plannedAt: time, prompt: z.string() };

/** Every entry contains enough to rebuild its row in the database. */
const entrySchema = z.discriminatedUnion('effect', [
  z.object({
    effect: z.literal('job'),
    ...common,
    ...prompted,
    remoteId: z.string().optional(),
    remoteStatus: z.string().optional(),
    prLink: z.string().optional(),
    reason: z.string(),
    /** Columns of `agent_jobs`. */
    evidence: z.record(z.string(), z.unknown()),
  }),
  z.object({
    effect: z.literal('message'),
    ...common,
    ...prompted,
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
export type JournalEntry = z.infer<typeof entrySchema>;

/** A machine, its host name for people, and the real path of a data directory on it. */
export const placeSchema = z.object({ machine: z.string(), host: z.string(), path: z.string() });
/** Where a workspace sends from: a copy elsewhere sends nothing. */
export type SendingPlace = Readonly<z.infer<typeof placeSchema>>;

/** The line that identifies the journal's workspace. */
const ownerSchema = z.object({ effect: z.literal('workspace'), id: z.string().min(1) });
/** The line that says where the workspace sends from, from then on. */
const adoptionSchema = placeSchema.extend({ effect: z.literal('place'), at: time });
export const lineSchema = z.discriminatedUnion('effect', [
  ownerSchema,
  adoptionSchema,
  ...entrySchema.options,
]);
export type JournalLine = z.infer<typeof lineSchema>;
export type EntryOf<Kind extends JournalEntry['effect']> = Extract<JournalEntry, { effect: Kind }>;
export const isOfKind = <Kind extends JournalEntry['effect']>(
  entry: JournalEntry,
  kind: Kind,
): entry is EntryOf<Kind> => entry.effect === kind;

type Without<Whole, Keys extends PropertyKey> = Whole extends unknown ? Omit<Whole, Keys> : never;
/** An effect to be sent: an entry before its first event. */
export type Intent = Without<JournalEntry, 'at' | 'event' | 'attempt' | 'note'>;

/** How an attempt ended, with the message of the platform or server. */
export interface Outcome extends Pick<EntryOf<'job'>, 'note' | 'remoteId' | 'remoteStatus' | 'prLink'> {
  readonly event: Ending;
}

/** The last entry of an effect, and when each of its attempts began. */
export interface Effect<Of extends JournalEntry = JournalEntry> {
  readonly last: Of;
  readonly attempts: ReadonlySet<string>;
}
