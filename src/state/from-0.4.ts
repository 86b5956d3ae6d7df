import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { StorageError } from '../errors.js';
import { emptyState } from './open.js';
import { type SavedState, saveState } from './copies.js';
import type { State } from './state.js';

type Row = Readonly<Record<string, unknown>>;

/** The times of an attempt to send something: when the last one of a job, message or email began. */
const ATTEMPTS = { jobs: 'submitted_at', messages: 'submitted_at', emails: 'tried_at' } as const;

/** The rows of a state's tables, which a database of Readership 0.4 had. */
type ImportedTables = ReadonlyMap<string, readonly Row[]>;

const timeOf = (row: Row, column: string): string => z.string().catch('').parse(row[column]);

/** When each attempt began, the oldest first: their numbers count from 1. */
function attemptsIn(tables: ImportedTables): string[] {
  const times = Object.entries(ATTEMPTS).flatMap(([table, column]) =>
    (tables.get(table) ?? []).map((row) => timeOf(row, column)),
  );
  return times.filter((at) => at !== '').sort();
}

const lineSchema = z.looseObject({
  effect: z.string(),
  event: z.string().optional(),
  attempt: z.string().optional(),
});

/** Throws a `StorageError` if the `effects.log` of 0.4 has an attempt that its database does not have. */
export function expectEveryAttempt(log: string, source: string, tables: ImportedTables): void {
  const last = attemptsIn(tables).at(-1) ?? '';
  for (const line of readFileSync(log, 'utf8').split('\n')) {
    if (line === '') continue;
    const { attempt = '' } = lineSchema.parse(JSON.parse(line));
    if (attempt > last)
      throw new StorageError(
        `${log} has an attempt to send something at ${attempt} that ${source} does not have. Nothing was changed. ` +
          'First let Readership 0.4 store it, by its own command: readership publish',
      );
  }
}

/** The state with these rows, as a history would carry it. Its copy is beside the file at `path` for a moment. */
export async function importState(tables: ImportedTables, path: string): Promise<SavedState> {
  const state = emptyState();
  try {
    await fillState(state, tables);
    return saveState(state, path);
  } finally {
    state.close();
  }
}

async function fillState(state: State, tables: ImportedTables): Promise<void> {
  let attempt = 0;
  const numbers = new Map<Row, number>();
  const tried = Object.entries(ATTEMPTS).flatMap(([table, column]) =>
    (tables.get(table) ?? []).map((row) => ({ row, at: timeOf(row, column) })),
  );
  for (const { row, at } of tried.sort((one, other) => (one.at < other.at ? -1 : 1)))
    if (at !== '') numbers.set(row, ++attempt);
  await state.transaction(() => {
    for (const [table, rows] of tables)
      for (const row of rows) {
        const number = numbers.get(row);
        insert(state, table, {
          ...row,
          ...(table === 'workspace' && { only: 1, attempt }),
          ...(number !== undefined && { attempt: number }),
        });
      }
    state.run('UPDATE workspace SET attempted_at = $at', { at: attemptsIn(tables).at(-1) ?? null });
  });
}

function insert(state: State, table: string, row: Row): void {
  const names = Object.keys(row);
  const values = names.map((name) => `$${name}`).join(', ');
  state.run(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${values})`, row);
}
