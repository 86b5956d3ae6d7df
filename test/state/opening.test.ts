import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { StorageError } from '../../src/errors.js';
import { openDatabase } from '../../src/state/database.js';
import { createState, openState } from '../../src/state/open.js';
import type { State } from '../../src/state/state.js';
import { readWorkspaceRow } from '../../src/state/workspace.js';
import { tempDir } from '../temp-dir.js';
import { addJob, change, newState, newWorker, placeIn, reopened, valueOf } from './new-state.js';
import { otherProcess } from './other-process.js';

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

describe('a data directory without a state', () => {
  it('that is missing, or empty, has none', async () => {
    const directory = await tempDir();
    expect(await openState(directory)).toBeUndefined();
    expect(await openState(join(directory, 'missing'))).toBeUndefined();
    expect(await readdir(directory)).toEqual([]);
  });

  it('has none where a link leads to nothing', async () => {
    const directory = await tempDir();
    await symlink(join(directory, 'nowhere', 'state.db'), join(directory, 'state.db'));
    expect(await openState(directory)).toBeUndefined();
  });

  it('gets one that only its owner can read, with a new id', async () => {
    const { dataDir, state } = await newState();
    expect(await modeOf(dataDir)).toBe('700');
    expect(await modeOf(join(dataDir, 'state.db'))).toBe('600');
    const { id, attempt, changes } = readWorkspaceRow(state);
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect([attempt, changes]).toEqual([0, 0]);
    expect(readWorkspaceRow((await newState()).state).id).not.toBe(id);
    state.expectSound();
  });

  it('gets one when two processes create it at once, and both have the same id', async () => {
    const dataDir = join(await tempDir(), 'data');
    const processes = await Promise.all([1, 2, 3].map(() => otherProcess(dataDir)));
    const ids = await Promise.all(processes.map(({ does }) => does('create')));
    expect(new Set(ids).size).toBe(1);
    expect(readWorkspaceRow(await reopened(dataDir)).id).toBe(ids[0]);
  });

  it('gets one where a process was killed while it created it', async () => {
    const dataDir = await tempDir();
    await writeFile(join(dataDir, 'state.db'), '');
    expect(await openState(dataDir)).toBeUndefined();
    const dying = await otherProcess(dataDir);
    expect(await dying.told('dieInCreation')).toBeUndefined();
    expect(existsSync(join(dataDir, 'state.db-journal'))).toBe(true);
    expect((await stat(join(dataDir, 'state.db'))).size).toBeGreaterThan(0);
    expect(await openState(dataDir)).toBeUndefined();
    const { state } = await newState(dataDir);
    state.expectSound();
    expect(await modeOf(join(dataDir, 'state.db'))).toBe('600');
  });
});

it('an existing state is opened with what it holds, and created only once', async () => {
  const { dataDir, state } = await newState();
  await addJob(state);
  const again = await createState(dataDir, placeIn('/elsewhere'));
  expect(readWorkspaceRow(again)).toEqual(readWorkspaceRow(state));
  again.close();
  expect(valueOf(await reopened(dataDir), 'SELECT path FROM jobs')).toBe('/guide');
});

it('a state behind a link is the same one, and the link stays', async () => {
  const { dataDir, state } = await newState();
  const other = await tempDir();
  await symlink(join(dataDir, 'state.db'), join(other, 'state.db'));
  const linked = await reopened(other);
  expect(linked.path).toBe(state.path);
  await change(linked, 'UPDATE workspace SET attempt = 5');
  expect(readWorkspaceRow(state).attempt).toBe(5);
});

const refusal = async (dataDir: string): Promise<string> => {
  const error = await openState(dataDir).catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(StorageError);
  return (error as StorageError).message;
};

describe('what is not ours is refused, and stays as it is', () => {
  it.each([
    ['text', 'this is no database, but it is long enough to look like one. '.repeat(20)],
    ['zeros', '\0'.repeat(8192)],
  ])('%s', async (_, text) => {
    const dataDir = await tempDir();
    const path = join(dataDir, 'state.db');
    await writeFile(path, text);
    expect(await refusal(dataDir)).toMatch(/is damaged\. Nothing was changed\. .*: readership restore$/);
    await expect(createState(dataDir, placeIn(dataDir))).rejects.toThrow(/is damaged/);
    expect(await readFile(path, 'utf8')).toBe(text);
  });

  it('the SQLite file of another program', async () => {
    const dataDir = await tempDir();
    const path = join(dataDir, 'state.db');
    await writeFile(path, '', { mode: 0o644 });
    const database = openDatabase(path);
    database.exec('CREATE TABLE jobs (a)');
    database.close();
    const before = await readFile(path);
    expect(await refusal(dataDir)).toMatch(/is not a state of Readership: another program wrote it/);
    await expect(createState(dataDir, placeIn(dataDir))).rejects.toThrow(/another program wrote it/);
    expect(await readFile(path)).toEqual(before);
    expect(await modeOf(path)).toBe('644');
  });

  it('the state of a newer version', async () => {
    const { dataDir, state } = await newState();
    await state.transaction(() => state.run('PRAGMA user_version = 2'));
    expect(await refusal(dataDir)).toMatch(/newer version of Readership wrote .* Install that version/);
    await expect(createState(dataDir, placeIn(dataDir))).rejects.toThrow(/newer version/);
  });

  it('a directory', async () => {
    const dataDir = await tempDir();
    await mkdir(join(dataDir, 'state.db'));
    expect(await refusal(dataDir)).toMatch(/is not a file\. .* readership restore --from FILE/);
  });
});

describe.skipIf(process.getuid?.() !== 0)('for another user', () => {
  const user = 65_534;

  it('a state without permission is refused, and one that can only be read is read', async () => {
    const { dataDir, state } = await newState();
    await chmod(join(dataDir, '..'), 0o755);
    await chmod(dataDir, 0o755);
    const refused = {
      error: 'StorageError',
      message: expect.stringContaining('Give this user write access') as string,
    };
    const other = await otherProcess(dataDir, { user });
    expect(await other.told('attempts')).toMatchObject(refused);
    await chmod(state.path, 0o644);
    expect(await other.does('attempts')).toBe(0);
    expect(await other.told('run', 'UPDATE workspace SET attempt = 1')).toMatchObject(refused);
    await chmod(dataDir, 0o700);
    const shutOut = await otherProcess(dataDir, { user });
    expect(await shutOut.told('attempts')).toMatchObject(refused);
  });
});

describe('a damaged state', () => {
  let original: Buffer;
  let sizeOfPage: number;

  const rowsOf = (state: State) =>
    ['jobs', 'workspace'].map((table) => state.all(`SELECT * FROM ${table}`, z.unknown()));
  let rows: unknown[][];

  beforeAll(async () => {
    const dataDir = join(await tempDir(), 'data');
    const state = await createState(dataDir, placeIn(dataDir));
    for (let row = 0; row < 80; row++) await addJob(state, `/page-${row}/${'long'.repeat(2 * row)}`);
    rows = rowsOf(state);
    sizeOfPage = Number(valueOf(state, 'PRAGMA page_size'));
    state.close();
    original = await readFile(join(dataDir, 'state.db'));
  });

  /** What a worker sees before it sends, if the state has these bytes: all rows, or an error. */
  async function seenByWorker(bytes: Buffer): Promise<unknown> {
    const dataDir = await tempDir();
    await writeFile(join(dataDir, 'state.db'), bytes);
    try {
      const state = await reopened(dataDir);
      await (await newWorker(dataDir, state)).release();
      return rowsOf(state);
    } catch (error) {
      return error;
    }
  }

  // What a byte that is changed means for what is sent is in test/commands/loss.slow.test.ts.
  it('is refused, or has all its rows, when the kind of a page is another, on any page', async () => {
    const pages = original.length / sizeOfPage;
    let refused = 0;
    for (let page = 0; page < pages; page++) {
      const bytes = Buffer.from(original);
      const kindAt = page * sizeOfPage + (page === 0 ? 100 : 0);
      bytes[kindAt] = (bytes[kindAt] ?? 0) ^ 0x08;
      const found = await seenByWorker(bytes);
      // The last page of a long row has no kind, and nothing is lost there.
      if (found instanceof StorageError) refused++;
      else expect(found, `page ${page + 1}`).toEqual(rows);
    }
    expect(refused).toBeGreaterThan(pages / 2);
  });

  it('is refused when it was cut off', async () => {
    for (const size of [50, sizeOfPage / 2, sizeOfPage, sizeOfPage * 5, original.length - sizeOfPage]) {
      const error = await seenByWorker(original.subarray(0, size));
      expect(error, `${size}`).toBeInstanceOf(StorageError);
      expect(String(error)).toMatch(/is damaged\. Nothing was changed\. .*: readership restore$/);
    }
  });
});
