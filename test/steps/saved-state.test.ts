import { readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { readDictionary, TABLES } from '../../src/sql/dictionary.js';
import { readWorkspaceRow } from '../../src/state/workspace.js';
import { publishStep } from '../../src/steps/publish.js';
import { openHistory } from '../../src/warehouse/published.js';
import { publishedState } from '../../src/warehouse/saved-state.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { type OpenState, stateBeside } from '../open-state.js';
import { inHistory, liveWarehouse, valuesOf } from '../open-warehouse.js';
import { addJob, change, reopened, valueOf } from '../state/new-state.js';
import { tempDir } from '../temp-dir.js';
import { page, store } from '../warehouse/stored-days.js';
import { partsOf } from './parts-of.js';

let live: Warehouse;
let opened: OpenState;
let historyFile: string;
beforeEach(async () => {
  live = await liveWarehouse();
  opened = await stateBeside(live);
  historyFile = join(dirname(live.path), 'history.duckdb');
});

const publish = async () => {
  const parts = partsOf(live, { workspace: { historyFile }, state: opened.state });
  return (await publishStep(parts)).summary;
};

/** The state that the published history carries, opened. */
async function carried() {
  const { database, workspace, attempt } = (await publishedState(live, historyFile)) ?? expect.fail('none');
  const directory = await tempDir();
  await writeFile(join(directory, 'state.db'), database);
  const state = await reopened(directory);
  state.expectSound();
  expect({ id: workspace, attempt }).toMatchObject({ id: readWorkspaceRow(state).id });
  return { state, attempt };
}

it('each published history carries the whole state, without pages of unfinished days and counts of requests', async () => {
  const { state, sender } = opened;
  await addJob(state);
  await change(state, `INSERT INTO kept_pages VALUES ('prj_1', '2026-11-01', 0, $page)`, {
    page: 'x'.repeat(5e6),
  });
  await change(state, `INSERT INTO requests VALUES ('key', '2026-11-18T05:00', 9, 0)`);
  await sender.begin(
    new Date('2026-11-18T05:00:00Z'),
    () => true,
    () => undefined,
  );
  await store(live, 'prj_1', { '2026-11-01': [page('/a', 3, 1)] });
  expect(await publish()).toContain('published');

  const { state: copy, attempt } = await carried();
  expect(attempt).toBe(1);
  expect(readWorkspaceRow(copy)).toEqual(readWorkspaceRow(state));
  expect(valueOf(copy, 'SELECT path FROM jobs')).toBe('/guide');
  expect(valueOf(copy, 'SELECT (SELECT count(*) FROM kept_pages) + (SELECT count(*) FROM requests)')).toBe(0);
  expect((await publishedState(live, historyFile))?.database.length).toBeLessThan(1e6);
  // The state itself still has them.
  expect(valueOf(state, 'SELECT count(*) FROM kept_pages')).toBe(1);
});

it('that makes no publication due, and each one that is due has the newest', async () => {
  await store(live, 'prj_1', { '2026-11-01': [page('/a', 3, 1)] });
  await publish();
  await change(opened.state, `INSERT INTO requests VALUES ('key', '2026-11-18T05:00', 9, 0)`);
  expect(await publish()).toBe('nothing changed since the last time');
  await change(opened.state, `INSERT INTO skips VALUES ('prj_1', '/a', '2026-11-18T05:00:00.000Z', NULL)`);
  await store(live, 'prj_1', { '2026-11-02': [page('/a', 3, 1)] });
  expect(await publish()).toContain('published');
  expect(valueOf((await carried()).state, 'SELECT count(*) FROM skips')).toBe(1);
});

it('is in the published history only, is not listed, and leaves no other file', async () => {
  await store(live, 'prj_1', { '2026-11-01': [page('/a', 3, 1)] });
  await writeFile(`${historyFile}.state`, 'what a killed process left');
  await publish();
  const count = "SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'internal'";
  expect(await valuesOf(live, count)).toEqual([0]);
  expect(await inHistory(historyFile, (history) => valuesOf(history, count))).toEqual([1]);
  const history = await openHistory(historyFile);
  try {
    expect((await readDictionary(history)).map(({ name }) => name)).not.toContain('saved_state');
    expect(await valuesOf(history, `SELECT name FROM (${TABLES}) WHERE name = 'saved_state'`)).toEqual([]);
  } finally {
    history.close();
  }
  expect((await readdir(dirname(live.path))).filter((name) => name.endsWith('.state'))).toEqual([]);
});

it('a history that is published again and again does not grow with it', async () => {
  await change(
    opened.state,
    `INSERT INTO platform_facts VALUES ('prj_1', 'fact', $value, '2026-11-18T05:00:00.000Z')`,
    {
      value: 'x'.repeat(2e6),
    },
  );
  const sizes: number[] = [];
  for (let round = 1; round <= 6; round++) {
    await store(live, 'prj_1', { '2026-11-01': [page('/a', round, 1)] });
    await publish();
    sizes.push((await stat(historyFile)).size);
  }
  expect(Math.max(...sizes)).toBeLessThan(2 * (sizes[1] ?? 0));
});
