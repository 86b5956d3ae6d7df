import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { KEY, daysAgo, serveSandbox } from './commands/workspace.js';
import { startMailServer } from './mail/mail-server.js';
import { tempDir } from './temp-dir.js';

const ROOT = join(import.meta.dirname, '..');

it('docs/tutorial.md leads to the first email, command by command as printed', async () => {
  const { baseUrl, projectId } = await serveSandbox({ firstDay: daysAgo(40) });
  const tutorial = await readFile(join(ROOT, 'docs/tutorial.md'), 'utf8');
  const server = await startMailServer();
  const commands = [...tutorial.matchAll(/^```sh\n([^]+?)^```/gm)].map(([, text]) => text).join('');
  const own = commands
    .replaceAll('smtp://USER:PASSWORD@smtp.example.com:587', `smtp://127.0.0.1:${server.port}`)
    .replaceAll('https://platform.example.com', baseUrl)
    .replaceAll('prj_123', projectId)
    .replaceAll('YOUR_KEY', KEY);
  expect(own).not.toBe(commands);
  const cwd = join(await tempDir(), 'clone');
  await mkdir(cwd);
  const program = `#!/bin/sh\nexec '${process.execPath}' '${join(ROOT, 'dist/cli.js')}' "$@"\n`;
  await writeFile(join(cwd, 'readership'), program, { mode: 0o755 });
  const env = { PATH: `${cwd}:${process.env['PATH'] ?? ''}`, HOME: cwd };
  const { stdout } = await promisify(execFile)('sh', ['-euxc', own], { cwd, env });
  expect(stdout).not.toMatch(/^(fail|attention) /m);
  expect(stdout).toMatch(/^pass {2}page views/m);
  expect(stdout).toContain('7 of 7 days loaded');
  expect(stdout).toMatch(/\b(?:39|40|41) new days of /);
  expect(stdout).toMatch(/^prj_sandbox,\d{4}-\d\d-\d\d,/m);
  for (const to of ['docs@example.com', 'me@example.com']) expect(server.accepted.get(to)).toHaveLength(1);
});
