import { chmod, readdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
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

describe('a damaged file', () => {
  let site: Site;
  let data: string;
  const published = () => readFile(join(data, 'history.duckdb'));
  beforeAll(async () => {
    site = await openSite();
    data = join(site.cwd, 'data');
    expect(await site.run('run')).toMatchObject({ code: 0 });
  });

  it.each([
    ['with a broken header', garble, [['export'], ['improve', '--apply'], ['jobs', 'poll'], ['doctor']]],
    ['with pages changed', flipPages, [['publish']]],
    ['cut off in the middle', halve, [['publish']]],
  ])(
    'that is the live database, %s, is reported, and the suggested commands restore everything',
    async (_, damage, commands) => {
      const others = (await readdir(data)).filter((name) => !name.startsWith('history.duckdb'));
      const before = await published();
      const jobs = site.sandbox.inspect().jobs.length;
      await damage(historyFile(site.cwd));

      for (const args of [...commands, ['run']]) {
        const { code, stdout, stderr } = await site.run(...args);
        expect({ args, code }).toEqual({ args, code: 1 });
        const told = (stdout + stderr).match(/It is damaged\. .+: readership restore/g);
        expect(told, stderr).toHaveLength(1);
      }
      expect((await published()).equals(before)).toBe(true);
      expect(await site.run('sql', 'FROM site_days')).toMatchObject({ code: 0 });

      endedWith(0, await site.run('restore'));
      endedWith(0, await site.run('run'));
      await expectAllOnce(site);
      expect(site.sandbox.inspect().jobs).toHaveLength(jobs);
      const left = await readdir(data);
      expect(left).toEqual(expect.arrayContaining(others));
      expect(left.some((name) => name.startsWith('history.duckdb.replaced-'))).toBe(true);
    },
  );

  it.each(['publish', 'run'])(
    'that is the published history, with changed pages, is reported, and rebuilt by readership %s',
    async (rebuild) => {
      const file = join(data, 'history.duckdb');
      await chmod(file, 0o644);
      await flipPages(file);
      for (const args of [
        ['sql', 'FROM page_views'],
        ['report', 'weekly', '--format', 'text'],
        ['improve'],
      ]) {
        const { code, stderr } = await site.run(...args);
        expect({ args, code }).toEqual({ args, code: 1 });
        expect(stderr).toMatch(
          /^Cannot (?:open|read) the published history .+ Write it again: readership publish\n$/,
        );
      }
      expect(await site.run(rebuild)).toMatchObject({ code: 0 });
      expect(await site.run('improve')).toMatchObject({ code: 0 });
    },
  );
});
