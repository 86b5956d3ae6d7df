import { readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { readSource } from '../../src/history/restore.js';
import type { HistoryStore } from '../../src/history/store.js';
import { writeNext } from '../../src/history/write.js';
import { readDictionary, TABLES } from '../../src/sql/dictionary.js';
import { readWorkspaceRow } from '../../src/state/workspace.js';
import { updateHistory } from '../../src/steps/history.js';
import { changeHistory, inHistory, newStore, valuesOf } from '../open-history.js';
import { type OpenState, stateBeside } from '../open-state.js';
import { addJob, change, reopened, valueOf } from '../state/new-state.js';
import { partsOf } from '../steps/parts-of.js';
import { tempDir } from '../temp-dir.js';
import { page, store } from './stored-days.js';

let history: HistoryStore;
let opened: OpenState;
beforeEach(async () => {
  history = await newStore();
  opened = await stateBeside(history);
});

/** The state that the history carries, opened. */
async function carried() {
  const source = await readSource(history.path);
  const saved = (source.is === 'history' ? source.state : undefined) ?? expect.fail('none');
  const directory = await tempDir();
  await writeFile(join(directory, 'state.db'), saved.database);
  const state = await reopened(directory);
  state.expectSound();
  expect(saved).toMatchObject({ workspace: readWorkspaceRow(state).id });
  return { state, ...saved };
}

it('each history carries the whole state, without pages of unfinished days and counts of requests', async () => {
  const { state, sender } = opened;
  await addJob(state);
  await change(state, `INSERT INTO kept_pages VALUES ('prj_1', '2026-10-01', 0, $page)`, {
    page: 'x'.repeat(5e6),
  });
  await change(state, `INSERT INTO requests VALUES ('key', '2026-11-18T05:00', 9, 0)`);
  await sender.begin(
    new Date('2026-11-18T05:00:00Z'),
    () => true,
    () => undefined,
  );
  await store(history, 'prj_1', { '2026-11-01': [page('/a', 3, 1)] });
  await history.write();

  const { state: copy, attempt, database } = await carried();
  expect(attempt).toBe(1);
  expect(readWorkspaceRow(copy)).toEqual({ ...readWorkspaceRow(state), history: null });
  expect(valueOf(copy, 'SELECT path FROM jobs')).toBe('/guide');
  expect(valueOf(copy, 'SELECT (SELECT count(*) FROM kept_pages) + (SELECT count(*) FROM requests)')).toBe(0);
  expect(database.length).toBeLessThan(1e6);
  // The state itself still has them.
  expect(valueOf(state, 'SELECT count(*) FROM kept_pages')).toBe(1);
});

it('it is written again at the end of a command that changed jobs, messages, emails or skips, and not for anything else', async () => {
  await store(history, 'prj_1', { '2026-11-01': [page('/a', 3, 1)] });
  await history.write();
  const parts = partsOf(history, { workspace: { historyFile: history.path }, state: opened.state });
  const written = async () => (await stat(history.path)).ino;
  const first = await written();
  await change(opened.state, `INSERT INTO requests VALUES ('key', '2026-11-18T05:00', 9, 0)`);
  await change(
    opened.state,
    `INSERT INTO runs VALUES ('r', 'poll', '2026-11-18T05:00:00.000Z', NULL, 'running', NULL, NULL)`,
  );
  await updateHistory(parts);
  expect(await written()).toBe(first);
  await change(opened.state, `INSERT INTO skips VALUES ('prj_1', '/a', '2026-11-18T05:00:00.000Z', NULL)`);
  await updateHistory(parts);
  expect(await written()).not.toBe(first);
  expect(valueOf((await carried()).state, 'SELECT count(*) FROM skips')).toBe(1);
  expect(await inHistory(history.path, (opened) => valuesOf(opened, 'SELECT path FROM skips'))).toEqual([
    '/a',
  ]);
});

it('it is kept when the history is sorted, also where it knows more than the state beside it', async () => {
  await store(history, 'prj_1', { '2026-11-01': [page('/a', 3, 1)] });
  await history.write();
  await changeHistory(history.path, 'UPDATE internal.saved_state SET attempt = 7');
  await writeNext(history.path, {
    isRewritten: true,
    change: () => Promise.resolve(),
    beforeRename: () => undefined,
  });
  const kept = await readSource(history.path);
  expect(kept).toMatchObject({ is: 'history', state: { attempt: 7 } });
});

it('it is not listed, and leaves no other file', async () => {
  await store(history, 'prj_1', { '2026-11-01': [page('/a', 3, 1)] });
  await writeFile(`${history.path}.state`, 'what a killed process left');
  await history.write();
  await inHistory(history.path, async (opened) => {
    expect((await readDictionary(opened)).map(({ name }) => name)).not.toContain('saved_state');
    expect(await valuesOf(opened, `SELECT name FROM (${TABLES}) WHERE name = 'saved_state'`)).toEqual([]);
  });
  expect((await readdir(dirname(history.path))).filter((name) => name.endsWith('.state'))).toEqual([]);
});
