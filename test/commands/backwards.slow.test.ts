import { existsSync } from 'node:fs';
import { cp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { tempDir } from '../temp-dir.js';
import { openSite, type Site } from './site.js';
import { daysAgo, endedWith, liveFile } from './workspace.js';

// What counts as a live database that has gone backwards is in test/warehouse/behind.test.ts; which files cannot be restored from, in backup.slow.test.ts.
describe('restore', () => {
  let site: Site;
  let data: string;
  let yesterday: string;

  beforeAll(async () => {
    site = await openSite();
    data = join(site.cwd, 'data');
    yesterday = await tempDir();
    expect(await site.run('export', '--to', daysAgo(4))).toMatchObject({ code: 0 });
    await cp(data, yesterday, { recursive: true });
    expect(await site.run('run')).toMatchObject({ code: 0 });
    expect(existsSync(`${liveFile(site.cwd)}.wal`)).toBe(true);
  });

  it('does not change a live database that is intact', async () => {
    const { stdout } = endedWith(0, await site.run('restore'));
    expect(stdout).toContain('intact and up to date: nothing to restore');
    expect((await readdir(data)).filter((name) => name.includes('replaced'))).toEqual([]);
  });

  it('goes back to an older file on purpose, which can be published; both previous states are kept', async () => {
    const history = await readFile(join(data, 'history.duckdb'));
    const restored = endedWith(0, await site.run('restore', '--from', join(yesterday, 'warehouse.duckdb')));
    expect(restored.stdout).toMatch(/the next run loads .*\d+ Nov|the next run loads .*20\d\d/);
    const kept = (await readdir(data)).filter((name) => name.includes('.replaced-'));
    expect(kept.map((name) => name.replace(/\.replaced-[-\dT]+/, '')).sort()).toEqual([
      'history.duckdb',
      'warehouse.duckdb',
      'warehouse.duckdb.wal',
    ]);
    const keptHistory = kept.find((name) => name.startsWith('history')) ?? '';
    expect((await readFile(join(data, keptHistory))).equals(history)).toBe(true);
    const last = ['sql', 'SELECT max(day)::VARCHAR AS last FROM site_days'];
    expect((await site.run(...last)).stdout).toContain(daysAgo(4));
    expect(await site.run('export')).toMatchObject({ code: 0 });
    expect((await site.run(...last)).stdout).toContain(daysAgo(1));

    // And back again, from the kept files.
    const keptLive = kept.find((name) => /^warehouse.+\d$/.test(name)) ?? '';
    expect(await site.run('restore', '--from', join(data, keptLive))).toMatchObject({ code: 0 });
  });
});
