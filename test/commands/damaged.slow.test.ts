import { chmod, copyFile, mkdir, readdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { inDuckDb } from '../duckdb.js';
import { changeHistory } from '../open-history.js';
import { tempDir } from '../temp-dir.js';
import { expectAllOnce, openSite, type Site } from './site.js';
import { endedWith, historyFile } from './workspace.js';

const HEADERS_BYTES = 3 * 4096;
const PAGE_BYTES = 4096;
const BLOCK_BYTES = 256 * 1024;

/** One page of every block except the first, which is needed to open the file. */
async function flipPages(file: string): Promise<void> {
  const bytes = await readFile(file);
  for (let block = HEADERS_BYTES + BLOCK_BYTES; block < bytes.length; block += BLOCK_BYTES)
    for (let at = block + PAGE_BYTES; at < block + 2 * PAGE_BYTES; at++) bytes[at] = ~(bytes[at] ?? 0) & 0xff;
  await writeFile(file, bytes);
}

const halve = async (file: string) => truncate(file, Math.floor((await readFile(file)).length / 2));
const garble = async (file: string) =>
  writeFile(file, 'no header, no magic bytes'.repeat(30), { flag: 'r+' });
const upgrade = (file: string) => changeHistory(file, 'UPDATE internal.version SET version = 999');
async function exchange(file: string): Promise<void> {
  await rm(file);
  await inDuckDb((connection) => connection.run('CREATE TABLE sales AS SELECT 1 AS id'), file);
}
async function exchangeForState(file: string): Promise<void> {
  await rm(file);
  await copyFile(join(dirname(file), 'state.db'), file);
}
async function replaceByDirectory(file: string): Promise<void> {
  await rm(file);
  await mkdir(file);
}

const READING = [['sql', 'FROM page_views'], ['report', 'weekly', '--format', 'text'], ['improve']];
const WRITING = [['export'], ['audit'], ['improve', '--apply'], ['run']];

const DAMAGED =
  /^Cannot (?:open|read) the history .+\nRestore a backup of it: readership restore --from FILE\nWithout one, .+: readership export --reload$/m;
const NOT_OURS =
  /is not a history of Readership: .+Nothing was changed\. Move it away, .+ then run the command again\.$/m;
const NEWER = /A newer version of Readership wrote the history .+Nothing was changed\. Install that version/;
const NO_FILE =
  /is not a file\. Nothing was changed\. Move away what is there, then run the command again\.$/m;

describe('a history', () => {
  let site: Site;
  let data: string;
  let backup: string;
  const file = () => historyFile(site.cwd);
  const created = () => site.sandbox.inspect().jobs.length;
  const content = () => readFile(file()).catch((error: unknown) => String(error));
  beforeAll(async () => {
    site = await openSite();
    data = join(site.cwd, 'data');
    endedWith(0, await site.run('run'));
    backup = join(await tempDir(), 'history.duckdb');
    await copyFile(file(), backup);
  });
  afterEach(async () => {
    for (const name of await readdir(data))
      if (name.startsWith('history.duckdb')) await rm(join(data, name), { recursive: true });
    await copyFile(backup, file());
  });

  async function expectRefused(says: RegExp, commands: readonly (readonly string[])[]): Promise<void> {
    const before = { content: await content(), files: await readdir(data), jobs: created() };
    for (const args of commands) {
      const { code, stdout, stderr } = await site.run(...args);
      expect({ args, code, stdout }, stderr).toEqual({ args, code: 1, stdout: '' });
      expect(stderr.match(new RegExp(says, 'gm')), `${args.join(' ')}: ${stderr}`).toHaveLength(1);
    }
    expect({ content: await content(), files: await readdir(data), jobs: created() }).toEqual(before);
  }

  it.each([
    ['that is torn at its beginning', garble, DAMAGED, [...READING, ['export']]],
    ['that was cut off', halve, DAMAGED, [...READING, ...WRITING]],
    // Only who reads these pages notices.
    ['with changed pages', flipPages, DAMAGED, READING],
    ['of another program', exchange, NOT_OURS, [...READING, ...WRITING]],
    ['that is a file of SQLite', exchangeForState, NOT_OURS, [...READING, ['export']]],
    ['of a newer version', upgrade, NEWER, [...READING, ...WRITING]],
    ['that is a directory', replaceByDirectory, NO_FILE, [...READING, ...WRITING]],
  ])(
    '%s is refused in one sentence with what to do next, and left as it is',
    async (_, damage, says, commands) => {
      await chmod(file(), 0o644);
      await damage(file());
      await expectRefused(says, commands);
    },
  );

  it.each([
    ['was cut off', halve],
    ['is of another program', exchange],
    ['is a directory', replaceByDirectory],
  ])('that %s is named by doctor', async (_, damage) => {
    await chmod(file(), 0o644);
    await damage(file());
    expect((await site.run('doctor')).stdout).toMatch(/^(fail|warn) +(history|reports) .+/m);
  });

  it('that is lost is loaded again as the message says: nothing is sent twice, and nothing changes before', async () => {
    await rename(file(), `${file()}.away`);
    const lost =
      /The history .+ is missing, although days were loaded\. Nothing was changed\.\nRestore a backup: readership restore --from FILE\nOr load again .+: readership export --reload$/m;
    const others = [['status'], ['export', '--plan'], ['jobs', 'poll'], ['report', 'send', 'weekly']];
    await expectRefused(lost, [...READING, ...WRITING, ...others]);
    expect((await site.run('doctor')).stdout).toMatch(/^fail +history +The history .+ is missing, although/m);
    const [jobs, emails] = [created(), site.emails()];
    const plan = endedWith(0, await site.run('export', '--reload', '--plan'));
    expect(plan.stdout).toMatch(/never loaded +\d+ days/);
    endedWith(0, await site.run('export', '--reload'));
    endedWith(0, await site.run('run'));
    await expectAllOnce(site);
    expect([created(), site.emails()]).toEqual([jobs, emails]);
    expect((await site.run('sql', 'SELECT count(*) AS jobs FROM jobs')).stdout).toBe(`jobs\n${jobs}\n`);
  });
});
