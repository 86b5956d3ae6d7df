import { subDays } from 'date-fns';
import { z } from 'zod';
import { readSql, timestampColumn } from '../columns.js';
import { addDays, type Day, dayOf } from '../day.js';
import type { State } from './state.js';

const FACT = readSql(import.meta.url, 'statements/fact.sql');
const RECORD_FACT = readSql(import.meta.url, 'statements/record-fact.sql');
const FORGET_FACT = 'DELETE FROM platform_facts WHERE project = $project AND fact = $fact';

/** How long a limit of the platform is believed: plans change. */
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
export const readFact = <Value>(...asked: Parameters<typeof readLimit<Value>>): Value | undefined =>
  readLimit(...asked)?.value;

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
