import { z } from 'zod';
import { readSql, timestampColumn } from '../columns.js';
import type { DayRange } from '../day.js';
import type { State } from './state.js';

const LAST_VERIFICATION = readSql(import.meta.url, 'statements/last-verification.sql');
const RECORD_VERIFICATION = readSql(import.meta.url, 'statements/record-verification.sql');

const lastRow = z.object({ verified_at: timestampColumn.nullable() });

/** When the stored history of a project was last compared with the platform, or last before a time. */
export const readLastVerification = (
  state: State,
  project: string,
  before: Date | null = null,
): Date | undefined => state.get(LAST_VERIFICATION, lastRow, { project, before })?.verified_at ?? undefined;

/** Records that a range of stored days was compared with the totals of the platform, and how many differed. */
export const recordVerification = (
  state: State,
  project: string,
  { first, last }: DayRange,
  differing: number,
  now: Date,
): Promise<number> =>
  state.transaction(() =>
    state.run(RECORD_VERIFICATION, { project, first, last, days_differing: differing, now }),
  );
