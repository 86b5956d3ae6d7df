import { startOfMinute, subDays, subHours, subMinutes } from 'date-fns';
import { z } from 'zod';
import { readSql, timestampColumn } from '../columns.js';
import { addDays, type Day, dayOf } from '../day.js';
import type { State } from './state.js';

const FACT = readSql(import.meta.url, 'statements/fact.sql');
const RECORD_FACT = readSql(import.meta.url, 'statements/record-fact.sql');
const FORGET_FACT = 'DELETE FROM platform_facts WHERE project = $project AND fact = $fact';

/** How long a limit of the platform is believed, and what it accepted is remembered: plans change. */
export const BELIEVED_DAYS = 30;

/** What a project can learn about its platform that is worth more than the requests that showed it. */
export interface PlatformFact<Value> {
  readonly name: string;
  readonly value: z.ZodType<Value>;
  /** Whether it is believed only for a time. */
  readonly isLimit: boolean;
}

const factRow = z.object({ value: z.string(), found_at: timestampColumn });

/** A fact about the platform; undefined if it is unknown, or a limit found too long before `now` or after it. */
export const readFact = <Value>(
  state: State,
  project: string,
  fact: PlatformFact<Value>,
  now: Date,
): Value | undefined => readLimit(state, project, fact, now)?.value;

/** As `readFact`, with the day from which a limit is not believed anymore, but found out again. */
export function readLimit<Value>(
  state: State,
  project: string,
  { name, value: schema, isLimit }: PlatformFact<Value>,
  now: Date,
): { readonly value: Value; readonly until: Day } | undefined {
  const since = subDays(now, BELIEVED_DAYS);
  const row = state.get(FACT, factRow, { project, fact: name, is_limit: isLimit, since, now });
  if (row === undefined) return undefined;
  return {
    value: schema.parse(JSON.parse(row.value)),
    until: addDays(dayOf(row.found_at), BELIEVED_DAYS + 1),
  };
}

/** Records a fact in place of what was known; undefined forgets it. */
export const recordFact = <Value>(
  state: State,
  project: string,
  { name }: PlatformFact<Value>,
  value: Value | undefined,
  now: Date,
): Promise<number> =>
  state.transaction(() =>
    value === undefined
      ? state.run(FORGET_FACT, { project, fact: name })
      : state.run(RECORD_FACT, { project, fact: name, value: JSON.stringify(value), now }),
  );

const COUNT_REQUESTS = readSql(import.meta.url, 'statements/count-requests.sql');
const COUNT_FROM_NOW = readSql(import.meta.url, 'statements/count-from-now.sql');
const RECENT_REQUESTS =
  'SELECT minute, requests FROM requests WHERE key = $key AND minute >= $since ORDER BY minute';
const MOST_ACCEPTED = readSql(import.meta.url, 'statements/most-accepted.sql');
const RECORD_REFUSAL = readSql(import.meta.url, 'statements/record-refusal.sql');
const RECORD_LIMIT = readSql(import.meta.url, 'statements/record-limit.sql');
const LIMIT_OF = 'SELECT * FROM request_limits WHERE key = $key';
const FORGET_OLD = 'DELETE FROM requests WHERE key = $key AND minute < $since';
const FORGET_FUTURE = 'DELETE FROM requests WHERE key = $key AND minute > $minute';

const minuteRow = z.object({ minute: timestampColumn, requests: z.int() });
const limitRow = z.object({
  refused_since: timestampColumn.nullable(),
  refused_at: timestampColumn.nullable(),
  paused_until: timestampColumn.nullable(),
  learned_limit: z.int().nullable(),
  learned_at: timestampColumn.nullable(),
});

/** Refusals without an accepted request in between: the first, the last, and the end of the pause after it. */
export interface Refusals {
  readonly since: Date;
  readonly at: Date;
  readonly until: Date;
}

/** The requests of a key, as far as they matter now. */
export interface KnownRequests {
  /** Requests sent in the last two hours, by minute. */
  readonly sent: readonly { readonly minute: Date; readonly requests: number }[];
  readonly refusals: Refusals | undefined;
  /** The requests an hour that the platform accepts, as its refusals taught; undefined if they taught nothing. */
  readonly limit: number | undefined;
}

/** What is known of the requests of a key as of `now`. */
export function readRequests(state: State, key: string, now: Date): KnownRequests {
  const found = state.get(LIMIT_OF, limitRow, { key });
  const { refused_since: since, refused_at: at, paused_until: until } = found ?? {};
  const { learned_limit: limit, learned_at: learnedAt } = found ?? {};
  const isBelieved = learnedAt !== undefined && learnedAt !== null && learnedAt > subDays(now, BELIEVED_DAYS);
  return {
    sent: state.all(RECENT_REQUESTS, minuteRow, { key, since: subHours(now, 2) }),
    refusals: since && at && until ? asOf({ since, at, until }, now) : undefined,
    limit: isBelieved ? (limit ?? undefined) : undefined,
  };
}

/** If the clock was set back since a refusal, its pause lasts as long as the server asked for. */
function asOf(refusals: Refusals, now: Date): Refusals {
  const aheadMs = refusals.at.getTime() - now.getTime();
  if (aheadMs <= 0) return refusals;
  const back = (time: Date) => new Date(time.getTime() - aheadMs);
  return { since: back(refusals.since), at: now, until: back(refusals.until) };
}

/** Counts the requests of a key in the state. */
export const requestsOf = (state: State, key: string) => ({
  read: async (now: Date): Promise<KnownRequests> => {
    const minute = startOfMinute(now);
    const isFuture = (known: KnownRequests) => known.sent.some((one) => one.minute > minute);
    if (isFuture(readRequests(state, key, now)))
      await state.transaction(() => {
        state.run(COUNT_FROM_NOW, { key, minute });
        state.run(FORGET_FUTURE, { key, minute });
      });
    return readRequests(state, key, now);
  },
  /**
   * Counts requests that were sent, and those of them that were refused. Changes nothing, and returns 0, if more than
   * `limit` would count in this hour.
   */
  count: (
    { sent, refused }: { readonly sent: number; readonly refused: number },
    now: Date,
    limit?: number,
  ): Promise<number> =>
    state.transaction(() => {
      state.run(FORGET_OLD, { key, since: subDays(now, BELIEVED_DAYS + 1) });
      return state.run(COUNT_REQUESTS, {
        key,
        minute: startOfMinute(now),
        requests: sent,
        refused,
        limit: limit ?? null,
        // It is not known when in their minute they were sent.
        since: subMinutes(now, 61),
      });
    }),
  recordRefusal: ({ since, at, until }: Refusals): Promise<number> =>
    state.change(RECORD_REFUSAL, { key, refused_since: since, refused_at: at, paused_until: until }),
  /** The most requests that were accepted in any hour of the thirty days before `until`. */
  mostAccepted: (until: Date): number =>
    state.get(MOST_ACCEPTED, z.object({ most: z.int().nullable() }), {
      key,
      since: subDays(until, BELIEVED_DAYS),
      until,
    })?.most ?? 0,
  /** Records that requests are accepted again, and the limit that this taught, if it taught one. */
  recordAccepted: (limit: number | undefined, now: Date): Promise<number> =>
    state.change(RECORD_LIMIT, { key, limit: limit ?? null, now }),
});
