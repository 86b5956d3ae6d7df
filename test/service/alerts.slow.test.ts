import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import PostalMime from 'postal-mime';
import { describe, expect, it } from 'vitest';
import { callCleanly, KEY, serveSandbox, workspaceOf } from '../commands/workspace.js';
import { callCli } from '../run-cli.js';
import { reply, serve } from '../serve.js';
import { tempDir } from '../temp-dir.js';
import { useSmallReports } from '../small-reports.js';

/** A workspace whose runs are monitored by email and pings. */
async function setUp(pingPath = '/abc/') {
  const pings = await serve((_, response) => reply(response, 200, 'OK'));
  const sandbox = await serveSandbox();
  const alerts = `alerts: { to: [ops@example.com], pingUrl: '${pings.baseUrl}${pingPath}' }`;
  const cwd = await workspaceOf(sandbox, `mail: { from: docs@example.com }\n${alerts}\n`);
  await useSmallReports(cwd);
  const run = (key = KEY) => callCleanly(['run'], { cwd, env: { READERSHIP_API_KEY: key } });
  const outbox = join(cwd, 'data', 'outbox');
  const subjects = async (directory = outbox) => {
    const names = await readdir(directory).catch(() => []);
    const mails = names.map(async (name) => PostalMime.parse(await readFile(join(directory, name))));
    return (await Promise.all(mails)).map(({ subject }) => subject ?? '').sort();
  };
  return { pings, cwd, outbox, run, subjects, sandbox };
}

describe('alerts', () => {
  it('ping /start before each export, and the plain URL or /fail after; an unreachable server is only noted', async () => {
    const { run, pings, cwd, sandbox } = await setUp();
    const asked = () => pings.seen.map(({ url }) => url.pathname);
    await run();
    expect(asked()).toEqual(['/abc/start', '/abc']);
    await run('wrong-key');
    expect(asked().slice(2)).toEqual(['/abc/start', '/abc/fail']);
    const file = join(cwd, 'readership.yaml');
    const yaml = await readFile(file, 'utf8');
    await writeFile(file, yaml.replace(pings.baseUrl, 'http://127.0.0.1:1'));
    const { code, stderr } = await run();
    expect(code).toBe(0);
    expect(stderr).toContain('The ping to http://127.0.0.1:1 (alerts.pingUrl) failed');
    expect(stderr).not.toContain('/abc');
    // A run that has to wait has not failed.
    await writeFile(file, yaml);
    sandbox.setFaults([{ on: 'views', kind: 'rate-limit', seconds: 3600 }]);
    await run();
    expect(asked().slice(4)).toEqual(['/abc/start']);
    // A copy of the workspace is not what is monitored.
    const copy = join(await tempDir(), 'copy');
    await cp(cwd, copy, { recursive: true });
    await callCli(['run'], { cwd: copy, env: { READERSHIP_API_KEY: KEY } });
    expect(asked()).toHaveLength(5);
  });
});
