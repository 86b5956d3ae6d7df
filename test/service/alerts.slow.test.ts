import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import PostalMime from 'postal-mime';
import { describe, expect, it } from 'vitest';
import { readDeliveries } from '../../src/state/emails.js';
import { callCleanly, KEY, serveSandbox, workspaceOf } from '../commands/workspace.js';
import { openTestState } from '../open-state.js';
import { callCli } from '../run-cli.js';
import { reply, serve } from '../serve.js';
import { tempDir } from '../temp-dir.js';

/** A workspace whose runs are monitored by email and pings. */
async function setUp(pingPath = '/abc/') {
  const pings = await serve((_, response) => reply(response, 200, 'OK'));
  const sandbox = await serveSandbox();
  const alerts = `alerts: { to: [ops@example.com], pingUrl: '${pings.baseUrl}${pingPath}' }`;
  const cwd = await workspaceOf(sandbox, `mail: { from: docs@example.com }\n${alerts}\n`);
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
  it('send one email per outage and one when it is over, however many runs it lasts', async () => {
    const { run, subjects, outbox, cwd } = await setUp();
    for (let times = 0; times < 3; times++) {
      expect((await run('wrong-key')).code).not.toBe(0);
      expect((await subjects()).filter((subject) => subject.includes('export'))).toEqual([
        'Readership: export fails',
      ]);
    }
    const [name = ''] = (await readdir(outbox)).filter((file) => file.includes('export'));
    const { text } = await PostalMime.parse(await readFile(join(outbox, name)));
    expect(text).toMatch(/export has failed since .+ UTC:\s+.+key.+\s+Readership retries what it can/s);
    expect(text).not.toContain('wrong-key');
    const { state, close } = await openTestState(join(cwd, 'data'));
    const alerts = readDeliveries(state).filter(({ period }) => period.startsWith('export'));
    expect(alerts.map((alert) => alert.state)).toEqual(['sent']);
    await close();
    for (let times = 0; times < 2; times++) {
      await run();
      expect((await subjects()).filter((subject) => subject.includes('export'))).toEqual([
        'Readership: export fails',
        'Readership: export works again',
      ]);
    }
    // A second outage gets its own email, as does one of the last step.
    await rm(outbox, { recursive: true });
    await writeFile(join(cwd, 'notes.yaml'), '- text: without a date\n');
    await run('wrong-key');
    for (const step of ['export', 'report']) expect(await subjects()).toContain(`Readership: ${step} fails`);
  });

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
