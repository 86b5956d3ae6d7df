import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runCli } from '../run-cli.js';
import { smallDisk } from '../small-disk.js';
import { expectAllOnce, openSite } from './site.js';
import { daysAgo, endedWith } from './workspace.js';

const WRITING = [
  ['export'],
  ['run'],
  ['improve', '--apply'],
  ['jobs', 'poll'],
  ['audit'],
  ['report', 'send', 'weekly'],
];
const READING = [
  ['sql', 'SELECT count(*) FROM page_views'],
  ['report', 'weekly', '--format', 'text'],
  ['report', 'weekly', '--output', 'weekly.html'],
  ['improve'],
  ['jobs'],
];

it('with a read-only data directory (skipped if none can be mounted), writing commands say what to do and reading ones work', async (context) => {
  const site = await openSite();
  const disk = await smallDisk(context, join(site.cwd, 'data'));
  // A process of its own closes its files when it ends.
  endedWith(0, await runCli(['export', '--to', daysAgo(3)], site));
  await disk.setReadOnly(true);

  for (const args of WRITING) {
    const { code, stdout, stderr } = await site.run(...args);
    expect({ args, code, stdout }).toEqual({ args, code: 1, stdout: '' });
    expect(stderr).toMatch(/^Cannot lock .+worker\.lock: attempt to write a readonly database\n/);
    expect(stderr).toContain(
      'Give this user write access there, or set dataDir to a directory it can write to.',
    );
  }
  for (const args of READING) {
    const { code, stderr } = await site.run(...args);
    expect({ args, code, stderr: code === 0 ? '' : stderr }).toEqual({ args, code: 0, stderr: '' });
  }
  const page = endedWith(1, await site.run('report', 'weekly'));
  expect(page.stderr).toMatch(
    /^Cannot write the report to .+read-only file system.+\nGive this user write access there/,
  );
  const status = endedWith(1, await site.run('status'));
  expect(status.stdout).toMatch(/history +.+ days/);
  expect(status.stdout).toMatch(/^attention {2}The disk of .+ is read-only, so nothing is loaded or sent/m);
  expect(status.stderr).toBe('');
  const doctor = endedWith(1, await site.run('doctor'));
  expect(doctor.stdout).toMatch(/fail +state +Cannot lock .+\nGive this user write access there/);

  await disk.setReadOnly(false);
  expect(await site.run('run')).toMatchObject({ code: 0 });
  await expectAllOnce(site);
});
