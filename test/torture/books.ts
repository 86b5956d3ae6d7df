import { DuckDBInstance } from '@duckdb/node-api';
import { readFileSync } from 'node:fs';
import { z } from 'zod';

/**
 * The contents of a database file, read with separate SQL: nothing here comes from the product, so that no bug in its
 * reading can hide one in its writing.
 */

const dayRow = z.object({
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
});
const jobRow = z.object({
  id: z.number(),
  path: z.string(),
  state: z.string(),
  prompt: z.string(),
  remote_id: z.string().nullable(),
  pr_link: z.string().nullable(),
});
const transitionRow = z.object({
  job: z.number(),
  number: z.number(),
  message: z.number().nullable(),
  from_state: z.string().nullable(),
  to_state: z.string(),
});
const messageRow = z.object({ id: z.number(), job: z.number(), state: z.string(), prompt: z.string() });
const deliveryRow = z.object({
  report: z.string(),
  period: z.string(),
  recipient: z.string(),
  state: z.string(),
  message_id: z.string(),
  attempts: z.number(),
});
const runRow = z.object({
  run: z.string(),
  step: z.string(),
  outcome: z.string(),
  started_ms: z.number(),
});
const useRow = z.object({ used_ms: z.number(), requests: z.number() });

export interface Books {
  readonly days: readonly z.infer<typeof dayRow>[];
  readonly jobs: readonly z.infer<typeof jobRow>[];
  readonly transitions: readonly z.infer<typeof transitionRow>[];
  readonly messages: readonly z.infer<typeof messageRow>[];
  readonly deliveries: readonly z.infer<typeof deliveryRow>[];
  readonly uses: readonly z.infer<typeof useRow>[];
  readonly restatements: readonly { readonly restatement: string }[];
  readonly runs: readonly z.infer<typeof runRow>[];
}

const statementOf = (name: string): string =>
  readFileSync(new URL(`statements/${name}.sql`, import.meta.url), 'utf8');
const STATEMENTS = {
  days: statementOf('days'),
  jobs: statementOf('jobs'),
  transitions: statementOf('transitions'),
  messages: statementOf('messages'),
  deliveries: statementOf('deliveries'),
  uses: statementOf('uses'),
  restatements: statementOf('restatements'),
  runs: statementOf('runs'),
};

/**
 * Reads a database as the next process to open it will find it, log included, without changing it. Undefined for a file
 * without tables, which a command leaves if it is killed before it creates any.
 */
export const readBooks = (file: string): Promise<Books | undefined> =>
  within(file, async (query) => {
    const tables = await query(
      "SELECT table_name AS name FROM duckdb_tables() WHERE table_name = 'deliveries'",
      z.object({ name: z.string() }),
    );
    return tables.length === 0 ? undefined : read(query);
  });

type Query = <Row>(sql: string, row: z.ZodType<Row>) => Promise<Row[]>;

const read = async (query: Query): Promise<Books> => ({
  days: await query(STATEMENTS.days, dayRow),
  jobs: await query(STATEMENTS.jobs, jobRow),
  transitions: await query(STATEMENTS.transitions, transitionRow),
  messages: await query(STATEMENTS.messages, messageRow),
  deliveries: await query(STATEMENTS.deliveries, deliveryRow),
  uses: await query(STATEMENTS.uses, useRow),
  restatements: await query(STATEMENTS.restatements, z.object({ restatement: z.string() })),
  runs: await query(STATEMENTS.runs, runRow),
});

async function within<Result>(file: string, work: (query: Query) => Promise<Result>): Promise<Result> {
  const instance = await DuckDBInstance.create(file, { access_mode: 'READ_ONLY', threads: '1' });
  const connection = await instance.connect();
  try {
    return await work(async (sql, row) => {
      const result = await connection.runAndReadAll(sql);
      return z.array(row).parse(result.getRowObjectsJson());
    });
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
