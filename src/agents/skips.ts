import { z } from 'zod';
import type { Day } from '../day.js';
import { inSequence } from '../format/days.js';
import { dayColumn, type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { type Reason, storedReason } from './reasons.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const SKIPS_OF_PROJECT = statement('skips-of-project');
const RECORD_SKIP = statement('record-skip');
const FORGET_SKIP = statement('forget-skip');
const SKIP_CHOICE = statement('skip-choice');
const FORGET_SKIPPED_CHOICE = statement('forget-skipped-choice');
const NEAR_PATHS = statement('near-paths');

const skipRow = z.object({
  path: z.string(),
  skipped_at: timestampColumn,
  skipped_until: dayColumn.nullable(),
});
/** A page to skip until a day, or until the skip is undone. */
export type Skip = z.infer<typeof skipRow>;

/** The pages of a project that are skipped now. */
export const readSkips = (reader: Reader, project: string, now: Date): Promise<Skip[]> =>
  reader.query(SKIPS_OF_PROJECT, skipRow, { project, now });

const reasonOfSkip = (until: Day | null): Reason => ({ code: 'skipped', until });

export const skippedPages = (skips: readonly Skip[]): [path: string, why: Reason][] =>
  skips.map(({ path, skipped_until }) => [path, reasonOfSkip(skipped_until)]);

/** Skips a page from now on, replacing an earlier skip; the page is no longer proposed. */
export const skipPage = (
  warehouse: Warehouse,
  { project, path, now, until }: { project: string; path: string; now: Date; until: Day | null },
): Promise<void> =>
  warehouse.transaction(async (transaction) => {
    await transaction.execute(FORGET_SKIP, { project, path });
    await transaction.execute(RECORD_SKIP, { project, path, now, until });
    await transaction.execute(SKIP_CHOICE, { project, path, ...storedReason(reasonOfSkip(until)) });
  });

/** Ends a skip; the next selection considers the page again. */
export const unskipPage = (
  warehouse: Warehouse,
  { project, path }: { project: string; path: string },
): Promise<void> =>
  warehouse.transaction(async (transaction) => {
    await transaction.execute(FORGET_SKIP, { project, path });
    await transaction.execute(FORGET_SKIPPED_CHOICE, { project, path });
  });

/** An error message with similar paths if the history has no such page; undefined if it has one. */
export async function unknownPage(
  reader: Reader,
  project: string,
  path: string,
): Promise<string | undefined> {
  const rows = await reader.query(NEAR_PATHS, z.object({ path: z.string() }), { project, path });
  const near = rows.map((row) => row.path);
  if (near[0] === path) return undefined;
  return `the history has no such page${near.length === 0 ? '' : `; did you mean ${inSequence(near, 'or')}?`}`;
}
