import { z } from 'zod';
import { readSql } from '../columns.js';
import type { Reader } from '../history/query.js';

const SETTLING = readSql(import.meta.url, 'statements/settling.sql');
export const settlingRow = z.object({
  restated_days: z.int(),
  oldest_change_days: z.int().nullable(),
  median_change_days: z.number(),
});
/** How long days took to settle, measured by loads that found changes. */
export type Settling = z.infer<typeof settlingRow>;

export const NO_CHANGES: Settling = { restated_days: 0, oldest_change_days: null, median_change_days: 0 };

export async function readSettling(reader: Reader, project: string, now: Date): Promise<Settling> {
  const [row] = await reader.query(SETTLING, settlingRow, { project, now });
  return row ?? NO_CHANGES;
}

/**
 * The `settleDays` recommended by the measured changes, if one came at the very end of the wait: later ones may have been
 * missed. Undefined if the setting seems long enough: a shorter one would save a few requests, and risk changes.
 */
export function recommendedSettleDays(
  { oldest_change_days: oldest }: Settling,
  settleDays: number,
): number | undefined {
  return oldest !== null && oldest >= settleDays ? oldest + 1 : undefined;
}
