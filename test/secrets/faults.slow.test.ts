import pMap from 'p-map';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Sandbox } from '../sandbox/faulty-sandbox.js';
import { SANDBOX } from '../../src/sandbox/state.js';
import type { Behavior, MailServer } from '../mail/mail-server.js';
import { callCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { BELIEVED, ECHOES, serveEcho } from './echoing-platform.js';
import { echoingMailServer } from './mail.js';
import { expectNoTrace, markedSandbox, markedWorkspace, RECIPIENT, runToEnd } from './marked-workspace.js';
import { KEY, PASSWORD, smtpUrl } from './marks.js';
import { useSmallReports } from '../small-reports.js';

const PROCESSES_AT_ONCE = 3;

/** CI tries every sixth failure, others each day. */
const tried = <Failure>(failures: readonly Failure[]): readonly Failure[] =>
  process.env['CI'] === undefined
    ? failures
    : failures.filter((_, index) => (index + new Date().getUTCDate()) % 6 === 0);

const MESSAGE = ['jobs', 'message', '1', 'Mention the limits.'];

/** The commands that send requests to the platform. */
const SPEAKING: readonly (readonly string[])[] = [
  ['run'],
  ['audit', '--repair'],
  ['doctor'],
  ['export'],
  ['improve', '--apply'],
  MESSAGE,
  ['jobs', 'poll'],
  ['start'],
];

let base: string;
let stateFile: string;

beforeAll(async () => {
  stateFile = join(await tempDir(), 'sandbox.json');
  base = await useSmallReports(await markedWorkspace({ platform: await markedSandbox({ stateFile }) }));
  // There is no mail server.
  expect(await callCli(['run'], { cwd: base })).toMatchObject({ code: 75 });
});

/** A sandbox with the jobs of the base workspace. */
async function sandboxAsBefore(): Promise<Sandbox> {
  const copy = join(await tempDir(), 'sandbox.json');
  await cp(stateFile, copy);
  return markedSandbox({ stateFile: copy });
}

describe('a failure of the platform', () => {
  it('that repeats the key, in any encoding, leaves no trace of it', async () => {
    const patient = new Set(['429', '429 in plain text', '500', '503', 'a cut connection']);
    const echoes = Object.keys(ECHOES).map((name, turn) => ({
      name,
      args: patient.has(name) ? MESSAGE : (SPEAKING[turn % SPEAKING.length] ?? []),
    }));
    const commands = SPEAKING.map((args) => ({ name: BELIEVED, args }));
    await pMap(
      tried([...echoes, ...commands]),
      async ({ name, args }) => {
        const server = await serveEcho(ECHOES[name] ?? expect.fail());
        const platform = { baseUrl: server.baseUrl, projectId: SANDBOX.projectId };
        const cwd = await markedWorkspace({ platform }, args[0] === 'start' ? undefined : base);
        const result = await runToEnd(args, { cwd });
        await expectNoTrace(cwd, result, `${args.join(' ')}: ${name}`);
        const keys = server.seen
          .filter(({ url }) => url.pathname !== '/')
          .map(({ headers }) => headers.authorization);
        // The week's jobs of this workspace are created already.
        const isSilent = args[0] === 'improve' && keys.length === 0;
        const expected = isSilent ? [] : [`Bearer ${KEY}`];
        expect([...new Set(keys)], `${args.join(' ')}: ${name}`).toEqual(expected);
      },
      { concurrency: PROCESSES_AT_ONCE },
    );
  });
});

const RECIPIENTS: Readonly<Record<string, Behavior>> = {
  'unknown@example.com': { on: 'rcpt', do: 550 },
  'greylisted@example.com': { on: 'rcpt', do: 450 },
  'gone@example.com': { on: 'rcpt', do: 'drop' },
  'refused@example.com': { on: 'data', do: 554 },
  'closing@example.com': { on: 'data', do: 421 },
  'taken@example.com': { on: 'data', do: 'drop-accepted' },
  'lost@example.com': { on: 'data', do: 'drop-lost' },
  'late@example.com': { on: 'data', do: 'delay', ms: 5 },
};

describe('a mail server that echoes the password', () => {
  const send = ['report', 'send', 'weekly', '--force'];
  const sending = async (server: MailServer, args = send, recipients?: string[], scheme?: string) => {
    const platform = await sandboxAsBefore();
    const smtp = smtpUrl(server.port, scheme);
    const surroundings = { platform, smtp, ...(recipients === undefined ? {} : { recipients }) };
    // In the base workspace, emails are waiting to be retried.
    const cwd = await markedWorkspace(surroundings, args[0] === 'run' ? undefined : base);
    await useSmallReports(cwd);
    return { cwd, end: () => callCli(args, { cwd }) };
  };

  it('in any reply leaves no trace of it', async () => {
    const { server, passwords } = await echoingMailServer();
    for (const [recipient, behavior] of Object.entries(RECIPIENTS))
      server.behaviors.set(recipient, [behavior]);
    const { cwd, end } = await sending(server, send, [RECIPIENT, ...Object.keys(RECIPIENTS)]);
    await expectNoTrace(cwd, await end(), 'behaviors');
    expect([...passwords]).toEqual([PASSWORD]);
    expect([...server.behaviors.values()].flat()).toEqual([]);
  });

  it.each([
    [535, send],
    [454, send],
    [535, ['run']],
    [535, ['doctor']],
  ])('that refuses the login with %i leaves no trace of it after %j', async (refuse, args) => {
    const { server, passwords } = await echoingMailServer({ refuse });
    const { cwd, end } = await sending(server, args);
    const result = await end();
    await expectNoTrace(cwd, result, `${refuse}`);
    expect(result.stdout + result.stderr).toContain('[redacted]');
    expect([...passwords]).toEqual([PASSWORD]);
  });

  it('with an untrusted certificate never gets it, and no trace is left', async () => {
    const { server, passwords } = await echoingMailServer({ secure: true });
    for (const args of [send, ['doctor']]) {
      const { cwd, end } = await sending(server, args, undefined, 'smtps');
      const result = await end();
      expect(result.stdout + result.stderr).toContain('certificate');
      await expectNoTrace(cwd, result, 'certificate');
    }
    expect(passwords.size).toBe(0);
  });
});
