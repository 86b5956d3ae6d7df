import { dirname } from 'node:path';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { openState } from '../../src/state/open.js';
import { inDuckDb } from '../duckdb.js';

/**
 * The contents of a database file, read with separate SQL: nothing here comes from the product, so that no bug in its
 * reading can hide one in its writing. For each part, `statements/` has its query.
 */
const booksSchema = z.object({
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
  jobs: z.array(
    z.object({
      id: z.number(),
      path: z.string(),
      state: z.string(),
      prompt: z.string(),
      remote_id: z.string().nullable(),
      pr_link: z.string().nullable(),
    }),
  ),
  transitions: z.array(
    z.object({
      job: z.number(),
      number: z.number(),
      message: z.number().nullable(),
      from_state: z.string().nullable(),
      to_state: z.string(),
    }),
  ),
  messages: z.array(z.object({ id: z.number(), job: z.number(), state: z.string(), prompt: z.string() })),
  deliveries: z.array(
    z.object({
      report: z.string(),
      period: z.string(),
      recipient: z.string(),
      state: z.string(),
      message_id: z.string(),
      attempts: z.number(),
    }),
  ),
  uses: z.array(z.object({ used_ms: z.number(), requests: z.number() })),
  restatements: z.array(z.object({ restatement: z.string() })),
  runs: z.array(z.object({ run: z.string(), step: z.string(), outcome: z.string(), started_ms: z.number() })),
});
export type Books = z.infer<typeof booksSchema>;

const USES = 'SELECT 1000 * unixepoch(minute) AS used_ms, requests FROM requests';

const STATEMENTS = Object.keys(booksSchema.omit({ uses: true }).shape).map((name) => {
  const file = new URL(`statements/${name}.sql`, import.meta.url);
  return [name, readFileSync(file, 'utf8')] as const;
});

/**
 * Reads a database as the next process to open it will find it, log included, without changing it. Undefined for a file
 * without tables, which a command leaves if it is killed before it creates any.
 */
export const readBooks = (file: string): Promise<Books | undefined> =>
  inDuckDb(
    async (connection) => {
      const rowsOf = async (sql: string) => (await connection.runAndReadAll(sql)).getRowObjectsJson();
      const tables = await rowsOf("FROM duckdb_tables() WHERE table_name = 'deliveries'");
      if (tables.length === 0) return undefined;
      const books = STATEMENTS.map(async ([name, sql]) => [name, await rowsOf(sql)] as const);
      const uses = await usesBeside(file);
      return booksSchema.parse({ ...Object.fromEntries(await Promise.all(books)), uses });
    },
    file,
    { access_mode: 'READ_ONLY', threads: '1' },
  );

/** The requests that the state beside a database counts. */
async function usesBeside(file: string): Promise<Books['uses']> {
  const state = await openState(dirname(file));
  try {
    return state?.all(USES, booksSchema.shape.uses.element) ?? [];
  } finally {
    state?.close();
  }
}
