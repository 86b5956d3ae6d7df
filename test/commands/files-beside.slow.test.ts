import { execFile } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { answerOf, inDuckDb } from '../duckdb.js';
import { runCli, startCli } from '../run-cli.js';
import { mcpClient } from '../web/mcp-client.js';
import { openSite, type Site } from './site.js';
import { daysAgo, endedWith, env, historyFile, keep, putBack } from './workspace.js';

/** Changes the history as a program that is killed before it writes its log into it. */
async function leaveLog(file: string): Promise<void> {
  await chmod(file, 0o644);
  await inDuckDb(
    (connection) => connection.run('PRAGMA disable_checkpoint_on_shutdown; CREATE TABLE mine (note VARCHAR)'),
    file,
  );
  expect((await stat(`${file}.wal`)).size).toBeGreaterThan(0);
}

describe('files next to ours', () => {
  let site: Site;
  let loaded: string;
  const inData = (name: string) => join(site.cwd, 'data', name);
  const history = () => historyFile(site.cwd);
  beforeAll(async () => {
    site = await openSite({ firstDay: daysAgo(12), pages: 10 });
    endedWith(0, await site.run('export'));
    loaded = await keep(site.cwd);
  });
  beforeEach(() => putBack(site.cwd, loaded));

  it('no reader applies the log of a program that opened the history for writing, and the worker removes it', async () => {
    const refusal = `Cannot open the history ${history()}: another program has written to it, and left a log that does not belong to it. Close that program, then delete the log: rm '${history()}.wal'`;
    const expectRefused = async () => {
      for (const args of [
        ['sql', 'FROM site_days'],
        ['report', 'weekly', '--format', 'text'],
        ['improve'],
        ['export', '--plan'],
      ])
        expect(endedWith(1, await site.run(...args)).stderr, args.join(' ')).toBe(`${refusal}\n`);
      expect((await site.run('doctor')).stdout).toMatch(/^fail +history +Cannot open .+: rm '/m);
      const assistant = await mcpClient(site.cwd);
      for (const [tool, asked] of [
        ['query', { sql: 'FROM site_days' }],
        ['weekly_report', {}],
      ] as const)
        expect(await assistant.ask(tool, asked), tool).toMatch(/another program has written to it.+: rm '/);
    };
    const expectRemoved = async () => {
      const { stderr } = endedWith(0, await site.run('export', '--reload', '--from', daysAgo(1)));
      expect(stderr).toMatch(/Another program has written to the history, and left .+\.wal\. It was removed/);
      endedWith(0, await site.run('sql', 'FROM site_days'));
    };
    // So that the state knows what this file has.
    endedWith(0, await site.run('export'));
    await leaveLog(history());
    const log = await readFile(`${history()}.wal`);
    await expectRefused();
    // It reads the state alone.
    endedWith(0, await site.run('status'));
    await expectRemoved();
    // Such a program may also write its log after the file was replaced.
    await writeFile(`${history()}.wal`, log);
    expect(endedWith(1, await site.run('improve')).stderr).toBe(`${refusal}\n`);
    await expectRemoved();
    await writeFile(`${history()}.wal`, log);
    expect(endedWith(0, await site.run('publish', '--parquet', join(site.cwd, 'dataset'))).stderr).toContain(
      'It was removed',
    );
    await rm(inData('state.db'));
    await writeFile(`${history()}.wal`, log);
    expect(endedWith(0, await site.run('restore')).stdout).toContain('It was removed');
    expect(await answerOf(history(), "SELECT 1 FROM duckdb_tables() WHERE table_name = 'mine'")).toEqual([]);
  });

  it('a history that another program has open is not read, and that program is named', async () => {
    await chmod(history(), 0o644);
    await inDuckDb(async () => {
      const { stderr } = endedWith(1, await runCli(['sql', 'FROM site_days'], { cwd: site.cwd }));
      expect(stderr).toMatch(
        new RegExp(
          `^Cannot open the history .+: .*node \\(PID ${process.pid}\\) has the file open\\.\nClose the program that has the file open, then run the command again\\.\n$`,
        ),
      );
    }, history());
  });

  it('what a killed process left goes with the next command that is the worker, whatever that does', async () => {
    const left = [
      ...['history.duckdb.next-12345', 'history.duckdb.next-12345.wal'],
      ...['state.db.next-12345', 'state.db.next-12345-journal'],
    ];
    for (const name of left) await writeFile(inData(name), 'half of it');
    await mkdir(inData('history.duckdb.next-12345.tmp'));
    endedWith(0, await site.run('jobs', 'list'));
    expect(await readdir(join(site.cwd, 'data'))).toEqual(expect.arrayContaining(left));
    endedWith(0, await site.run('jobs', 'poll'));
    expect((await readdir(join(site.cwd, 'data'))).filter((name) => name.includes('.next-'))).toEqual([]);
  });

  it('a pipe in the place of a file is named, and never waited for', async () => {
    for (const [name, code] of [
      ['notes.yaml', 2],
      ['readership.yaml', 2],
    ] as const) {
      const path = join(site.cwd, name);
      await rename(path, `${path}.away`).catch(() => undefined);
      await promisify(execFile)('mkfifo', [path]);
      const result = await startCli(['run'], { cwd: site.cwd, env }).result;
      expect(result.stderr).toContain(`Cannot read ${path}: it is not a file.`);
      expect(result.code).toBe(code);
      await rename(path, `${path}.pipe`);
      await rename(`${path}.away`, path).catch(() => undefined);
    }
  });
});
