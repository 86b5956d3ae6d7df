import { join } from 'node:path';
import { z } from 'zod';
import { openStore } from '../src/app/open.js';
import { type History, openHistory } from '../src/history/history.js';
import { type Parameters, type Reader, type Row, rowSchema, runStatement } from '../src/history/duckdb.js';
import type { HistoryStore } from '../src/history/store.js';
import { writeNext } from '../src/history/write.js';
import { afterTest } from './cleanup.js';
import { stateBeside } from './open-state.js';
import { tempDir } from './temp-dir.js';

/** The history at `path` as its worker has it, a new one by default, with the state beside it; closed after the test. */
export async function newStore(path?: string): Promise<HistoryStore> {
  const historyFile = path ?? join(await tempDir(), 'history.duckdb');
  const { state, worker } = await stateBeside({ path: historyFile });
  const store = openStore({ historyFile }, state, worker, {});
  afterTest(() => store.close());
  return store;
}

/** Writes what waits, and closes the files before the end of the test. */
export async function closeNow(store: HistoryStore): Promise<void> {
  await store.writeWaiting();
  await store.close();
  await (await stateBeside(store)).close();
}

/** Opens a history for some work, and closes it. */
export async function inHistory<Result>(path: string, work: (history: History) => Promise<Result>) {
  const history = await openHistory(path);
  return work(history).finally(() => history.close());
}

/** Puts the rows that a statement left in the table `page_views` where the view of that name reads them. */
export const STORE_VIEWS = `
  INSERT INTO internal.projects
  SELECT (SELECT coalesce(max(project_id), 0) FROM internal.projects) + row_number() OVER (ORDER BY project), project
  FROM (SELECT DISTINCT project FROM temp.page_views) ANTI JOIN internal.projects USING (project);
  INSERT INTO internal.paths
  SELECT (SELECT coalesce(max(path_id), 0) FROM internal.paths) + row_number() OVER (ORDER BY project_id, path), project_id, path, page
  FROM (SELECT project_id, path, any_value(page) AS page FROM temp.page_views JOIN internal.projects USING (project) GROUP BY ALL)
  ANTI JOIN internal.paths USING (project_id, path);
  DELETE FROM internal.counts;
  INSERT INTO internal.counts
  SELECT project_id, day, path_id, human, ai, total
  FROM temp.page_views JOIN internal.projects USING (project) JOIN internal.paths USING (project_id, path)
  ORDER BY ALL;
  DROP TABLE temp.page_views`;

/** Changes a history that nobody has open by a statement, as if it had been loaded so: also the view `page_views`. */
export const changeHistory = (path: string, sql: string, values: Parameters = {}): Promise<void> =>
  writeNext(path, {
    change: async (connection) => {
      const isOfViews = sql.includes('page_views');
      if (isOfViews) await connection.run('CREATE TEMP TABLE page_views AS FROM main.page_views');
      // A statement with values is only one; others may be several.
      if (Object.keys(values).length === 0) await connection.run(sql);
      else await runStatement(connection, sql, values);
      if (isOfViews) await connection.run(STORE_VIEWS);
    },
    beforeRename: () => undefined,
  });

/** As `changeHistory`, of a history whose worker has it open. */
export async function execute(store: HistoryStore, sql: string, values?: Parameters): Promise<void> {
  await store.writeWaiting();
  await store.close();
  await changeHistory(store.path, sql, values);
  // It looks at the new version, and forgets what it knew.
  await store.carried();
}

/** The rows of a query, whatever its columns are. */
export const rowsOf = (reader: Reader, sql: string, values?: Parameters): Promise<Row[]> =>
  reader.query(sql, rowSchema, values);

const plainRow = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]));

/** The values of a query, row by row; mostly, it has one column. */
export const valuesOf = async (reader: Reader, sql: string, values?: Parameters) =>
  (await reader.query(sql, plainRow, values)).flatMap((row) => Object.values(row));
