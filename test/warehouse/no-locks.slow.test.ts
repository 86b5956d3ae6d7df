import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { runCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';

const SHIM = fileURLToPath(new URL('no-locks.c', import.meta.url));

it.each([
  ['ENOLCK', 37],
  ['EOPNOTSUPP', 95],
  ['EINVAL', 22],
])('a file system whose locks fail with %s is named, and not another process', async (_, errno) => {
  const cwd = await tempDir();
  const library = join(cwd, 'no-locks.so');
  await promisify(execFile)('cc', ['-shared', '-fPIC', '-o', library, SHIM, '-ldl']);
  const env = { LD_PRELOAD: library, LOCK_ERRNO: String(errno) };
  const { code, stderr } = await runCli(['export', '--sandbox'], { cwd, env });
  expect(code).toBe(1);
  expect(stderr).toMatch(/Locks do not work in .* Set dataDir to a directory on a local disk/);
  expect(stderr).not.toContain('another process');
  const { stdout } = await runCli(['doctor', '--sandbox', '--json'], { cwd, env });
  expect(stdout).toContain('no working locks');
});
