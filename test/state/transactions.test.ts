import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { StorageError } from '../../src/errors.js';
import { smallDisk } from '../small-disk.js';
import { tempDir } from '../temp-dir.js';
import { addJob, change, newState, reopened, valueOf } from './new-state.js';
import { otherProcess } from './other-process.js';

const countOf = (state: Parameters<typeof valueOf>[0], table: string) =>
  valueOf(state, `SELECT count(*) FROM ${table}`);

describe('a transaction', () => {
  it('is rolled back when its work throws', async () => {
    const { state } = await newState();
    const failing = state.transaction(() => {
      state.run('UPDATE workspace SET attempt = 7');
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(valueOf(state, 'SELECT attempt FROM workspace')).toBe(0);
    await change(state, 'UPDATE workspace SET attempt = 1');
    expect(valueOf(state, 'SELECT attempt FROM workspace')).toBe(1);
  });

  it('cannot be inside another, which goes on', async () => {
    const { state } = await newState();
    let inner: Promise<unknown> | undefined;
    await state.transaction(() => {
      state.run('UPDATE workspace SET attempt = 1');
      inner = state
        .transaction(() => state.run('UPDATE workspace SET attempt = 2'))
        .catch((error: unknown) => error);
    });
    expect(await inner).toMatchObject({ message: 'a transaction cannot begin inside another' });
    expect(valueOf(state, 'SELECT attempt FROM workspace')).toBe(1);
  });

  it('cannot wait: what it did before is rolled back, and what it would do afterwards is refused', async () => {
    const { state } = await newState();
    let later: Promise<unknown> | undefined;
    const waiting = state.transaction(() => {
      state.run('UPDATE workspace SET attempt = 1');
      later = Promise.resolve()
        .then(() => state.run('UPDATE workspace SET attempt = 2'))
        .catch((error: unknown) => error);
      return later;
    });
    await expect(waiting).rejects.toThrow('a transaction cannot wait for anything');
    expect(await later).toMatchObject({ message: 'this statement must be inside a transaction' });
    expect(valueOf(state, 'SELECT attempt FROM workspace')).toBe(0);
  });

  it('is what a statement that changes rows needs', async () => {
    const { state } = await newState();
    expect(() => state.run('UPDATE workspace SET attempt = 1')).toThrow('must be inside a transaction');
  });

  it('that breaks a rule of a table changes nothing', async () => {
    const { state } = await newState();
    const broken = [
      `INSERT INTO skips VALUES ('prj_1', NULL, '2026-11-18', NULL)`,
      `INSERT INTO job_changes VALUES (99, NULL, '2026-11-18', NULL, 'planned', 'none')`,
      `UPDATE workspace SET attempt = 'many'`,
      `INSERT INTO workspace (only, id, machine, host, path) VALUES (2, '', '', '', '')`,
    ];
    for (const sql of broken)
      await expect(change(state, sql), sql).rejects.toThrow(/constraint|cannot store/);
    expect(countOf(state, 'skips')).toBe(0);
  });
});

describe('other processes', () => {
  it('that read for long only delay a commit, and this one answers in between', async () => {
    const { dataDir, state } = await newState();
    const reader = await otherProcess(dataDir);
    await reader.does('holdRead');
    let tries = 0;
    const writing = state.transaction(() => {
      tries++;
      return state.run('UPDATE workspace SET attempt = 1');
    });
    // The second try shows that the first commit was refused. This loop runs only while the event loop is served.
    let rounds = 0;
    await vi.waitUntil(() => ++rounds > 0 && tries >= 2, { timeout: 60_000, interval: 1 });
    expect(valueOf(state, 'SELECT attempt FROM workspace')).toBe(0);
    await reader.does('endRead');
    expect(await writing).toBe(1);
    expect(rounds).toBeGreaterThan(1);
    expect(valueOf(state, 'SELECT attempt FROM workspace')).toBe(1);
  });

  it('that are killed during a transaction leave a journal, with which the next one rolls it back', async () => {
    const { dataDir, state } = await newState();
    await change(state, `INSERT INTO requests VALUES ('k', 'm', 1, 0)`);
    const dying = await otherProcess(dataDir);
    expect(await dying.told('dieInTransaction')).toBeUndefined();
    expect(await dying.ended).toEqual([null, 'SIGKILL']);
    expect(existsSync(join(dataDir, 'state.db-journal'))).toBe(true);
    const next = await reopened(dataDir);
    next.expectSound();
    expect(countOf(next, 'requests')).toBe(1);
    expect(countOf(state, 'requests')).toBe(1);
    expect(existsSync(join(dataDir, 'state.db-journal'))).toBe(false);
  });
});

describe('a full disk', () => {
  it('refuses a change as a whole, and it works again when there is space', async (context) => {
    const mounted = await tempDir();
    const disk = await smallDisk(context, mounted);
    const { dataDir, state } = await newState(join(mounted, 'data'));
    await addJob(state);
    for (const bytes of [0, 4096, 8192, 16_384, 65_536]) {
      await disk.leaveRoom(bytes);
      const failed = await state
        .transaction(() => {
          state.run(`UPDATE jobs SET note = 'changed'`);
          for (let row = 0; row < 500; row++)
            state.run('INSERT INTO requests VALUES ($key, $row, 1, 0)', {
              key: 'k'.repeat(500),
              row: String(row),
            });
        })
        .catch((error: unknown) => error);
      expect(failed, `${bytes}`).toBeInstanceOf(StorageError);
      expect(failed, `${bytes}`).toMatchObject({
        message: expect.stringMatching(/disk is full: free some space/) as string,
      });
      expect(valueOf(state, 'SELECT note FROM jobs')).toBeNull();
      expect(countOf(state, 'requests')).toBe(0);
      await disk.makeRoom();
    }
    await change(state, `UPDATE jobs SET note = 'changed'`);
    const next = await reopened(dataDir);
    next.expectSound();
    expect(valueOf(next, 'SELECT note FROM jobs')).toBe('changed');
  });
});
