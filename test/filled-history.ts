import { dirname } from 'node:path';
import { expect } from 'vitest';
import { readerOf } from '../src/history/duckdb.js';
import { storeTables } from '../src/history/state-copy.js';
import { writeNext } from '../src/history/write.js';
import { readTables } from '../src/state/copies.js';
import { openState } from '../src/state/open.js';
import { changeHistory, inHistory, STORE_VIEWS } from './open-history.js';
import { MADE_UP_JOBS, MADE_UP_TABLES, type TestHistory } from './reports/history.js';
import { storeJobsOf, storeTablesOf } from './stored-jobs.js';

/** Fills a history, and the state beside it, as if everything had been loaded and done. */
export async function fillHistory(
  path: string,
  fill: (history: TestHistory) => Promise<unknown>,
): Promise<void> {
  const state = (await openState(dirname(path))) ?? expect.fail('there is no state');
  const tables = MADE_UP_TABLES.replaceAll('CREATE TABLE', 'CREATE TEMP TABLE');
  await writeNext(path, {
    change: async (connection) => {
      const reader = readerOf(connection);
      await connection.run(`${tables} CREATE TEMP VIEW jobs AS ${MADE_UP_JOBS}`);
      await connection.run('CREATE TEMP TABLE page_views AS FROM main.page_views');
      await fill({ reader, run: (sql) => connection.run(sql) });
      await storeJobsOf(reader, state);
      await storeTablesOf(reader, state);
      await connection.run(STORE_VIEWS);
      await connection.run('DROP VIEW temp.jobs');
      await storeTables(connection, readTables(state));
    },
    beforeRename: () => undefined,
  });
  state.close();
}

/** Changes such a history and its state. */
export async function changeFilled(path: string, ...changes: readonly string[]): Promise<void> {
  const state = (await openState(dirname(path))) ?? expect.fail('there is no state');
  for (const change of changes)
    if (change.includes('agent_jobs'))
      await state.transaction(() => state.run(change.replaceAll('agent_jobs', 'jobs')));
    else await changeHistory(path, change);
  await inHistory(path, (history) => storeTablesOf(history, state));
  state.close();
}
