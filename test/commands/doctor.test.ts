import { appendFile, chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import { readRequests } from '../../src/state/platform.js';
import { bucketNameOf } from '../../src/config/load.js';
import { settingsSchema } from '../../src/config/schema.js';
import { keyProblem } from '../../src/service/findings.js';
import { startMailServer } from '../mail/mail-server.js';
import { answerOf } from '../duckdb.js';
import { stateBeside } from '../open-state.js';
import { createState } from '../../src/state/open.js';
import { placeOf } from '../../src/state/workspace.js';
import { closeNow, newStore } from '../open-history.js';
import type { Behaviors } from '../platform.js';
import { callCli, runCli } from '../run-cli.js';
import { reply, serve } from '../serve.js';
import { tempDir } from '../temp-dir.js';
import {
  daysAgo,
  endedWith,
  env,
  expectCleanEnd,
  historyFile,
  platformOf,
  platformWorkspace,
  replaceIn,
  serveSandbox,
  workspaceOf,
} from './workspace.js';

const findings = z.array(z.object({ check: z.string(), verdict: z.string(), words: z.string() }));

async function doctor(cwd: string, variables: Record<string, string> = env, call = callCli) {
  const result = await call(['doctor', '--json'], { cwd, env: variables });
  await expectCleanEnd(cwd, result);
  const found = findings.parse(JSON.parse(result.stdout));
  const of = (check: string) =>
    found.flatMap((one) => (one.check === check ? `${one.verdict}: ${one.words}` : [])).at(0);
  return { code: result.code, of, found };
}

/** An empty history, as after the export of a site without views. */
async function emptyHistory(cwd: string): Promise<void> {
  const dataDir = join(cwd, 'data');
  (await createState(dataDir, await placeOf(dataDir))).close();
  const history = await newStore(historyFile(cwd));
  await history.write();
  await closeNow(history);
}

const verdicts = (found: z.infer<typeof findings>) =>
  found.map(({ check, verdict }) => `${check} ${verdict}`).join(', ');

describe('readership doctor', () => {
  it('passes a complete workspace with two counted requests for views, and none that could change anything', async () => {
    const sandbox = await serveSandbox();
    const mails = await startMailServer({ disabledCommands: ['AUTH', 'STARTTLS'] });
    const cwd = await workspaceOf(sandbox);
    await emptyHistory(cwd);
    const smtp = `smtp://user:a-password@127.0.0.1:${mails.port}`;
    const { code, of, found } = await doctor(cwd, { ...env, READERSHIP_SMTP_URL: smtp });
    expect(verdicts(found)).toBe(
      'configuration pass, secrets pass, server pass, key pass, sums of days pass, reports pass, notes pass, email pass, history pass, state pass, witness pass, sends from pass, dates pass, disk pass',
    );
    expect(code).toBe(0);
    expect(mails.accepted.size).toBe(0);
    // It offers no login, so the password was not checked.
    expect(of('email')).toMatch(/:\d+ answers(;|$)/);
    const { counts } = sandbox.inspect().requests;
    expect(counts.views).toEqual({ 200: 2 });
    expect(sandbox.inspect().jobs).toEqual([]);
    const bucket = bucketNameOf({ id: 'prj_1', name: 'Acme Docs', apiKeyEnv: 'READERSHIP_API_KEY' }, env);
    const { state } = await stateBeside({ path: historyFile(cwd) });
    const { sent } = readRequests(state, bucket, new Date());
    expect(sent.reduce((sum, { requests }) => sum + requests, 0)).toBe(2);
  });

  it('warns before a key expires, as status does', async () => {
    const sandbox = await serveSandbox();
    const expires = daysAgo(-9);
    const cwd = await workspaceOf(sandbox);
    await replaceIn(cwd, 'name: Acme Docs', `apiKeyExpires: ${expires}`);
    const words = 'READERSHIP_API_KEY expires in 9 days, on .+ Create a key .+ and set apiKeyExpires';
    await callCli(['export', '--from', daysAgo(2)], { cwd, env });
    expect((await doctor(cwd)).of('key')).toMatch(new RegExp(`^warn: ${words}`));
    const status = endedWith(1, await callCli(['status'], { cwd }));
    expect(status.stdout).toMatch(new RegExp(words));
    const settings = settingsSchema.parse({
      baseUrl: sandbox.baseUrl,
      projects: [{ id: 'prj_1', apiKeyExpires: '2026-11-15' }],
    });
    const wordsOn = (today: string) =>
      settings.projects.map((of) => keyProblem(of, new Date(`${today}T23:00Z`))?.words)[0];
    expect(wordsOn('2026-10-31')).toBeUndefined();
    expect(wordsOn('2026-11-01')).toContain('KEY expires in 14 days, on Nov 15, 2026. ');
    expect(wordsOn('2026-11-15')).toContain('KEY expires today, on Nov 15, 2026. ');
    expect(wordsOn('2026-11-16')).toContain('KEY expired on Nov 15, 2026. ');
  });

  it('tries a platform before anything is configured, with requests that change nothing, and writes no file', async () => {
    const sandbox = await serveSandbox();
    const cwd = await tempDir();
    const args = ['doctor', '--url', sandbox.baseUrl, '--project', sandbox.projectId];
    const { stdout, stderr } = endedWith(0, await callCli(args, { cwd, env }));
    expect(stderr).toContain('with up to six requests, which change nothing');
    expect(stdout).toMatch(/^pass {2}server +.+answers, and its clock agrees$/m);
    expect(stdout).toMatch(
      /^pass {2}page views +[\d-]+ has [\d,]+ views by people and [\d,]+ by AI, of \d+ pages\. Such a day takes 1 request, a nightly export 5, a year 365$/m,
    );
    expect(stdout).toMatch(/^pass {2}agent jobs +returned 404 for a made-up job, as expected/m);
    expect(sandbox.inspect().jobs).toEqual([]);
    expect(await readdir(cwd)).toEqual([]);
    const wrong = endedWith(1, await callCli(args, { cwd, env: { READERSHIP_API_KEY: 'wrong-key' } }));
    expect(wrong.stdout).toMatch(/^fail {2}page views +.+401.+is wrong or has expired/m);
    const encrypted = sandbox.baseUrl.replace('http:', 'https:');
    const noTls = await callCli(['doctor', '--url', encrypted, '--project', 'p'], { cwd, env });
    expect(noTls.stdout).toMatch(/^fail {2}server +.+this port does not speak TLS.+\n$/);
    const dead = ['doctor', '--url', 'http://127.0.0.1:1', '--project', 'p'];
    const unanswered = endedWith(1, await callCli(dead, { cwd, env }));
    expect(unanswered.stdout).toMatch(/^fail {2}server +http:\/\/127\.0\.0\.1:1 does not answer .+\n$/);
    for (const [words, more] of [
      ['No API key for project', args],
      ['write https://…\n', ['doctor', '--url', 'http://platform.example.com', '--project', 'p']],
      ['enter a full URL', ['doctor', '--url', 'platform', '--project', 'p']],
      ['--url goes with --project', ['doctor', '--url', sandbox.baseUrl]],
    ] as const)
      expect(endedWith(2, await callCli(more, { cwd })).stderr).toContain(words);
  });

  test.each<[name: string, behaviors: Behaviors, line: RegExp]>([
    ['does as documented', {}, /^pass {2}second page +offset 20 continues where the first page ends$/m],
    ['keeps all days', {}, /^pass {2}old days +one request covers all days since 2015-01-01: [\d,]+ views/m],
    ['caps its pages', { silentCap: 15 }, /^warn {2}page size +returns 15 rows at once instead of 250/m],
    ['has a limit', { largestLimit: 15 }, /^warn {2}page size +refuses a limit of 250; exports request 15/m],
    [
      'always has more',
      { alwaysMore: true },
      /^warn {2}second page +says that there are more rows after the last one/m,
    ],
    [
      'totals each page',
      { pageTotals: true, silentCap: 10 },
      /^warn {2}second page +returns the totals of each page/m,
    ],
    ['never has more', { neverMore: true, largestLimit: 25 }, /^pass {2}page views .* of at least 26 pages/m],
    ['counts dateTo', { inclusive: true }, /^fail {2}sums of days +it counts the day in dateTo as well/m],
    ['keeps 10 days', { keepsDays: 10 }, /^warn {2}old days +refuses days .+403: “Your plan keeps 10 days”/m],
    [
      'has no jobs',
      { sameNotFound: true },
      /^warn {2}agent jobs +not checked: the platform gives the same answer/m,
    ],
  ])('tries a platform that %s, in at most six requests and in seven lines', async (_, behaviors, line) => {
    const platform = await platformOf(30, 40, { behaviors });
    const args = ['doctor', '--url', platform.baseUrl, '--project', 'prj_1'];
    const cwd = await tempDir();
    const tried = endedWith(behaviors.inclusive ? 1 : 0, await callCli(args, { cwd, env }));
    expect(tried.stdout).toMatch(line);
    expect(platform.seen.length).toBeLessThanOrEqual(6);
    expect(tried.stdout.trimEnd().split('\n')).toHaveLength(7);
  });

  it('leaves a history whose views are of another version unchanged, and says what writes them again', async () => {
    const cwd = await workspaceOf(await serveSandbox());
    await emptyHistory(cwd);
    await answerOf(historyFile(cwd), "UPDATE internal.version SET descriptions = ''");
    const before = await readFile(historyFile(cwd));
    const { code, of } = await doctor(cwd);
    expect(code).toBe(0);
    for (const check of ['history', 'reports'])
      expect(of(check)).toMatch(/^warn: Another version .+readership run$/);
    expect(of('key')).toMatch(/^pass/);
    expect((await readFile(historyFile(cwd))).equals(before)).toBe(true);
  });

  it('says of the key what the server says, if nothing listens there, and who can read what is stored', async () => {
    const cwd = await workspaceOf({ baseUrl: 'http://127.0.0.1:1', projectId: 'prj_1' });
    await emptyHistory(cwd);
    expect((await doctor(cwd)).of('privacy')).toBeUndefined();
    await chmod(cwd, 0o755);
    await chmod(join(cwd, 'data'), 0o755);
    const open = await doctor(cwd);
    expect(open.of('key')).toMatch(/^fail: prj_1: .+ECONNREFUSED/);
    expect(open.of('privacy')).toBe(
      `warn: Everyone on this machine can read the history in ${cwd}/data: chmod o= '${cwd}/data'`,
    );
    await chmod(join(cwd, 'data'), 0o750);
    expect((await doctor(cwd)).of('privacy')).toBeUndefined();
  });

  it('does not check a key whose request limit is used up, says when it can, and finds a part that weekly cannot cover', async () => {
    const sandbox = await serveSandbox();
    const settings =
      'history: { requestsPerHour: 1 }\nreports: { weekly: { to: [a@example.com], where: /a } }\n';
    const cwd = await workspaceOf(sandbox, settings);
    await emptyHistory(cwd);
    expect((await doctor(cwd)).of('key')).toMatch(/^pass/);
    const { of } = await doctor(cwd);
    expect(of('reports')).toMatch(/^fail: reports\.weekly\.where: .+ readership report new NAME/);
    expect(of('key')).toMatch(/^warn: .*history\.requestsPerHour reached: 1 of 1 used.+can be sent on .+/);
    expect(sandbox.inspect().requests.counts.views).toEqual({ 200: 1 });
  });

  it('fails for a wrong key, mail server and channel, says what to do, and checks the rest', async () => {
    const hooks = await serve((_, response) => response.end('ok'));
    const channels =
      'channels: { chat: { kind: slack }, team: { kind: teams } }\nalerts: { to: [chat, team] }\nreports: { weakly: { to: [chat] } }\n';
    const cwd = await workspaceOf(await serveSandbox(), channels);
    const wrong = {
      READERSHIP_API_KEY: 'wrong-key',
      READERSHIP_SMTP_URL: 'smtp://u:s3cret-word@127.0.0.1:1',
      READERSHIP_CHANNEL_CHAT: `${hooks.baseUrl}/services/s3cret-word`,
    };
    const { code, of, found } = await doctor(cwd, wrong);
    expect(code).toBe(1);
    expect(of('key')).toMatch(/^fail: .*expired/);
    expect(of('email')).toMatch(/^fail/);
    expect(of('reports')).toMatch(/^fail: .*There is no report “weakly”.+weekly/);
    expect(found.flatMap(({ check, ...rest }) => (check === 'channel' ? rest : []))).toEqual([
      { verdict: 'pass', words: `chat: posts to slack at ${new URL(hooks.baseUrl).host}; nothing was sent` },
      {
        verdict: 'fail',
        words: 'team: READERSHIP_CHANNEL_TEAM is not set: set it to the address, in the environment or .env',
      },
    ]);
    expect(hooks.seen).toEqual([]);
    expect(of('history')).toMatch(/^warn: There is no history yet/);
    expect(of('disk')).toMatch(/^pass/);
    expect(JSON.stringify(found)).not.toMatch(/wrong-key|s3cret-word/);
  });

  it('asks for a sender where the mail user is no address, and names retired addresses of Teams', async () => {
    const settings =
      'channels: { team: { kind: teams } }\nreports: { weekly: { to: [docs@example.com, team] } }\n';
    const cwd = await workspaceOf(await serveSandbox(), settings);
    const secrets = {
      READERSHIP_SMTP_URL: 'smtp://apikey:long-password@127.0.0.1:1',
      READERSHIP_CHANNEL_TEAM: 'https://acme.webhook.office.com/webhookb2/long-secret',
    };
    const { of } = await doctor(cwd, secrets);
    expect(of('email')).toMatch(/^fail: Emails need a sender.*mail: \{ from: /);
    expect(of('channel')).toMatch(/^fail: team: Microsoft retired connectors/);
    await appendFile(join(cwd, 'readership.yaml'), 'mail: { from: docs@example.com }\n');
    expect((await doctor(cwd, secrets)).of('email')).toMatch(/^fail: can't connect to the mail server/);
  });

  it('warns about an address that may be incomplete, but not about one of this machine', async () => {
    const mails = await startMailServer();
    const smtp = { READERSHIP_SMTP_URL: `smtp://127.0.0.1:${mails.port}` };
    const to = (address: string) => `alerts: { to: [${address}] }\nmail: { from: docs@example.com }\n`;
    const platform = await serveSandbox();
    const incomplete = await doctor(await workspaceOf(platform, to('ann@example')), { ...env, ...smtp });
    expect(incomplete.of('email')).toMatch(
      /^warn: ann@example may be incomplete: its domain has no dot\. .+answers/,
    );
    const local = await doctor(await workspaceOf(platform, to('root@localhost')), { ...env, ...smtp });
    expect(local.of('email')).toMatch(/^pass/);
  });

  it('fails for a template that would stop an email', async () => {
    const settings = 'reports: { weekly: { to: [a@example.com] } }\n';
    const cwd = await workspaceOf(await serveSandbox(), settings);
    await mkdir(join(cwd, 'templates'));
    expect((await callCli(['export'], { cwd, env })).code).toBe(0);
    expect(await doctor(cwd)).toMatchObject({ code: 0 });
    await writeFile(join(cwd, 'templates', 'weekly.text.hbs'), '{{counted parts.length "project"}}');
    expect((await doctor(cwd)).of('reports')).toMatch(
      /^fail: .*weekly\.text\.hbs: line 1, column 10: “length” belongs to/,
    );
  });

  it('fails if the data directory cannot be written, before anything is loaded', async () => {
    const cwd = await workspaceOf(await serveSandbox(), 'dataDir: file/below/data\n');
    await writeFile(join(cwd, 'file'), '');
    const { code, of } = await doctor(cwd);
    expect(code).toBe(1);
    expect(of('disk')).toMatch(/^fail: .*cannot write to .+file: .*set dataDir/);
  });

  it('reports a wrong clock, and who is the worker', async () => {
    const late = await serve((_, response) => {
      response.setHeader('date', new Date(Date.now() + 7_200_000).toUTCString());
      reply(response, 200, { totals: { human: 0, ai: 0, total: 0 }, views: [], hasMore: false });
    });
    const cwd = await platformWorkspace(late);
    const holder = await newStore(historyFile(cwd));
    // A process can open its own databases again.
    const { code, of } = await doctor(cwd, undefined, runCli);
    await closeNow(holder);
    expect(code).toBe(1);
    expect(of('server')).toMatch(/^fail: .*clock of this machine is (2 h 0|1 h 59) min behind that of .+NTP/);
    expect(of('state')).toMatch(/^warn: .*held by `readership test`/);
  });

  it('fails without a configuration, and says how to create one', async () => {
    const { code, of } = await doctor(await tempDir());
    expect(code).toBe(1);
    expect(of('configuration')).toContain('readership init');
  });
});
