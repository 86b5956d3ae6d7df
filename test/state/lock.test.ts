import { chmod, copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { LockedError } from '../../src/errors.js';
import { acquireWorker, readHolder } from '../../src/state/lock.js';
import { readWorkspaceRow } from '../../src/state/workspace.js';
import { addJob, newState, newWorker, now, senderOf, valueOf } from './new-state.js';
import { otherProcess } from './other-process.js';

const acquire = (...[dataDir, state, more]: [string, Parameters<typeof acquireWorker>[1], object?]) =>
  acquireWorker(dataDir, state, { command: 'readership run', now, maxWaitMs: 0, ...more });

describe('the lock of the worker', () => {
  it('is held by one process, which is named with its command and since when', async () => {
    const { dataDir, state } = await newState();
    const holder = await otherProcess(dataDir);
    expect(await holder.does('acquire', 0)).toBe(1);
    const error = await acquire(dataDir, state).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(LockedError);
    expect(error).toMatchObject({
      exitCode: 75,
      message: expect.stringContaining(
        `is held by \`readership export\` (process ${holder.pid}, since Nov 18, 2026 at 05:00 UTC)`,
      ) as string,
    });
    await holder.does('release');
    const worker = await newWorker(dataDir, state);
    expect(worker.token).toBe(2);
  });

  it('is waited for, while this process answers, and the one waited for is named once', async () => {
    const { dataDir, state } = await newState();
    const holder = await otherProcess(dataDir);
    await holder.does('acquire', 0);
    const held: string[] = [];
    const waiting = acquire(dataDir, state, { maxWaitMs: 120_000, onHeld: (who: string) => held.push(who) });
    await vi.waitUntil(() => held.length > 0, { timeout: 60_000, interval: 1 });
    // An answer of the holder arrives only while the event loop is served.
    expect(await holder.does('attempts')).toBe(0);
    await holder.does('release');
    const worker = await waiting;
    expect(held).toEqual([expect.stringContaining('readership export')]);
    expect(valueOf(state, 'SELECT command FROM worker')).toBe('readership run');
    await worker.release();
    expect(valueOf(state, 'SELECT command FROM worker')).toBeNull();
  });

  it('is not waited for after the command was told to end', async () => {
    const { dataDir, state } = await newState();
    await newWorker(dataDir, state);
    const controller = new AbortController();
    const reason = new Error('told to end');
    const waiting = acquire(dataDir, state, {
      maxWaitMs: 600_000,
      signal: controller.signal,
      onHeld: () => {
        controller.abort(reason);
      },
    });
    await expect(waiting).rejects.toBe(reason);
  });

  it('is held once in a process, too', async () => {
    const { dataDir, state } = await newState();
    const worker = await newWorker(dataDir, state);
    await expect(acquire(dataDir, state)).rejects.toThrow(LockedError);
    await worker.release();
    const next = await acquire(dataDir, state);
    expect(next.token).toBe(worker.token + 1);
    await next.release();
  });

  it('is still held by a process that is stopped, and free when that is killed', async () => {
    const { dataDir, state } = await newState();
    const holder = await otherProcess(dataDir);
    await holder.does('acquire', 0);
    holder.signal('SIGSTOP');
    await expect(acquire(dataDir, state)).rejects.toThrow(`process ${holder.pid}`);
    let isHeld = false;
    const waiting = acquire(dataDir, state, { maxWaitMs: 120_000, onHeld: () => (isHeld = true) });
    await vi.waitUntil(() => isHeld, { timeout: 60_000, interval: 1 });
    await holder.kill();
    const worker = await waiting;
    expect(readHolder(state)).toMatchObject({ pid: process.pid, command: 'readership run' });
    await worker.release();
  });

  it('does not stop anyone from reading and deciding', async () => {
    const { dataDir } = await newState();
    const holder = await otherProcess(dataDir);
    await holder.does('acquire', 0);
    const other = await otherProcess(dataDir);
    expect(await other.does('run', `INSERT INTO skips VALUES ('prj_1', '/a', '2026-11-18', NULL)`)).toBe(1);
    expect(await other.does('attempts')).toBe(0);
  });
});

describe('the file of the lock', () => {
  const tamper: Readonly<Record<string, (path: string) => Promise<void>>> = {
    deleted: (path) => rm(path),
    replaced: async (path) => {
      await copyFile(path, `${path}.new`);
      await rename(`${path}.new`, path);
    },
  };

  it.each(Object.keys(tamper))(
    '%s while it is held: a second worker acts, and the first one no longer does',
    async (how) => {
      const { dataDir, state } = await newState();
      await addJob(state);
      const witness = join(dataDir, '..', '.readership.yaml.sent');
      const first = await otherProcess(dataDir, { witness });
      await first.does('acquire', 0);
      await tamper[how]?.(join(dataDir, 'worker.lock'));
      const second = await newWorker(dataDir, state, 0);
      const replaced = {
        error: 'ReplacedWorkerError',
        message: expect.stringContaining('worker.lock') as string,
      };
      expect(await first.told('expectCurrent')).toMatchObject(replaced);
      expect(await first.told('begin')).toMatchObject(replaced);
      expect(valueOf(state, 'SELECT state FROM jobs')).toBe('planned');
      expect(readWorkspaceRow(state).attempt).toBe(0);
      await expect(readFile(witness)).rejects.toThrow('ENOENT');
      // Its end takes nothing from the second one.
      await first.does('release');
      expect(readHolder(state)).toMatchObject({ pid: process.pid });
      const attempt = await senderOf(dataDir, state, second, witness).begin(
        now(),
        (number) => state.run(`UPDATE jobs SET state = 'sending', attempt = $number`, { number }) === 1,
        () => expect.fail('it is sent'),
      );
      expect(attempt?.number).toBe(1);
    },
  );

  it('that was written to by something else is named', async () => {
    const { dataDir, state } = await newState();
    await writeFile(
      join(dataDir, 'worker.lock'),
      'not a lock, but long enough to look like a file of ours '.repeat(30),
    );
    await expect(acquire(dataDir, state)).rejects.toThrow(
      /is not the lock of Readership: .* Delete it, then run/,
    );
  });

  it('that is a directory is refused', async () => {
    const { dataDir, state } = await newState();
    await mkdir(join(dataDir, 'worker.lock'));
    await expect(acquire(dataDir, state)).rejects.toThrow(/Cannot lock .*worker\.lock: .*unable to open/);
  });

  it.skipIf(process.getuid?.() !== 0)(
    'that this user may not write is refused, and locks nobody out',
    async () => {
      const user = 65_534;
      const { dataDir, state } = await newState();
      await writeFile(join(dataDir, 'worker.lock'), '');
      await chmod(join(dataDir, 'worker.lock'), 0o444);
      for (const directory of [join(dataDir, '..'), dataDir]) await chmod(directory, 0o777);
      await chmod(state.path, 0o666);
      const other = await otherProcess(dataDir, { user });
      expect(await other.told('acquire', 0)).toMatchObject({
        error: 'StorageError',
        message: expect.stringMatching(
          /Cannot lock .*worker\.lock: .*\n?.*Give this user write access/,
        ) as string,
      });
      await newWorker(dataDir, state, 0);
      expect(await other.told('acquire', 0)).toMatchObject({
        error: expect.stringMatching(/Error$/) as string,
      });
    },
  );
});
