import { spawnSync } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { callCli } from '../run-cli.js';
import { smallDisk } from '../small-disk.js';
import { expectAllOnce, openSite } from './site.js';
import { daysAgo, endedWith, historyFile } from './workspace.js';

/** A site whose data is on its own disk; the test is skipped if none can be mounted. */
async function siteOnSmallDisk(context: TestContext) {
  const site = await openSite();
  const disk = await smallDisk(context, join(site.cwd, 'data'));
  const history = () => readFile(historyFile(site.cwd));
  return { site, run: site.run, disk, history };
}

describe('a full disk (skipped if none can be mounted)', () => {
  it('ends every command with one clear message; nothing is lost or duplicated', async (context) => {
    const { disk, history, run, site } = await siteOnSmallDisk(context);
    expect(await run('export', '--to', daysAgo(12))).toMatchObject({ code: 0 });
    const before = await history();
    for (const [when, kibibytes, words, commands] of [
      ['starting', 4, 'The disk is full', [['export'], ['improve', '--apply'], ['run']]],
      ['loading days', 128, 'The disk is full', [['export'], ['run']]],
      ['writing the history', 600, 'The disk is full', [['export'], ['run']]],
    ] as const) {
      for (const args of commands) {
        await disk.leaveRoom(kibibytes * 1024);
        const { code, stderr } = await run(...args);
        const what = `${args.join(' ')}, full when ${when}: ${stderr}`;
        expect(code, what).toBe(1);
        expect(stderr, what).toContain(words);
        const advice = stderr.match(/The disk is full: free some space, then run the command again/g);
        expect(advice, what).toHaveLength(stderr.match(/^\w+ failed: /gm)?.length ?? 1);
        expect((await history()).equals(before), what).toBe(true);
      }
    }
    await disk.makeRoom();
    expect((await run('doctor')).stdout).toMatch(/warn +disk .+ make room before it runs out/);
    // The next version is written beside the last one.
    await disk.leaveRoom(0.5 * before.length);
    expect((await run('doctor')).stdout).toMatch(/fail +disk .+ Make room/);
    await disk.makeRoom();
    endedWith(0, await run('run'));
    await expectAllOnce(site);
    expect((await history()).equals(before)).toBe(false);
    const files = await readdir(join(site.cwd, 'data'), { recursive: true });
    expect(files.filter((name) => /next-|\.wal$|\.tmp$/.test(name))).toEqual([]);
    // The advice to run the command again holds for a message, too, whether or not it was kept.
    for (const [index, kibibytes] of [4, 32].entries()) {
      const message = ['jobs', 'message', String(index + 1), 'Shorter'];
      await disk.leaveRoom(kibibytes * 1024);
      const full = await run(...message);
      await disk.makeRoom();
      const isMade = full.code === 0 || full.stderr.includes('do not repeat it');
      endedWith(0, await run(...(isMade ? ['jobs', 'poll'] : message)));
    }
    expect(site.sandbox.inspect().jobs.flatMap(({ messages }) => messages)).toHaveLength(2);
  });

  it('leaves no half report, which would fail every run, and a full output is an error', async (context) => {
    const { disk, site } = await siteOnSmallDisk(context);
    const cwd = disk.directory;
    await writeFile(join(cwd, 'readership.yaml'), await readFile(join(site.cwd, 'readership.yaml')));
    await disk.leaveRoom(0);
    const made = endedWith(1, await callCli(['report', 'new', 'mine'], { cwd }));
    expect(made.stderr).toMatch(/Cannot write the report to/);
    await disk.makeRoom();
    expect(await callCli(['report', 'new', 'mine'], { cwd })).toMatchObject({ code: 0 });
    const definition = join(cwd, 'reports', 'mine', 'report.yaml');
    const long = (await readFile(definition, 'utf8')).replace(/^title: .*/m, `title: ${'x'.repeat(8192)}`);
    await writeFile(definition, long);
    // Of the list, the first 4 KiB fit.
    await disk.leaveRoom(4096);
    for (const file of ['/dev/full', join(cwd, 'list')]) {
      const command = `"$0" dist/cli.js report list --config ${join(cwd, 'readership.yaml')} > ${file}`;
      const full = spawnSync('sh', ['-c', command, process.execPath]);
      expect({ code: full.status, stderr: String(full.stderr) }).toEqual({
        code: 1,
        stderr: expect.stringMatching(/^ENOSPC.*\nThe disk is full: free some space/) as string,
      });
    }
  });
});
