import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, it, vi } from 'vitest';
import { hashPassword } from '../../src/web/access.js';
import { KEY, serveSandbox, workspaceOf } from '../commands/workspace.js';
import { runCli, startCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { freePort } from './site.js';
import { useSmallReports } from '../small-reports.js';

it('start serves the web app in its own process, and does not print the link', async () => {
  const port = await freePort();
  const sandbox = await serveSandbox();
  const env = { READERSHIP_API_KEY: KEY };
  const guarded = `serve: { password: '${await hashPassword('correct horse battery')}' }`;
  const service = startCli(['start', '--port', String(port)], {
    cwd: await useSmallReports(await workspaceOf(sandbox, guarded)),
    env,
  });
  await service.until(/"step":"report","outcome":"\w+"/);
  const origin = `http://127.0.0.1:${port}`;
  const probe = await request(`${origin}/healthz`);
  expect([probe.statusCode, await probe.body.text()]).toEqual([200, 'ok\n']);
  const body = 'password=correct+horse+battery';
  const login = await request(`${origin}/login`, { method: 'POST', headers: { origin }, body });
  const cookie = String(login.headers['set-cookie']).split(';', 1).join('');
  await vi.waitFor(async () => {
    const { statusCode, body } = await request(`${origin}/pages`, { headers: { cookie } });
    await body.dump();
    expect(statusCode).toBe(200);
  }, 100_000);
  const cwd = await workspaceOf(sandbox, guarded);
  const taken = await runCli(['start', '--port', String(port)], { cwd, env });
  expect([taken.code, taken.stderr]).toEqual([
    2,
    expect.stringMatching(/EADDRINUSE.+Choose another with --port/),
  ]);
  service.child.kill('SIGTERM');
  const { code, stdout } = await service.result;
  expect(code).toBe(0);
  expect(stdout).toContain('serving the web app');
  for (const step of ['export', 'improve', 'poll', 'report'])
    expect(stdout).toMatch(new RegExp(`"step":"${step}","next":"[^"]+Z","msg":"${step} is scheduled"`));

  const unguarded = await workspaceOf(sandbox, 'serve: {}');
  const alone = startCli(['start'], { cwd: unguarded, env });
  await alone.until(/the web app is not served: set serve\.password/);
  alone.child.kill('SIGTERM');
  expect((await alone.result).code).toBe(0);
  const elsewhere = await runCli(['serve', '--host', '0.0.0.0'], { cwd: unguarded, env });
  expect([elsewhere.code, elsewhere.stderr]).toEqual([2, expect.stringContaining('serve.password')]);
  const unknown = await runCli(['serve', '--host', '[192.0.2.1]'], { cwd, env });
  expect(unknown.code).toBe(2);
  expect(unknown.stderr).toMatch(/192\.0\.2\.1, port .*Choose another with --host\.$/m);
  // As password managers pipe it, without a newline.
  const stdin = 'correct horse battery';
  const hashed = await runCli(['serve', '--hash-password'], { cwd: unguarded, stdin });
  expect(hashed.stdout).toMatch(/^password: scrypt:[\w-]{22}:[\w-]{43}\n$/);
});

// What it says when it cannot is in test/terminal/output.test.ts.
it('serve --open opens its link in the browser, without secrets', async () => {
  const cwd = await workspaceOf(await serveSandbox());
  const opened = join(cwd, 'opened');
  const path = await tempDir();
  // Each system has its own.
  for (const name of ['xdg-open', 'open'])
    await writeFile(join(path, name), `#!/bin/sh\necho "$1$READERSHIP_API_KEY" > ${opened}\n`, {
      mode: 0o755,
    });
  const env = { READERSHIP_API_KEY: KEY, PATH: path };
  const serve = startCli(['serve', '--port', '0', '--open'], { cwd, env });
  await vi.waitFor(async () => {
    expect(await readFile(opened, 'utf8')).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]{43}\n$/);
  }, 100_000);
  serve.child.kill('SIGTERM');
  expect((await serve.result).code).toBe(0);
});
