import { DuckDBInstance } from '@duckdb/node-api';
import { execFile } from 'node:child_process';
import {
  chmod,
  cp,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, it } from 'vitest';
import { startCli } from '../run-cli.js';
import { openSite, type Site } from './site.js';
import { endedWith, env, historyFile } from './workspace.js';

/** Changes the published file as a program that is killed before it writes its log into it. */
async function leaveLog(file: string): Promise<void> {
  await chmod(file, 0o644);
  const instance = await DuckDBInstance.create(file);
  const connection = await instance.connect();
  await connection.run('PRAGMA disable_checkpoint_on_shutdown; CREATE TABLE mine (note VARCHAR)');
  connection.closeSync();
  instance.closeSync();
  expect((await stat(`${file}.wal`)).size).toBeGreaterThan(0);
  // The next publication replaces the file, and leaves the log.
  await chmod(file, 0o444);
}

describe('files next to ours', () => {
  let site: Site;
  let data: string;
  const history = () => join(data, 'history.duckdb');
  beforeEach(async () => {
    site = await openSite();
    data = join(site.cwd, 'data');
    endedWith(0, await site.run('run'));
  });

  it('the log of a program that opened the published file for writing is removed with that copy', async () => {
    await leaveLog(history());
    const log = await readFile(`${history()}.wal`);
    endedWith(0, await site.run('publish'));
    // Such a program may also write its log after the file was replaced.
    await writeFile(`${history()}.wal`, log);
    expect(await site.run('sql', 'FROM site_days')).toMatchObject({ code: 1 });
    endedWith(0, await site.run('publish'));
    endedWith(0, await site.run('sql', 'FROM site_days'));
    // A database that has gone backwards is noticed as without the log.
    await cp(historyFile(site.cwd), `${historyFile(site.cwd)}.old`);
    await writeFile(join(site.cwd, 'notes.yaml'), '- { date: 2026-11-01, text: Release }\n');
    endedWith(0, await site.run('export'));
    await cp(`${historyFile(site.cwd)}.old`, historyFile(site.cwd));
    await rm(`${historyFile(site.cwd)}.wal`, { force: true });
    await writeFile(`${history()}.wal`, log);
    const { code, stderr } = await site.run('run');
    expect(code).toBe(1);
    expect(stderr).toContain('is older than the history published from it');
  });

  it('a database or a publication behind a symbolic link stays behind it', async () => {
    const disk = join(site.cwd, 'other-disk');
    await mkdir(disk);
    for (const file of [historyFile(site.cwd), history()]) {
      await rename(file, join(disk, file === history() ? 'history' : 'live'));
      await symlink(join(disk, file === history() ? 'history' : 'live'), file);
    }
    endedWith(0, await site.run('publish'));
    endedWith(0, await site.run('sql', 'FROM site_days'));
    for (const file of [historyFile(site.cwd), history()])
      expect((await lstat(file)).isSymbolicLink()).toBe(true);
    expect(await readdir(disk)).toEqual(expect.arrayContaining(['history', 'live']));
  });

  it('a pipe in the place of a file is named, and never waited for', async () => {
    for (const [name, code] of [
      ['notes.yaml', 2],
      ['readership.yaml', 2],
    ] as const) {
      const path = join(site.cwd, name);
      await rename(path, `${path}.away`).catch(() => undefined);
      await promisify(execFile)('mkfifo', [path]);
      const result = await startCli(['publish'], { cwd: site.cwd, env }).result;
      expect(result.stderr).toContain(`Cannot read ${path}: it is not a file.`);
      expect(result.code).toBe(code);
      await rename(path, `${path}.pipe`);
      await rename(`${path}.away`, path).catch(() => undefined);
    }
  });

  it('reports whose folders differ only in case are refused, because they are one on other systems', async () => {
    for (const name of ['Team', 'team']) {
      const folder = join(site.cwd, 'reports', name);
      await mkdir(folder, { recursive: true });
      await writeFile(join(folder, 'report.yaml'), 'title: Team\nperiod: week\n');
      await writeFile(join(folder, 'pages.sql'), '-- Grain: page.\nSELECT path FROM page_views');
    }
    const { stderr, code } = await site.run('report', 'team');
    expect(code).toBe(2);
    expect(stderr).toMatch(/The report team cannot be used, because the report Team differs only in case/);
  });
});
