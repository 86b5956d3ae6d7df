import { chmod, copyFile, cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { CliResult } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { openSite, type Site } from './site.js';
import { daysAgo, liveFile } from './workspace.js';

const exists = (path: string): Promise<boolean> =>
  readFile(path).then(
    () => true,
    () => false,
  );

/** As a kill during DuckDB's own checkpoint left it: some of a block's pages are new, the others old. */
async function tear(file: string): Promise<void> {
  const bytes = await readFile(file);
  for (let at = 12_288; at < 12_288 + 32 * 4_096; at++) bytes[at] = 0;
  await writeFile(file, bytes);
}

describe('a live database that has gone backwards', () => {
  let site: Site;
  let data: string;
  let yesterday: string;
  let today: string;
  const published = () => readFile(join(data, 'history.duckdb'));

  /** Puts today's data directory back. */
  async function startOver(): Promise<void> {
    await rm(data, { recursive: true });
    await cp(today, data, { recursive: true });
  }

  beforeAll(async () => {
    site = await openSite();
    data = join(site.cwd, 'data');
    [yesterday, today] = [await tempDir(), await tempDir()];
    expect(await site.run('export', '--to', daysAgo(4))).toMatchObject({ code: 0 });
    await cp(data, yesterday, { recursive: true });
    expect(await site.run('run')).toMatchObject({ code: 0 });
    expect(await exists(`${liveFile(site.cwd)}.wal`)).toBe(true);
    await cp(data, today, { recursive: true });
  });

  // That commands refuse to continue with it is in loss.slow.test.ts; what counts as such, in test/warehouse/behind.test.ts.
  it('but is intact is not changed by restore', async () => {
    await startOver();
    const result = await site.run('restore');
    expect(result, result.stderr).toMatchObject({ code: 0 });
    expect(result.stdout).toContain('intact and up to date: nothing to restore');
    expect((await readdir(data)).filter((name) => name.includes('replaced'))).toEqual([]);
  });

  it('can be restored from an older file on purpose, and published; both previous states are kept', async () => {
    await startOver();
    const history = await published();
    const restored = await site.run('restore', '--from', join(yesterday, 'warehouse.duckdb'));
    expect(restored, restored.stderr).toMatchObject({ code: 0 });
    expect(restored.stdout).toMatch(/the next run loads .*\d+ Nov|the next run loads .*20\d\d/);
    const kept = (await readdir(data)).filter((name) => name.includes('.replaced-'));
    expect(kept.map((name) => name.replace(/\.replaced-[-\dT]+/, '')).sort()).toEqual([
      'history.duckdb',
      'warehouse.duckdb',
      'warehouse.duckdb.wal',
    ]);
    const keptHistory = kept.find((name) => name.startsWith('history')) ?? '';
    expect((await readFile(join(data, keptHistory))).equals(history)).toBe(true);
    expect((await site.run('sql', `SELECT max(day)::VARCHAR AS last FROM site_days`)).stdout).toContain(
      daysAgo(4),
    );
    expect(await site.run('export')).toMatchObject({ code: 0 });
    expect((await site.run('sql', `SELECT max(day)::VARCHAR AS last FROM site_days`)).stdout).toContain(
      daysAgo(1),
    );

    // And back again, from the kept files.
    const keptLive = kept.find((name) => /^warehouse.+\d$/.test(name)) ?? '';
    expect(await site.run('restore', '--from', join(data, keptLive))).toMatchObject({ code: 0 });
  });

  it('is not changed if the file to restore from is unusable', async () => {
    await startOver();
    await rm(`${liveFile(site.cwd)}.wal`);
    const directory = await tempDir();
    const file = (name: string) => join(directory, name);
    await writeFile(file('text'), 'no database at all'.repeat(2_000));
    await mkdir(file('directory'));
    await copyFile(join(today, 'history.duckdb'), file('torn'));
    await chmod(file('torn'), 0o644);
    await tear(file('torn'));
    const before = await readFile(liveFile(site.cwd));
    const refused: [string, RegExp, number?][] = [
      [file('absent'), /Found no .+absent to restore from/],
      [file('text'), /Cannot restore from .+text/],
      [file('directory'), /The lake .+directory has no days of this workspace/, 2],
      [file('torn'), /Cannot restore from .+torn/],
      [liveFile(site.cwd), /is the live database itself/],
    ];
    for (const [from, words, expected = 1] of refused) {
      const { code, stderr }: CliResult = await site.run('restore', '--from', from);
      expect({ from, code }).toEqual({ from, code: expected });
      expect(stderr).toMatch(words);
      expect(stderr).toContain('Nothing was changed');
    }
    expect((await readFile(liveFile(site.cwd))).equals(before)).toBe(true);
    expect((await readdir(data)).filter((name) => /replaced|restoring/.test(name))).toEqual([]);
    await rename(join(data, 'history.duckdb'), join(data, 'moved'));
    await rm(liveFile(site.cwd));
    const { code, stderr } = await site.run('restore');
    expect(code).toBe(1);
    expect(stderr).toMatch(/Found no .+history.duckdb to restore from/);
  });
});
