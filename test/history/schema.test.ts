import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { StorageError } from '../../src/errors.js';
import { openHistory, openOwnHistory } from '../../src/history/history.js';
import { answerOf } from '../duckdb.js';
import { closeNow, inHistory, newStore, valuesOf } from '../open-history.js';
import { tempDir } from '../temp-dir.js';
import { page, store } from './stored-days.js';

const VIEWS = { '2026-11-01': [page('/a', 3, 1)] };

describe('a history', () => {
  it('lists some sixteen tables and views, each with one whole sentence or more, and none of its internals', async () => {
    const history = await newStore();
    await history.write();
    const listed = await inHistory(history.path, (opened) =>
      opened.connection.runAndReadAll('SHOW TABLES').then((found) => found.getRowsJson().flat()),
    );
    const names =
      'choices data_delays data_quality day_failures days emails first_days job_effects jobs notes page_views page_weeks ' +
      'restatements runs site_days site_weeks skips';
    expect(listed).toEqual(names.split(' '));
    const comments = `
      SELECT comment FROM duckdb_tables() WHERE database_name = current_database() AND schema_name = 'main'
      UNION ALL SELECT comment FROM duckdb_views() WHERE database_name = current_database() AND NOT internal AND schema_name = 'main'`;
    for (const comment of await valuesOf(history, comments)) expect(comment).toMatch(/^[A-Z].+\.$/);
  });

  it.each([
    [
      'is of another program',
      'CREATE TABLE mine AS SELECT 1',
      'is not a history of Readership: another program wrote it',
    ],
    [
      'is of 0.4',
      'CREATE TABLE schema_version (version INTEGER); CREATE TABLE day_loads (day DATE); CREATE TABLE page_views (day DATE)',
      'which were not changed. To go on with them: readership restore --from ',
    ],
    [
      'is of a newer version',
      'CREATE SCHEMA internal; CREATE TABLE internal.version AS SELECT 999 AS version',
      'A newer version of Readership wrote the history',
    ],
  ])('that %s is refused by readers and by the worker, and not changed', async (_, sql, words) => {
    const path = join(await tempDir(), 'history.duckdb');
    await answerOf(path, sql);
    const before = await readFile(path);
    await expect(openHistory(path)).rejects.toThrow(words);
    const history = await newStore(path);
    await expect(store(history, 'prj_1', VIEWS)).rejects.toThrow(words);
    await expect(history.write()).rejects.toThrow(words);
    expect((await readFile(path)).equals(before)).toBe(true);
  });

  it.each([
    ['a text', (path: string) => writeFile(path, 'not a database'), 'readership restore --from FILE'],
    ['torn', tear, 'readership restore --from FILE'],
    ['a directory', (path: string) => mkdir(path), 'Move away what is there'],
  ])('that is %s is refused in words that say what to do', async (_, spoil, words) => {
    const path = join(await tempDir(), 'history.duckdb');
    await spoil(path);
    const opening = openHistory(path);
    await expect(opening).rejects.toThrow(StorageError);
    await expect(opening).rejects.toThrow(words);
  });

  it('whose views are of another version is refused by reports, read by SQL, and gets new ones from the worker', async () => {
    const history = await newStore();
    await store(history, 'prj_1', VIEWS);
    await closeNow(history);
    const { path } = history;
    await answerOf(
      path,
      "UPDATE internal.version SET descriptions = ''",
      'DROP VIEW data_delays',
      'CHECKPOINT',
    );
    await expect(openOwnHistory(path)).rejects.toThrow('Write them again: readership run');
    expect(await inHistory(path, (opened) => valuesOf(opened, 'SELECT human FROM page_views'))).toEqual([3]);
    const worker = await newStore(path);
    expect(await valuesOf(worker, 'SELECT project FROM data_delays')).toEqual(['prj_1']);
    (await openOwnHistory(path)).close();
  });
});

/** Writes a history, and cuts off its end. */
async function tear(path: string): Promise<void> {
  const history = await newStore();
  await store(history, 'prj_1', VIEWS);
  await closeNow(history);
  const content = await readFile(history.path);
  await writeFile(path, content.subarray(0, 20_000));
}
