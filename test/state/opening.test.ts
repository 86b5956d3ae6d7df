import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { StorageError } from '../../src/errors.js';
import { openDatabase } from '../../src/state/database.js';
import { acquireWorker } from '../../src/state/lock.js';
import { createState, openState } from '../../src/state/open.js';
import type { State } from '../../src/state/state.js';
import { readWorkspaceRow } from '../../src/state/workspace.js';
import { tempDir } from '../temp-dir.js';
import { addJob, change, newState, now, NOW, placeIn, reopened, valueOf } from './new-state.js';
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
    const other = await otherProcess(dataDir, { user });
    expect(await other.told('attempts')).toMatchObject({
      error: 'StorageError',
      message: expect.stringMatching(/Cannot open the state [^]*Give this user write access/) as string,
    });
    await chmod(state.path, 0o644);
    expect(await other.does('attempts')).toBe(0);
    expect(await other.told('run', 'UPDATE workspace SET attempt = 1')).toMatchObject({
      error: 'StorageError',
      message: expect.stringMatching(/Give this user write access/) as string,
    });
    await chmod(dataDir, 0o700);
    const shutOut = await otherProcess(dataDir, { user });
    expect(await shutOut.told('attempts')).toMatchObject({
      error: 'StorageError',
      message: expect.stringMatching(/Give this user write access/) as string,
    });
  });
});

describe('a damaged state', () => {
  let original: string;
  let pages: number;
  let sizeOfPage: number;
  let rows: Record<string, unknown[]>;

  const rowsOf = (state: State): Record<string, unknown[]> => {
    const tables = state.all(
      `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'`,
      z.object({ name: z.string() }),
    );
    return Object.fromEntries(
      tables.map(({ name }) => [name, state.all(`SELECT * FROM ${name}`, z.unknown())]),
    );
  };

  beforeAll(async () => {
    const dataDir = join(await tempDir(), 'data');
    const state = await createState(dataDir, placeIn(dataDir));
    await state.transaction(() => {
      for (let row = 0; row < 80; row++) {
        state.run(
          `INSERT INTO jobs (reference, project, path, state, reason, prompt, planned_at, weekly_human, weekly_ai, weeks)
          VALUES ($path, 'prj_1', $path, 'planned', 'much read', $prompt, $now, 90, 9, '[]')`,
          { path: `/page-${row}`, prompt: 'Improve it. '.repeat(row), now: NOW },
        );
        state.run(
          `INSERT INTO emails (report, project, period, recipient, state, via, message_id, attempt, attempts, tried_at)
          VALUES ('weekly', 'prj_1', '2026-W46', $to, 'sent', 'smtp', '<a@b>', $row, 1, $now)`,
          { to: `reader-${row}@example.com`, row, now: NOW },
        );
      }
    });
    rows = rowsOf(state);
    sizeOfPage = Number(valueOf(state, 'PRAGMA page_size'));
    pages = Number(valueOf(state, 'PRAGMA page_count'));
    state.close();
    original = join(dataDir, 'state.db');
  });

  const countsOf = (found: unknown) =>
    Object.entries(found as typeof rows).map(([table, { length }]) => `${table}: ${length}`);

  /** What a worker sees before it sends: all rows, or an error. */
  async function worker(dataDir: string): Promise<unknown> {
    let state: State | undefined;
    let found: unknown;
    try {
      state = await openState(dataDir);
      if (state === undefined) return 'none';
      const held = await acquireWorker(dataDir, state, { command: 'readership run', now, maxWaitMs: 0 });
      try {
        found = rowsOf(state);
      } finally {
        await held.release();
      }
      return { ...(found as object), worker: rows['worker'] };
    } catch (error) {
      return error;
    } finally {
      state?.close();
    }
  }

  async function changedBytes(offset: number, change: (byte: number) => number): Promise<unknown> {
    const dataDir = await tempDir();
    const path = join(dataDir, 'state.db');
    await copyFile(original, path);
    const bytes = await readFile(path);
    bytes[offset] = change(bytes[offset] ?? 0) & 0xff;
    await writeFile(path, bytes);
    const found = await worker(dataDir);
    await rm(dataDir, { recursive: true });
    return found;
  }

  it('is never used to send when the kind of a page is another, on any page', async () => {
    let refused = 0;
    for (let page = 0; page < pages; page++) {
      const offset = page * sizeOfPage + (page === 0 ? 100 : 0);
      const found = await changedBytes(offset, (byte) => byte ^ 0x08);
      // The last page of a long row has no kind, and nothing is lost there.
      if (found instanceof StorageError) refused++;
      else expect(found, `page ${page + 1}`).toEqual(rows);
    }
    expect(refused).toBeGreaterThan(pages / 2);
  });

  it('whatever byte is changed, is refused or has all its rows', async () => {
    let refused = 0;
    // Every page, at a place that is another each time.
    for (let page = 0; page < pages; page++)
      for (const part of [3, 1371 + page * 37, 2741 + page * 53]) {
        const found = await changedBytes(page * sizeOfPage + (part % sizeOfPage), (byte) => byte ^ 0x41);
        if (found instanceof StorageError) refused++;
        // A letter or a number may be another: SQLite has no checksums.
        else expect(countsOf(found), `page ${page + 1}, byte ${part % sizeOfPage}`).toEqual(countsOf(rows));
      }
    expect(refused).toBeGreaterThan(pages / 2);
  });

  it('is refused when it was cut off', async () => {
    for (const size of [50, sizeOfPage / 2, sizeOfPage, sizeOfPage * 5, sizeOfPage * (pages - 1)]) {
      const dataDir = await tempDir();
      await writeFile(join(dataDir, 'state.db'), (await readFile(original)).subarray(0, size));
      expect(await worker(dataDir), `${size}`).toBeInstanceOf(StorageError);
      expect(await worker(dataDir)).toMatchObject({
        message: expect.stringMatching(
          /is damaged\. Nothing was changed\. .*: readership restore$/,
        ) as string,
      });
    }
  });
});
