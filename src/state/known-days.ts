import { z } from 'zod';
import { readSql } from '../columns.js';
import type { State } from './state.js';

const STORE_KNOWN_DAYS = readSql(import.meta.url, 'statements/store-known-days.sql');
const KNOWN_DAYS = 'SELECT project, days FROM known_days WHERE stamp = $stamp';

/** What is known of the stored days of projects, as JSON, while the history has this stamp. */
export const readKnownDays = (state: State, stamp: string): Map<string, string> =>
  new Map(
    state
      .all(KNOWN_DAYS, z.object({ project: z.string(), days: z.string() }), { stamp })
      .map(({ project, days }) => [project, days]),
  );

/** Stores it, in place of what was known before. */
export const storeKnownDays = (
  state: State,
  stamp: string,
  known: ReadonlyMap<string, string>,
): Promise<void> =>
  state.transaction(() => {
    state.run('DELETE FROM known_days');
    for (const [project, days] of known) state.run(STORE_KNOWN_DAYS, { project, stamp, days });
  });
