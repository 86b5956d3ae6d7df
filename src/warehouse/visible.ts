import { z } from 'zod';
import { type Reader, readSql } from './query.js';

/** Of each step that ever failed, its latest outage: see `readOutages`. */
export const OUTAGES = readSql(import.meta.url, 'statements/outages.sql');

/** What no view shows. Of the other tables every column counts; `page_views` changes only with `day_loads` or `restatements`. */
export const BOOKKEEPING: Readonly<Record<string, 'all' | readonly string[]>> = {
  page_views: 'all',
  runs: 'all',
  request_uses: 'all',
  unfinished_pages: 'all',
  verifications: 'all',
  day_loads: ['attempted_at', 'loaded_at', 'failures'],
  agent_jobs: ['polls', 'next_poll_at'],
  pull_requests: ['checked_at', 'next_check_at'],
  workspace: ['lake'],
};

/** The live database, or the published file that is attached to it. */
export type Part = 'main' | 'publication';

/** What readers see of a database: a digest of each table, and for `runs` how each step ended last and which are out. */
export async function visibleState(
  reader: Reader,
  part: Part,
  now: Date,
): Promise<Readonly<Record<string, unknown>>> {
  const ofSteps = (sql: string) =>
    reader.query(
      `WITH runs AS (FROM ${part}.runs WHERE step <> 'publish') ${sql}`,
      z.record(z.string(), z.json()),
      { now },
    );
  return {
    ...(await tableDigests(reader, part, BOOKKEEPING)),
    runs: [
      await ofSteps(
        'SELECT step, arg_max(outcome, started_at) AS outcome FROM runs GROUP BY step ORDER BY step',
      ),
      await ofSteps(`SELECT step, since FROM (${OUTAGES}) WHERE over_at IS NULL ORDER BY step`),
    ],
  };
}

/** A digest of the rows of each table, whatever their order, without what is hidden. */
export async function tableDigests(
  reader: Reader,
  part: Part,
  hidden: typeof BOOKKEEPING = {},
): Promise<Readonly<Record<string, string>>> {
  const digests = (await tablesOf(reader, part)).flatMap((table) => {
    const left = hidden[table] ?? [];
    if (left === 'all') return [];
    const columns = left.length === 0 ? '*' : `* EXCLUDE (${left.join(', ')})`;
    return `SELECT '${table}' AS name, count(*) || ' ' || coalesce(sum(hash(seen)::HUGEINT), 0) AS digest FROM (SELECT ${columns} FROM ${part}.${table}) AS seen`;
  });
  const rows = await reader.query(
    digests.join('\nUNION ALL\n'),
    z.object({ name: z.string(), digest: z.string() }),
  );
  return Object.fromEntries(rows.map(({ name, digest }) => [name, digest]));
}

/** The tables that hold data. */
export async function tablesOf(reader: Reader, part: Part): Promise<string[]> {
  const rows = await reader.query(
    "SELECT table_name AS name FROM duckdb_tables() WHERE database_name = if($part = 'main', current_database(), $part) AND table_name <> 'schema_version' ORDER BY name",
    z.object({ name: z.string() }),
    { part },
  );
  return rows.map(({ name }) => name);
}
