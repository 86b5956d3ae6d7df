import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { callCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';

it.each(['sandbox', 'run --sandbox'])('%s says only that the sandbox state is damaged', async (command) => {
  const cwd = await tempDir();
  await mkdir(join(cwd, 'data/sandbox'), { recursive: true });
  await writeFile(join(cwd, 'data/sandbox/sandbox.json'), '{"version":1,');
  const { code, stderr } = await callCli(command.split(' '), { cwd });
  expect(code).toBe(1);
  expect(stderr.trimEnd()).toMatch(
    /^.+sandbox\.json cannot be read as the state .+ Delete it to start a new sandbox\.$/,
  );
});
