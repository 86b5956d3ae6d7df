import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { callCli, runCli } from '../run-cli.js';
import { reply, serve } from '../serve.js';
import { useSmallReports } from '../small-reports.js';
import { tempDir } from '../temp-dir.js';
import { APART, COMMANDS } from './commands.js';
import { echoingMailServer } from './mail.js';
import {
  expectNoTrace,
  markedSandbox,
  markedWorkspace,
  runToEnd,
  type Surroundings,
} from './marked-workspace.js';
import { dotEnv, HOOK_ID, inEveryWriting, KEY, PASSWORD, PING_ID, smtpUrl, tracesIn } from './marks.js';
import { tracesInMail } from './search.js';

describe('a command that works', () => {
  it('sends the key and the password as they are, and leaves no trace of them', async () => {
    const { server, passwords } = await echoingMailServer();
    const pings = await serve(({ url }, response) =>
      reply(response, 200, url.pathname.startsWith('/services/') ? HOOK_ID : PING_ID),
    );
    const platform = await markedSandbox();
    const surroundings = { platform, smtp: smtpUrl(server.port), pings: pings.baseUrl };
    const shared = await markedWorkspace(surroundings);
    const apart = Object.entries(COMMANDS).filter(([command]) => APART.has(command));
    const inTurn = Object.entries(COMMANDS).filter(([command]) => !APART.has(command));
    // What a command writes is searched at once, and its files when all commands of the workspace have run.
    const tryAll = async (entries: typeof apart, workspace: () => Promise<string>) => {
      const workspaces = new Set<string>();
      for (const [command, uses] of entries)
        for (const use of uses) {
          const args = [...command.split(' '), ...use];
          const cwd = await workspace();
          workspaces.add(cwd);
          const { stdout, stderr } = await runToEnd(args, { cwd });
          expect(stderr).not.toContain('bug in Readership');
          expect({ args, traces: tracesIn(stdout + stderr) }).toEqual({ args, traces: [] });
        }
      for (const cwd of workspaces) await expectNoTrace(cwd, { stdout: '', stderr: '' }, 'files');
    };
    await Promise.all([
      tryAll(inTurn, () => Promise.resolve(shared)),
      tryAll(apart, async () => useSmallReports(await markedWorkspace(surroundings))),
    ]);
    // The sandbox accepts only this key.
    const { views, create, message } = platform.inspect().requests.counts;
    expect([views?.['200'], create?.['201'], message?.['200']].every((count = 0) => count > 0)).toBe(true);
    expect([...passwords]).toEqual([PASSWORD]);
    const asked = pings.seen.map(({ url }) => url.pathname);
    for (const path of [`/${PING_ID}`, `/services/T0/${HOOK_ID}`]) expect(asked).toContain(path);
    const mails = [...server.accepted.values()].flat();
    expect(mails.length).toBeGreaterThan(0);
    for (const mail of mails) expect(await tracesInMail('a mail received', mail)).toEqual([]);
  }, 300_000);
});

describe('a secret in the configuration', () => {
  it.each([
    ['the user name of an address', `baseUrl: 'https://${encodeURIComponent(KEY)}@platform.example.com'`],
    ['the password of an address', `baseUrl: 'https://docs:${encodeURIComponent(KEY)}@platform.example.com'`],
    ['the path of an address', `baseUrl: 'https://platform.example.com/${encodeURIComponent(KEY)}'`],
    [
      'the address of a sitemap',
      `improve: { sitemap: 'https://a:${encodeURIComponent(KEY)}@docs.example.com' }`,
    ],
    ['a query of it', `improve: { sitemap: 'https://docs.example.com?key=${encodeURIComponent(KEY)}' }`],
    ['the name of a sender', `mail: { from: ${JSON.stringify(`"${PASSWORD}" <docs@example.com>`)} }`],
    ['the name of a setting', `? ${JSON.stringify(KEY)}\n: 1`],
    ['what YAML takes for an alias', `dataDir: *${KEY}`],
  ])('as %s is refused, without being repeated', async (_, setting) => {
    const cwd = await tempDir();
    const project = 'projects: [{ id: prj_1 }]\n';
    const baseUrl = setting.startsWith('baseUrl') ? '' : 'baseUrl: https://platform.example.com\n';
    await writeFile(join(cwd, 'readership.yaml'), `${baseUrl}${project}${setting}\n`);
    await writeFile(join(cwd, '.env'), dotEnv(smtpUrl(1)));
    const result = await callCli(['doctor'], { cwd });
    expect(result.stdout).toMatch(/^fail {2}configuration /);
    await expectNoTrace(cwd, result, setting);
  });
});

/** Throws what is written to a socket if it contains a secret, where nothing can catch it. */
const CRASH = `
const { Socket } = require('node:net');
const { write } = Socket.prototype;
Socket.prototype.write = function (chunk, ...rest) {
  const text = String(chunk);
  if (/authorization: |^AUTH /i.test(text))
    setImmediate(() => {
      const fault = Object.assign(new Error('crashed with ' + text), { text, cause: new Error(text) });
      if (process.env.CRASH === 'throws') throw fault;
      void Promise.reject(process.env.CRASH === 'rejects' ? fault : { text });
    });
  return write.call(this, chunk, ...rest);
};`;

describe('a crash', () => {
  let base: string;
  let surroundings: Surroundings;
  beforeAll(async () => {
    const { server } = await echoingMailServer();
    surroundings = { platform: await markedSandbox(), smtp: smtpUrl(server.port) };
    base = await markedWorkspace(surroundings);
    expect(await callCli(['export'], { cwd: base })).toMatchObject({ code: 0 });
  });

  it.each([
    ['throws', ['export']],
    ['rejects', ['export']],
    ['rejects with no error', ['doctor']],
    ['throws', ['report', 'send', 'weekly']],
  ])('that %s in the middle of %s leaves no trace of a secret', async (crash, args) => {
    const cwd = await markedWorkspace(surroundings, args[0] === 'report' ? base : undefined);
    const preload = join(cwd, 'crash.cjs');
    await writeFile(preload, CRASH);
    const result = await runCli(args, { cwd, env: { NODE_OPTIONS: `--require=${preload}`, CRASH: crash } });
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('bug in Readership');
    await expectNoTrace(cwd, result, crash);
  });
});

describe('what the search finds', () => {
  it('is a secret in every encoding that it searches for', async () => {
    for (const secret of [KEY, PASSWORD, `/${PING_ID}`]) {
      expect(tracesIn(secret)).not.toEqual([]);
      expect(tracesIn(inEveryWriting(secret))).not.toEqual([]);
    }
    const cwd = await markedWorkspace({ platform: { baseUrl: 'http://127.0.0.1:1', projectId: 'prj_1' } });
    expect(tracesIn(await readFile(join(cwd, '.env')))).not.toEqual([]);
  });
});
