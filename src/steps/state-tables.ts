import { z } from 'zod';
import { readSql } from '../columns.js';
import type { State } from '../state/state.js';
import { identifier } from '../warehouse/duckdb.js';
import { rowSchema } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import type { Using } from './parts.js';

const TABLE_COLUMNS = readSql(import.meta.url, 'statements/table-columns.sql');
const columnRow = z.object({ name: z.string(), type: z.string() });

/** What the history has copies of, for its views and for analysts: tables of the state, by their names there. */
const COPIES: Readonly<Record<string, string>> = {
  day_failures: 'day_failures',
  deliveries: 'emails',
  notes: 'notes',
  page_choices: 'choices',
  page_skips: 'skips',
  platform_facts: 'platform_facts',
  runs: 'runs',
  agent_jobs: 'jobs',
  agent_messages: 'messages',
  job_transitions:
    '(SELECT *, row_number() OVER (PARTITION BY job ORDER BY rowid) AS number FROM job_changes)',
  pull_requests: 'pull_requests',
  agent_pauses: 'prompt_pauses',
};

/** The rows that were last copied into a database by this process. */
const copied = new WeakMap<Warehouse, Map<string, string>>();

/** Brings the history's copies of tables of the state up to date. */
export async function copyStateTables({ state, store }: Using<'state' | 'store'>): Promise<void> {
  const known = copied.get(store) ?? new Map<string, string>();
  copied.set(store, known);
  for (const [name, own] of Object.entries(COPIES)) {
    const columns = await store.query(TABLE_COLUMNS, columnRow, { name });
    const rows = rowsOf(state, own, columns);
    if (known.get(name) === rows) continue;
    await store.transaction(async (transaction) => {
      await transaction.execute(`DELETE FROM ${identifier(name)}`);
      await transaction.execute(
        `INSERT INTO ${identifier(name)} BY NAME SELECT unnest($rows::JSON::STRUCT(${typesOf(columns)})[], max_depth := 2)`,
        { rows },
      );
    });
    known.set(name, rows);
  }
}

type Column = z.infer<typeof columnRow>;

const typesOf = (columns: readonly Column[]): string =>
  columns.map(({ name, type }) => `${identifier(name)} ${type}`).join(', ');

/** The columns of a table of the state that the history has too, as JSON. Lists are stored as JSON already. */
function rowsOf(state: State, table: string, columns: readonly Column[]): string {
  const valueOf = (value: z.core.util.JSONType | undefined, type: string) =>
    type.endsWith('[]') ? z.json().parse(JSON.parse(z.string().parse(value))) : value;
  const rows = state
    .all(`SELECT * FROM ${table}`, rowSchema)
    .map((row) => Object.fromEntries(columns.map(({ name, type }) => [name, valueOf(row[name], type)])));
  return JSON.stringify(rows);
}
