import { type DuckDBConnection, DuckDBBlobValue } from '@duckdb/node-api';
import { DatabaseSync } from '@photostructure/sqlite';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { inDuckDb } from '../duckdb.js';

// Both stores are read with separate SQL: nothing here comes from the product, so that no bug in its reading can hide
// one in its writing. For each part, `statements/` has its query.

const ofHistory = z.object({
  days: z.array(
    z.object({
      day: z.string(),
      state: z.enum(['provisional', 'final', 'inconsistent', 'failed']).nullable(),
      attempted_ms: z.number(),
      loaded_ms: z.number().nullable(),
      pages: z.number().nullable(),
      human: z.number().nullable(),
      ai: z.number().nullable(),
      total: z.number().nullable(),
      is_short: z.boolean(),
      fact_pages: z.number(),
      fact_paths: z.number(),
      fact_human: z.number(),
      fact_ai: z.number(),
      fact_total: z.number(),
      fingerprint: z.string(),
    }),
  ),
  restatements: z.array(z.object({ restatement: z.string() })),
});

const ofState = z.object({
  workspace: z.array(z.object({ id: z.string(), attempt: z.number() })),
  jobs: z.array(
    z.object({
      id: z.number(),
      path: z.string(),
      state: z.string(),
      prompt: z.string(),
      attempt: z.number().nullable(),
      remote_id: z.string().nullable(),
      pr_link: z.string().nullable(),
    }),
  ),
  transitions: z.array(
    z.object({
      job: z.number(),
      message: z.number().nullable(),
      changed_at: z.string(),
      from_state: z.string().nullable(),
      to_state: z.string(),
    }),
  ),
  messages: z.array(
    z.object({
      id: z.number(),
      job: z.number(),
      state: z.string(),
      prompt: z.string(),
      attempt: z.number().nullable(),
    }),
  ),
  emails: z.array(
    z.object({
      report: z.string(),
      period: z.string(),
      recipient: z.string(),
      state: z.string(),
      message_id: z.string(),
      attempt: z.number(),
      attempts: z.number(),
    }),
  ),
  requests: z.array(z.object({ minute: z.string(), requests: z.number() })),
  runs: z.array(z.object({ run: z.string(), step: z.string(), outcome: z.string(), started_at: z.string() })),
});

export type StateBooks = z.infer<typeof ofState>;
/** What both stores have. */
export type Books = z.infer<typeof ofHistory> & StateBooks;

type Statements = readonly (readonly [name: string, sql: string])[];

function statementsOf(store: 'history' | 'state'): Statements {
  const directory = new URL(`statements/${store}/`, import.meta.url);
  return readdirSync(directory).map(
    (file) => [basename(file, '.sql'), readFileSync(new URL(file, directory), 'utf8')] as const,
  );
}

const OF_HISTORY = statementsOf('history');
const OF_STATE = statementsOf('state');

const READ_ONLY = { access_mode: 'READ_ONLY', threads: '1' };
const SAVED_STATE = 'SELECT database FROM internal.saved_state';

/**
 * What the stores of a data directory have, as the next process will find them, without changing them; undefined if a
 * command was killed before it created a state. No other process may have the state open.
 */
export async function readBooks(dataDir: string): Promise<Books | undefined> {
  const state = join(dataDir, 'state.db');
  if (!existsSync(state)) return undefined;
  const found = await readState(state);
  if (found === undefined) return undefined;
  const history = join(dataDir, 'history.duckdb');
  const stored = existsSync(history) ? await inDuckDb(readHistory, history, READ_ONLY) : undefined;
  return { ...(stored ?? { days: [], restatements: [] }), ...found };
}

/** What a history has, with the state that it carries. Throws if it cannot be read. */
export const readCarried = (file: string): Promise<Books> =>
  inDuckDb(
    async (connection) => {
      const stored = await readHistory(connection);
      const [[database] = []] = (await connection.runAndReadAll(SAVED_STATE)).getRows();
      const { bytes } = z.instanceof(DuckDBBlobValue).parse(database);
      const state = await withDirectory(async (directory) => {
        const path = join(directory, 'state.db');
        await writeFile(path, bytes);
        return readSound(path);
      });
      if (stored === undefined || state === undefined) throw new Error('it has no tables');
      return { ...stored, ...state };
    },
    file,
    READ_ONLY,
  );

/** Undefined for a file without tables. */
async function readHistory(connection: DuckDBConnection): Promise<z.infer<typeof ofHistory> | undefined> {
  const rowsOf = async (sql: string) => (await connection.runAndReadAll(sql)).getRowObjectsJson();
  if ((await rowsOf("FROM duckdb_tables() WHERE table_name = 'notes'")).length === 0) return undefined;
  const parts = OF_HISTORY.map(async ([name, sql]) => [name, await rowsOf(sql)] as const);
  return ofHistory.parse(Object.fromEntries(await Promise.all(parts)));
}

/**
 * What a state has; undefined for a file without tables, which a command leaves if it is killed before it creates any.
 * Reads a copy, with the journal of a killed process, because reading rolls that back. Throws if it is damaged.
 */
const readState = (path: string): Promise<StateBooks | undefined> =>
  withDirectory(async (directory) => {
    const copy = join(directory, 'state.db');
    for (const end of ['', '-journal']) if (existsSync(path + end)) await copyFile(path + end, copy + end);
    return readSound(copy);
  });

function readSound(path: string): StateBooks | undefined {
  const database = new DatabaseSync(path);
  try {
    const sound: unknown = database.prepare('PRAGMA integrity_check').get();
    if (!JSON.stringify(sound).includes('"ok"')) throw new Error(`it is damaged: ${JSON.stringify(sound)}`);
    if (database.prepare('SELECT name FROM sqlite_schema').all().length === 0) return undefined;
    return ofState.parse(
      Object.fromEntries(OF_STATE.map(([name, sql]) => [name, database.prepare(sql).all()])),
    );
  } finally {
    database.close();
  }
}

async function withDirectory<Result>(work: (directory: string) => Promise<Result>): Promise<Result> {
  const directory = await mkdtemp(join(tmpdir(), 'readership-books-'));
  return work(directory).finally(() => rm(directory, { recursive: true }));
}
