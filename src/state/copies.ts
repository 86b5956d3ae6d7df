import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { readSql } from '../columns.js';
import type { State } from './state.js';
import { readWorkspaceRow } from './workspace.js';

/** A copy of a state, as the history carries it: the bytes of a SQLite file, and what they belong to. */
export interface SavedState {
  /** The id of the workspace. */
  readonly workspace: string;
  /** The number of its last attempt to send something. */
  readonly attempt: number;
  /** How often jobs, messages, emails and skips had changed. */
  readonly changes: number;
  readonly database: Uint8Array;
}

/** Copies a state. Called by the worker, beside whose file at `path` the copy is for a moment. */
export function saveState(state: State, path: string): SavedState {
  const copy = `${path}.state`;
  // A process that was killed may have left one.
  rmSync(copy, { force: true });
  try {
    const { id, attempt, changes } = readWorkspaceRow(state);
    state.copyTo(copy);
    return { workspace: id, attempt, changes, database: readFileSync(copy) };
  } finally {
    rmSync(copy, { force: true });
  }
}

/** Writes a copy to a new, private file, and to disk. */
export function writeSaved({ database }: SavedState, path: string): void {
  writeFileSync(path, database, { mode: 0o600, flag: 'wx', flush: true });
}

/** The tables that analysts ask for, with the columns that the history has. */
const TABLES = {
  jobs: readSql(import.meta.url, 'statements/jobs-for-analysts.sql'),
  choices: 'SELECT * FROM choices ORDER BY project, path',
  skips: 'SELECT * FROM skips ORDER BY project, path',
  emails: readSql(import.meta.url, 'statements/emails-for-analysts.sql'),
  notes: 'SELECT * FROM notes ORDER BY project, day, text',
  runs: 'SELECT * FROM runs ORDER BY started_at',
  day_failures: 'SELECT * FROM day_failures ORDER BY project, day',
  first_days: readSql(import.meta.url, 'statements/first-days.sql'),
};

/** The rows of each table that analysts ask for, as JSON. */
export function readTables(state: State): Record<keyof typeof TABLES, string> {
  const rowsOf = (name: keyof typeof TABLES) => JSON.stringify(state.all(TABLES[name], z.unknown()));
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
