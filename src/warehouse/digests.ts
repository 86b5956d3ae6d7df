import { z } from 'zod';
import { identifier, literal } from './duckdb.js';
import { type Reader, readSql, rowSchema } from './query.js';

/** The latest outage of each step that ever failed: see `readOutages`. */
export const OUTAGES = readSql(import.meta.url, 'statements/outages.sql');

/**
 * What views show of the tables of which they do not show everything; null for nothing. `page_views` changes only with
 * `day_loads` or `restatements`.
 */
const BOOKKEEPING: Readonly<Record<string, string | null>> = {
  page_views: null,
  runs: null,
  platform_facts: 'SELECT * EXCLUDE (found_at)',
  day_loads: 'SELECT * EXCLUDE (attempted_at, loaded_at, failures)',
  day_failures: 'SELECT * EXCLUDE (attempted_at, failures)',
  agent_jobs: 'SELECT * EXCLUDE (polls, next_poll_at)',
  pull_requests: 'SELECT * EXCLUDE (checked_at, next_check_at)',
};

/** The live database, or the published file that is attached to it. */
type Part = 'main' | 'publication';

/** What readers see of a database: a digest of each table, with the last outcome of each step, and the steps' outages. */
export const visibleState = async (reader: Reader, part: Part, now: Date): Promise<unknown> => [
  await tableDigests(reader, part, {
    ...BOOKKEEPING,
    // Without any day, only the last successful export tells that there is none yet.
    runs: `SELECT step, arg_max(outcome, started_at), if(step = 'export' AND NOT EXISTS (FROM ${part}.day_loads), max(started_at) FILTER (outcome = 'done'), NULL) WHERE step <> 'publish' GROUP BY step`,
  }),
  await reader.query(
    `WITH runs AS (FROM ${part}.runs) SELECT step, since FROM (${OUTAGES}) WHERE over_at IS NULL ORDER BY step`,
    rowSchema,
    { now },
  ),
];

/** A digest of the rows of each table, in any order; of the tables in `counting`, only of what that selects. */
export async function tableDigests(
  reader: Reader,
  part: Part,
  counting: typeof BOOKKEEPING = {},
): Promise<Readonly<Record<string, string>>> {
  const digests = (await tablesOf(reader, part)).flatMap((table) => {
    const counts = counting[table];
    if (counts === null) return [];
    return `SELECT ${literal(table)} AS name, count(*) || ' ' || coalesce(sum(hash(seen)::HUGEINT), 0) AS digest FROM (FROM ${part}.${identifier(table)} ${counts ?? ''}) AS seen`;
  });
  const rows = await reader.query(
    digests.join('\nUNION ALL\n'),
    z.object({ name: z.string(), digest: z.string() }),
  );
  return Object.fromEntries(rows.map(({ name, digest }) => [name, digest]));
}

/** The tables that hold data, without those that a user made in another schema. */
export async function tablesOf(reader: Reader, part: Part): Promise<string[]> {
  const rows = await reader.query(
    "SELECT table_name AS name FROM duckdb_tables() WHERE database_name = if($part = 'main', current_database(), $part) AND schema_name = 'main' AND table_name <> 'schema_version' ORDER BY name",
    z.object({ name: z.string() }),
    { part },
  );
  return rows.map(({ name }) => name);
}
