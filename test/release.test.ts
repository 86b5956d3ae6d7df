import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { tempDir } from './temp-dir.js';

const schema = z.object({
  jobs: z.object({
    release: z.object({
      steps: z.array(z.object({ name: z.string().optional(), run: z.string().optional() })),
    }),
  }),
});

it('a release uses its section of the changelog, and is refused without a dated one or with another tag', async () => {
  const file = join(import.meta.dirname, '../.github/workflows/release.yml');
  const { steps } = schema.parse(parse(await readFile(file, 'utf8'))).jobs.release;
  const script = steps.find(({ name }) => name === 'Find the changes')?.run ?? expect.fail();
  const cwd = await tempDir();
  await writeFile(join(cwd, 'package.json'), '{ "version": "0.2.0" }');
  const find = async (tag: string, changelog: string) => {
    await writeFile(join(cwd, 'CHANGELOG.md'), changelog);
    const env = { PATH: process.env['PATH'], RUNNER_TEMP: cwd, GITHUB_REF_NAME: tag };
    await promisify(execFile)('bash', ['-e', '-c', script], { cwd, env });
    return readFile(join(cwd, 'changes.md'), 'utf8');
  };
  const dated = '# Changelog\n\n## 0.2.0 - 2026-12-01\n\n- New.\n\n## 0.1.0 - 2026-10-01\n\n- Old.\n';
  expect(await find('v0.2.0', dated)).toBe('\n- New.\n\n');
  await expect(find('v0.3.0', dated)).rejects.toMatchObject({
    stdout: expect.stringContaining('not the version') as string,
  });
  await expect(find('v0.2.0', dated.replace('2026-12-01', 'unreleased'))).rejects.toMatchObject({
    stdout: expect.stringContaining('no dated section') as string,
  });
});
