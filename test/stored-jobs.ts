import { referenceOf } from '../src/agents/jobs.js';
import type { State } from '../src/state/state.js';
import type { Reader, Row } from '../src/history/duckdb.js';
import { rowsOf } from './open-history.js';

const JOBS = `
  SELECT * REPLACE (
    coalesce(weekly_human, 0) AS weekly_human,
    coalesce(weekly_ai, 0) AS weekly_ai,
    to_json(coalesce(weeks, []))::VARCHAR AS weeks
  )
  FROM agent_jobs ORDER BY id`;

/** Stores the jobs, messages and pull requests of a made-up history in the state, in place of those that it has. */
export async function storeJobsOf(reader: Reader, state: State): Promise<void> {
  const jobs = await rowsOf(reader, JOBS);
  const messages = await rowsOf(reader, 'FROM agent_messages ORDER BY id');
  const reviews = await rowsOf(reader, 'FROM pull_requests');
  const textOf = (value: Row[string] | undefined) => (typeof value === 'string' ? value : '');
  await state.transaction(() => {
    for (const table of ['job_changes', 'pull_requests', 'messages', 'jobs'])
      state.run(`DELETE FROM ${table}`);
    for (const job of jobs) {
      const reference = referenceOf(
        textOf(job['project']),
        textOf(job['path']),
        new Date(textOf(job['planned_at'])),
      );
      insert(state, 'jobs', { ...job, reference });
    }
    for (const message of messages)
      insert(state, 'messages', { ...message, reference: `message ${JSON.stringify(message['id'])}` });
    for (const review of reviews) insert(state, 'pull_requests', review);
  });
}

/** Stores the other tables of a made-up history in the state, in place of what it has. */
export async function storeTablesOf(reader: Reader, state: State): Promise<void> {
  for (const table of ['choices', 'skips', 'notes', 'runs']) {
    const rows = await rowsOf(reader, `FROM ${table}`);
    await state.transaction(() => {
      state.run(`DELETE FROM ${table}`);
      for (const row of rows) insert(state, table, row);
    });
  }
}

/** Inserts one row with these columns. */
export function insert(state: State, table: string, row: Readonly<Record<string, unknown>>): void {
  const names = Object.keys(row);
  state.run(
    `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map((name) => `$${name}`).join(', ')})`,
    row,
  );
}
