import { execFile } from 'node:child_process';
import { chmod, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, it } from 'vitest';
import { answerOf, inDuckDb } from '../duckdb.js';
import { startCli } from '../run-cli.js';
import { openSite, type Site } from './site.js';
import { daysAgo, endedWith, env, historyFile } from './workspace.js';

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
  const history = () => historyFile(site.cwd);
  beforeEach(async () => {
    site = await openSite();
    endedWith(0, await site.run('run'));
  });

  it('the log of a program that opened the history for writing is removed with that version', async () => {
    await leaveLog(history());
    const log = await readFile(`${history()}.wal`);
    const change = () => site.run('export', '--reload', '--from', daysAgo(1));
    const { stderr } = endedWith(0, await change());
    expect(stderr).toMatch(/Another program has written to the history, and left .+\.wal\. It was removed/);
    endedWith(0, await site.run('sql', 'FROM site_days'));
    // Such a program may also write its log after the file was replaced.
    await writeFile(`${history()}.wal`, log);
    const refused = endedWith(1, await site.run('sql', 'FROM site_days'));
    expect(refused.stderr).toBe(
      `Cannot open the history ${history()}, because another program has written to it, and left a log that does not belong to it. Delete that: rm '${history()}.wal'\n`,
    );
    expect(endedWith(0, await change()).stderr).toContain('It was removed');
    endedWith(0, await site.run('sql', 'FROM site_days'));
    expect(await answerOf(history(), "SELECT 1 FROM duckdb_tables() WHERE table_name = 'mine'")).toEqual([]);
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
