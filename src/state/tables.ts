import { z } from 'zod';
import { readSql } from '../columns.js';
import type { State } from './state.js';

type Name = 'jobs' | 'choices' | 'skips' | 'emails' | 'notes' | 'runs' | 'day_failures' | 'first_days';

const row = z.object({ rows: z.string() });

/** What analysts ask of the state: the rows of each table as JSON. */
export function readTables(state: State): Record<Name, string> {
  const rowsOf = (name: Name): string =>
    state.get(readSql(import.meta.url, `tables/${name}.sql`), row)?.rows ?? '[]';
  return {
    jobs: rowsOf('jobs'),
    choices: rowsOf('choices'),
    skips: rowsOf('skips'),
    emails: rowsOf('emails'),
    notes: rowsOf('notes'),
    runs: rowsOf('runs'),
    day_failures: rowsOf('day_failures'),
    first_days: rowsOf('first_days'),
  };
}
