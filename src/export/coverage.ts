import { z } from 'zod';
import { type Day, type DayRange, daysIn } from '../day.js';
import { type Reader, readSql } from '../warehouse/query.js';
import type { DayLedger, DayState } from './plan.js';

const SETTLING = readSql(import.meta.url, 'statements/settling.sql');

const settlingRow = z.object({
  restated_days: z.int(),
  oldest_change_days: z.int().nullable(),
  median_change_days: z.number(),
});
/** How long days took to settle, measured by loads that found changes. */
export type Settling = z.infer<typeof settlingRow>;

/** How much of a range of days is stored. */
export interface Coverage {
  readonly first: Day | undefined;
  readonly last: Day | undefined;
  readonly stored: number;
  /** Days of the range that were never loaded. */
  readonly gaps: readonly Day[];
  readonly days: Readonly<Record<DayState, readonly Day[]>>;
}

/** The ledger's coverage of a range. */
export function coverageOf(ledger: DayLedger, range: DayRange | undefined): Coverage {
  const records = [...ledger.values()];
  const stored = records.filter((record) => record.is_stored);
  const inState = (state: DayState) =>
    records.filter((record) => record.state === state).map(({ day }) => day);
  return {
    first: stored[0]?.day,
    last: stored.at(-1)?.day,
    stored: stored.length,
    gaps: range === undefined ? [] : daysIn(range).filter((day) => !ledger.has(day)),
    days: {
      final: inState('final'),
      provisional: inState('provisional'),
      inconsistent: inState('inconsistent'),
      failed: inState('failed'),
    },
  };
}

export async function readSettling(reader: Reader, project: string, now: Date): Promise<Settling> {
  const [row] = await reader.query(SETTLING, settlingRow, { project, now });
  return row ?? { restated_days: 0, oldest_change_days: null, median_change_days: 0 };
}

/**
 * The `settleDays` recommended by the measured changes: the age of the oldest change, plus a day if
 * it came at the very end of the wait, since later changes may have been missed. Undefined if no
 * change was seen.
 */
export function recommendedSettleDays(
  { oldest_change_days: oldest }: Settling,
  settleDays: number,
): number | undefined {
  if (oldest === null) return undefined;
  return oldest >= settleDays ? oldest + 1 : oldest;
}
