import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { StorageError } from '../../src/errors.js';
import { tempDir } from '../temp-dir.js';
import { clockAt, NOW, openSandbox } from './open-sandbox.js';

describe('a sandbox with a state file', () => {
  it('remembers its jobs, first day and traffic between processes', async () => {
    const folder = join(await tempDir(), 'data');
    const stateFile = join(folder, 'sandbox.json');
    const clock = clockAt(NOW);
    const first = await openSandbox({ stateFile, seed: 7 }, clock);
    const { id } = await first.create();
    const week = 'dateFrom=2026-11-02&dateTo=2026-11-09';
    const before = await first.views(week);
    await first.sandbox.close();

    clock.advance(30 * 86_400);
    const second = await openSandbox({ stateFile }, clock);
    expect(second.sandbox.firstDay).toBe(first.sandbox.firstDay);
    expect(await second.views(week)).toEqual(before);
    expect(await second.job(id)).toMatchObject({ status: 'completed' });
    expect((await second.create()).id).not.toBe(id);
    expect(readdirSync(folder)).toEqual(['sandbox.json']);
  });

  it('sees jobs that another process makes meanwhile, and counts them against the same hour', async () => {
    const stateFile = join(await tempDir(), 'sandbox.json');
    const one = await openSandbox({ stateFile, usesPerHour: 2 });
    const other = await openSandbox({ stateFile, usesPerHour: 2 });
    const { id } = await one.create();
    expect((await other.job(id)).status).toBe('active');
    expect((await other.create()).id).not.toBe(id);
    expect((await one.post(one.jobPath, { prompt: 'x' })).status).toBe(429);
  });

  it('refuses a file that is not its own, and does not change it', async () => {
    const stateFile = join(await tempDir(), 'sandbox.json');
    writeFileSync(stateFile, '{"version":2}');
    const refused = openSandbox({ stateFile });
    await expect(refused).rejects.toThrow(/sandbox\.json .*Delete it to start/);
    await expect(refused).rejects.toBeInstanceOf(StorageError);
    expect(readFileSync(stateFile, 'utf8')).toBe('{"version":2}');
  });
});
