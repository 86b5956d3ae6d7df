import { z } from 'zod';
import type { Day } from '../day.js';
import { inSequence } from '../format/days.js';
import { dayColumn, type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import type { Job } from './job.js';
import { type Reason, storedReason } from './reasons.js';
import type { Selection } from './select.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const RECORD_CHOICES = statement('record-choices');
const SKIPS_OF_PROJECT = statement('skips-of-project');
const RECORD_SKIP = statement('record-skip');
const FORGET_SKIP = statement('forget-skip');
const SKIP_CHOICE = statement('skip-choice');
const FORGET_SKIPPED_CHOICE = statement('forget-skipped-choice');
const NEAR_PATHS = statement('near-paths');

const pathRow = z.object({ path: z.string() });

/** Stores which pages were flagged, are next in line or were left out, and since when, for reports. Writes only what has changed. */
export async function recordChoices(
  warehouse: Warehouse,
  project: string,
  { flagged, next, leftOut }: Selection,
  now: Date,
): Promise<void> {
  const choices = [...flagged, ...next, ...leftOut].map(
    ({ path, why, evidence: { weekly_human, weekly_ai } }) => ({
      path,
      is_flagged: why.code === 'flagged',
      ...storedReason(why),
      weekly_human,
      weekly_ai,
    }),
  );
  await warehouse.transaction((transaction) =>
    transaction.execute(RECORD_CHOICES, { project, now, choices: JSON.stringify(choices) }),
  );
}

const reasonOfSkip = (until: Day | null): Reason => ({ code: 'skipped', until });

const skipRow = pathRow
  .extend({ skipped_at: timestampColumn, skipped_until: dayColumn.nullable() })
  .transform((skip) => ({ ...skip, why: reasonOfSkip(skip.skipped_until) }));
/** A page to skip until a day, or until the skip is undone. */
export type Skip = z.infer<typeof skipRow>;

/** The pages of a project that are skipped now. */
export const readSkips = (reader: Reader, project: string, now: Date): Promise<Skip[]> =>
  reader.query(SKIPS_OF_PROJECT, skipRow, { project, now });

/** Skips a page from now on, replacing an earlier skip; the page is no longer flagged. */
export const skipPage = (
  warehouse: Warehouse,
  page: Pick<Job, 'project' | 'path'>,
  skip: { readonly now: Date; readonly until: Day | null },
): Promise<void> =>
  warehouse.transaction(async (transaction) => {
    await transaction.execute(FORGET_SKIP, page);
    await transaction.execute(RECORD_SKIP, { ...page, ...skip });
    await transaction.execute(SKIP_CHOICE, { ...page, ...storedReason(reasonOfSkip(skip.until)) });
  });

/** Ends a skip; the next selection considers the page again. */
export const unskipPage = (warehouse: Warehouse, page: Pick<Job, 'project' | 'path'>): Promise<void> =>
  warehouse.transaction(async (transaction) => {
    await transaction.execute(FORGET_SKIP, page);
    await transaction.execute(FORGET_SKIPPED_CHOICE, page);
  });

/** An error message with similar paths if the history has no such page; undefined if it has one. */
export async function unknownPage(reader: Reader, project: string, path: string) {
  const rows = await reader.query(NEAR_PATHS, pathRow, { project, path });
  const near = rows.map((row) => row.path);
  if (near[0] === path) return undefined;
  return `the history has no such page${near.length === 0 ? '' : `; did you mean ${inSequence(near, 'or')}?`}`;
}
