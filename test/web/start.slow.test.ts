import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, it, vi } from 'vitest';
import { hashPassword } from '../../src/web/access.js';
import { KEY, serveSandbox, workspaceOf } from '../commands/workspace.js';
import { runCli, startCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { basic } from './site.js';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

it('start serves the web app in its own process, and does not print the link', async () => {
  const port = await freePort();
  const sandbox = await serveSandbox();
  const env = { READERSHIP_API_KEY: KEY };
  const guarded = `history: { requestsPerHour: unlimited }
serve: { port: ${port}, password: '${await hashPassword('correct horse battery')}' }`;
  const service = startCli(['start'], { cwd: await workspaceOf(sandbox, guarded), env });
  await service.until(/"step":"publish"[^\n]*|publish[^\n]*done/);
  const origin = `http://127.0.0.1:${port}`;
  const probe = await request(`${origin}/healthz`);
  expect([probe.statusCode, await probe.body.text()]).toEqual([200, 'ok\n']);
  const body = 'password=correct+horse+battery';
  const login = await request(`${origin}/login`, { method: 'POST', headers: { origin }, body });
  const cookie = String(login.headers['set-cookie']).split(';', 1).join('');
  await expect
    .poll(
      async () => {
        const { statusCode, body } = await request(`${origin}/pages`, { headers: { cookie } });
        await body.dump();
        return statusCode;
      },
      { timeout: 20_000 },
    )
    .toBe(200);
  const metrics = await request(`${origin}/metrics`, { headers: basic('correct horse battery') });
  expect(await metrics.body.text()).toMatch(/^readership_step_done\{step="export"\} 1$/m);
  service.child.kill('SIGTERM');
  const { code, stdout } = await service.result;
  expect(code).toBe(0);
  expect(stdout).toContain('serving the web app');
  for (const step of ['export', 'improve', 'poll', 'report'])
    expect(stdout).toMatch(new RegExp(`"step":"${step}","next":"[^"]+Z","msg":"${step} is scheduled"`));

  const unguarded = await workspaceOf(sandbox, `serve: { port: ${port} }`);
  const refused = await runCli(['start'], { cwd: unguarded, env });
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining(':3  serve.password: is missing'),
  ]);
  const linked = await workspaceOf(sandbox, `serve: { port: ${port}, auth: link }`);
  const elsewhere = await runCli(['serve', '--host', '0.0.0.0'], { cwd: linked, env });
  expect([elsewhere.code, elsewhere.stderr]).toEqual([2, expect.stringContaining('serve.password')]);
  const unknown = await runCli(['serve', '--host', '[192.0.2.1]'], {
    cwd: await workspaceOf(sandbox, guarded),
    env,
  });
  expect([unknown.code, unknown.stderr]).toEqual([
    2,
    expect.stringMatching(/192\.0\.2\.1, port .*Choose another --host\.$/m),
  ]);
  const hashed = await runCli(['serve', '--hash-password'], {
    cwd: unguarded,
    // As password managers pipe it, without a newline.
    stdin: 'correct horse battery',
  });
  expect(hashed.stdout).toMatch(/^password: scrypt:[\w-]{22}:[\w-]{43}\n$/);
});

it('serve --open opens its link in the browser without secrets, and says so if it cannot', async () => {
  const cwd = await workspaceOf(await serveSandbox());
  const opened = join(cwd, 'opened');
  const openedBy = async (script: string) => {
    const path = await tempDir();
    // Each system has its own.
    for (const name of script === '' ? [] : ['xdg-open', 'open'])
      await writeFile(join(path, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return startCli(['serve', '--port', '0', '--open'], {
      cwd,
      env: { READERSHIP_API_KEY: KEY, PATH: path },
    });
  };
  const [works, fails, none] = await Promise.all(
    [`echo "$1$READERSHIP_API_KEY" > ${opened}`, 'exit 3', ''].map(openedBy),
  );
  await fails?.until(/open could not open the browser\. Open this yourself: http:\S+\/\?token=/);
  await none?.until(/Cannot open the browser without (?:xdg-)?open\. Open this yourself: http:/);
  await vi.waitFor(async () => {
    expect(await readFile(opened, 'utf8')).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]{43}\n$/);
  });
  for (const serve of [works, fails, none]) {
    serve?.child.kill('SIGTERM');
    expect((await serve?.result)?.code).toBe(0);
  }
});
