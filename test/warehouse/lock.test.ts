import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { LockedError } from '../../src/errors.js';
import { openWarehouse } from '../../src/warehouse/open.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { tempDir } from '../temp-dir.js';
import { holdElsewhere } from './other-process.js';

const OPEN = { command: 'readership test', now: () => new Date('2026-11-18T05:00:00Z') };

describe('a live database that another process holds', () => {
  it('is refused after the wait, naming the process and command', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    const holder = await holdElsewhere(path, 'readership export --from 2026-01-01');
    const onHeld = vi.fn();
    const opening = openWarehouse(path, { ...OPEN, maxWaitMs: 1_000, onHeld });
    await expect(opening).rejects.toThrow(LockedError);
    expect(onHeld).toHaveBeenCalledOnce();
    await expect(opening).rejects.toMatchObject({ exitCode: 75 });
    await expect(opening).rejects.toThrow(`\`readership export --from 2026-01-01\` (process ${holder.pid}`);
    await expect(opening).rejects.toThrow('waited 1 s');
    await holder.letGo();
  });

  it('is opened once that process releases it', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    const holder = await holdElsewhere(path, 'readership run');
    const options = { ...OPEN, maxWaitMs: 60_000, onHeld: () => void holder.letGo() };
    await openWarehouse(path, options).then((warehouse) => warehouse.close());
  });

  it('is not waited for after an abort', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    const holder = await holdElsewhere(path, 'readership run');
    const signal = AbortSignal.abort(new Error('told to stop'));
    await expect(openWarehouse(path, { ...OPEN, maxWaitMs: 60_000, signal })).rejects.toBe(signal.reason);
    await holder.letGo();
  });

  it('is free as soon as that process is killed, no matter which files it leaves behind', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    const holder = await holdElsewhere(path, 'readership run');
    await holder.kill();
    expect(existsSync(`${path}.lock`)).toBe(true);
    await openWarehouse(path, { ...OPEN, maxWaitMs: 5_000 }).then((warehouse) => warehouse.close());
    expect(existsSync(`${path}.lock`)).toBe(false);
  });
});

describe('the lock file', () => {
  it('names the holder, and is removed when the database is closed', async () => {
    const created = await liveWarehouse();
    const { path } = created;
    await closeNow(created);
    await chmod(path, 0o644);
    const warehouse = await liveWarehouse(path);
    for (const own of [path, `${path}.lock`]) expect((await stat(own)).mode & 0o777).toBe(0o600);
    const holder: unknown = JSON.parse(await readFile(`${warehouse.path}.lock`, 'utf8'));
    expect(holder).toEqual({
      ...{ pid: process.pid, since: OPEN.now().toISOString() },
      command: OPEN.command,
    });
    await closeNow(warehouse);
    expect(existsSync(`${warehouse.path}.lock`)).toBe(false);
  });

  it.each(['', '{', '{"pid": 1}', JSON.stringify({ pid: 1, command: 'readership run', since: 'long ago' })])(
    'left behind as %j blocks nobody',
    async (content) => {
      const path = join(await tempDir(), 'warehouse.duckdb');
      await writeFile(`${path}.lock`, content);
      await openWarehouse(path, { ...OPEN, maxWaitMs: 0 }).then((warehouse) => warehouse.close());
    },
  );

  it('that cannot be written, read or removed blocks nobody', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    await mkdir(`${path}.lock`);
    for (let time = 0; time < 2; time++)
      await openWarehouse(path, { ...OPEN, maxWaitMs: 0 }).then((warehouse) => warehouse.close());
  });

  it('that cannot be read leaves the holder unnamed in the message', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    const holder = await holdElsewhere(path, 'readership run');
    await writeFile(`${path}.lock`, '{');
    await expect(openWarehouse(path, { ...OPEN, maxWaitMs: 0 })).rejects.toThrow('locked by another process');
    await holder.letGo();
  });
});
