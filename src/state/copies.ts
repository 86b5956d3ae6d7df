import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { readSql } from '../columns.js';
import type { State } from './state.js';
import { readWorkspaceRow } from './workspace.js';

// Copies are read and written through `fs`, which no module that opens `state.db` may use: see database.ts.

/** A copy of a state, as the history carries it: the bytes of a SQLite file, and what they belong to. */
export type SavedState = ReturnType<typeof saveState>;

/** Copies a state. Called by the worker, beside whose file at `path` the copy is for a moment. */
export function saveState(state: State, path: string) {
  const copy = `${path}.state`;
  // A process that was killed may have left one.
  rmSync(copy, { force: true });
  try {
    const { id, attempt, changes } = readWorkspaceRow(state);
    state.copyTo(copy);
    const database: Uint8Array = readFileSync(copy);
    return { workspace: id, attempt, changes, database };
  } finally {
    rmSync(copy, { force: true });
  }
}

/** Writes a copy to a new, private file, and to disk. */
export function writeSaved({ database }: Pick<SavedState, 'database'>, path: string): void {
  writeFileSync(path, database, { mode: 0o600, flag: 'wx', flush: true });
}

/** The rows of each table that analysts ask for, as JSON, with the columns that the history has. */
export function readTables(state: State) {
  const rowsOf = (sql: string): string => JSON.stringify(state.all(sql, z.unknown()));
  return {
    jobs: rowsOf(readSql(import.meta.url, 'statements/jobs-for-analysts.sql')),
    choices: rowsOf('SELECT * FROM choices ORDER BY project, path'),
    skips: rowsOf('SELECT * FROM skips ORDER BY project, path'),
    emails: rowsOf(readSql(import.meta.url, 'statements/emails-for-analysts.sql')),
    notes: rowsOf('SELECT * FROM notes ORDER BY project, day, text'),
    runs: rowsOf('SELECT * FROM runs ORDER BY started_at'),
    day_failures: rowsOf('SELECT * FROM day_failures ORDER BY project, day'),
    first_days: rowsOf(readSql(import.meta.url, 'statements/first-days.sql')),
  };
}
