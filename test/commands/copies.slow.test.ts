import { cp, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { planMessage } from '../../src/agents/jobs.js';
import { readJobs } from '../../src/state/jobs.js';
import { openTestState } from '../open-state.js';
import { inHistory, rowsOf } from '../open-history.js';
import { callCli } from '../run-cli.js';
import { reply, serve } from '../serve.js';
import { tempDir } from '../temp-dir.js';
import { openSite, type Site } from './site.js';
import { endedWith, historyFile, keep, putBack, replaceIn } from './workspace.js';

const SETTINGS = `
mail: { from: docs@example.com }
channels: { chat: { kind: slack } }
reports: { weekly: { to: [docs@example.com, chat] } }
improve: { mode: apply, minWeeklyViews: 1, maxJobsPerWeek: 1 }
`;

let site: Site;
let env: Record<string, string>;
let posts = 0;
let platformNow: () => Date;
/** What had arrived before the test. */
let arrivedBefore: readonly number[] = [];
/** The workspace as it was before any test, in which a job, a message, an email and a post are due. */
let due: string;
/** A copy of it elsewhere. */
let copy: string;

const runIn = (cwd: string, args: readonly string[], machine = 'first') =>
  callCli(args, { cwd, env: { ...env, READERSHIP_MACHINE: machine } });

function allArrived(): readonly number[] {
  const { jobs } = site.sandbox.inspect();
  return [jobs.length, jobs.flatMap((one) => one.messages).length, site.emails(), posts];
}

/** How many jobs, messages, emails and posts arrived in this test. */
const arrived = () => allArrived().map((count, index) => count - (arrivedBefore[index] ?? 0));

beforeAll(async () => {
  platformNow = () => new Date();
  const chat = await serve((_, response) => {
    posts++;
    reply(response, 200, {});
  });
  site = await openSite({ pages: 40, now: () => platformNow() }, SETTINGS);
  env = { ...site.env, READERSHIP_CHANNEL_CHAT: chat.baseUrl };
  const toOther = ['report', 'send', 'weekly', '--to', 'other@example.com'];
  for (const args of [['export'], ['improve', '--apply'], toOther]) endedWith(0, await runIn(site.cwd, args));
  const { state, close } = await openTestState(join(site.cwd, 'data'));
  const [job = expect.fail()] = readJobs(state, site.sandbox.projectId);
  const message = { origin: 'typed', prompt: 'Shorter', now: new Date() } as const;
  await state.transaction(() => planMessage(state, job, message));
  await close();
  // Another one is due as well.
  await replaceIn(site.cwd, 'maxJobsPerWeek: 1', 'maxJobsPerWeek: 2');
  expect(allArrived()).toEqual([1, 0, 1, 0]);
  due = await keep(site.cwd);
});

async function startOver(): Promise<void> {
  platformNow = () => new Date();
  await putBack(site.cwd, due);
  arrivedBefore = allArrived();
}
beforeEach(async () => {
  await startOver();
  copy = await keep(site.cwd);
});

const NOTHING = [0, 0, 0, 0];
const EACH_ONCE = [1, 1, 1, 1];
const SENDING = [
  ['run'],
  ['improve', '--apply'],
  ['jobs', 'poll'],
  ['jobs', 'message', '1', 'Shorter'],
  ['report', 'send', 'weekly'],
];

it('a copy exports and reports, but sends nothing and says why; the original sends everything once', async () => {
  const original = site.cwd;
  for (const [cwd, machine, commands] of [
    [copy, 'first', SENDING],
    [original, 'second', [['jobs', 'poll']]],
  ] as const)
    for (const args of commands) {
      const { code, stderr } = await runIn(cwd, args, machine);
      const what = `${args.join(' ')} on ${machine}: ${stderr}`;
      expect(code, what).toBe(1);
      const [here, there] = await Promise.all([cwd, original].map((path) => realpath(join(path, 'data'))));
      expect(stderr, what).toContain(`Nothing is sent from ${machine}:${here ?? ''}, because`);
      expect(stderr, what).toMatch(
        new RegExp(`from first:${there ?? ''}, where it last sent something on .+ UTC`),
      );
      expect(stderr.match(/Nothing is sent/g), what).toHaveLength(1);
      expect(arrived(), what).toEqual(NOTHING);
    }
  const status = await runIn(copy, ['status']);
  expect(status.stdout).toMatch(/sends from +first:.+; this copy sends nothing \(readership adopt\)/);
  expect(status.stdout).toMatch(/improve, poll and report have failed since .+ UTC: Nothing is sent/);
  expect(status.stdout.match(/Nothing is sent/g)).toHaveLength(1);
  expect((await runIn(copy, ['doctor'])).stdout).toMatch(/warn +sends from +first:/);

  for (const args of [['run'], ['jobs', 'poll'], ['report', 'send', 'weekly']]) {
    endedWith(0, await runIn(original, args));
    expect(arrived()).toEqual(EACH_ONCE);
  }
});

it('after `adopt`, a copy sends everything once, and what it sent is known to a backup with the newest witness', async () => {
  const backup = join(await tempDir(), 'history.duckdb');
  await cp(historyFile(copy), backup);
  expect((await runIn(copy, ['adopt'])).stdout).toContain('This workspace now sends from first:');
  for (const args of [['report', 'send', 'weekly'], ['jobs', 'poll'], ['run']])
    endedWith(0, await runIn(copy, args));
  expect(arrived()).toEqual(EACH_ONCE);
  const restored = endedWith(0, await runIn(copy, ['restore', '--from', backup]));
  expect(restored.stdout).toContain('Next: readership run');
  endedWith(0, await runIn(copy, ['run']));
  expect(arrived()).toEqual(EACH_ONCE);
});

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const SHIFTS: readonly (readonly [string, number])[] = [
  ['400 days ahead', 400 * DAY_MS],
  ['36 hours behind', -36 * HOUR_MS],
  ['400 days behind', -400 * DAY_MS],
  ['3 hours ahead', 3 * HOUR_MS],
];

/** What is stored, but for times and what depends on the order of steps. */
const STORED = [
  'SELECT day, state FROM days',
  // How the sandbox ends a job is a matter of chance.
  "SELECT path, if(ended_at IS NULL, state, 'ended') AS state FROM jobs",
  'SELECT report, period, recipient, state FROM emails',
];
const messageRow = z.object({ prompt: z.string(), state: z.string() });

it('a run of each sending command with a wrong clock sends nothing, and makes no difference a day later', async () => {
  const run = async (args: readonly string[], aheadMs: number) => {
    const now = () => new Date(Date.now() + aheadMs);
    const machine = { READERSHIP_MACHINE: 'first' };
    const result = await callCli(args, { cwd: site.cwd, env: { ...env, ...machine }, now });
    return { ...result, output: result.stdout + result.stderr };
  };
  const stored = async () => {
    const { state, close } = await openTestState(join(site.cwd, 'data'));
    const messages = state.all('SELECT prompt, state FROM messages ORDER BY prompt', messageRow);
    await close();
    return inHistory(historyFile(site.cwd), async (history) => [
      messages,
      ...(await Promise.all(STORED.map((sql) => rowsOf(history, `${sql} ORDER BY ALL`)))),
    ]);
  };
  const polls = () => site.sandbox.inspect().requests.counts.job?.['200'] ?? 0;
  /** Starts over, runs each command with a wrong clock, if given, and then with the right one, twice in a day. */
  async function dayAfter(aheadMs?: number) {
    await startOver();
    for (const args of aheadMs === undefined ? [] : SENDING) {
      const { code, output } = await run(args, aheadMs ?? 0);
      expect([1, 2, 75], output).toContain(code);
      expect(output).toMatch(/are more than an hour apart|The clock of this machine is/);
      expect(arrived(), `${args.join(' ')}: ${output}`).toEqual(NOTHING);
    }
    const polled = polls();
    endedWith(0, await run(['run'], 0));
    platformNow = () => new Date(Date.now() + DAY_MS);
    endedWith(0, await run(['run'], DAY_MS));
    expect(polls()).toBeGreaterThan(polled);
    return { sent: arrived(), stored: await stored(), status: (await run(['status'], DAY_MS)).output };
  }

  const expected = await dayAfter();
  // A day later, another week may have begun, with jobs of its own.
  const [jobs, ...others] = expected.sent;
  expect(jobs).toBeGreaterThan(0);
  const weeks = new Date(Date.now() + DAY_MS).getUTCDay() === 1 ? 2 : 1;
  expect(others).toEqual([1, weeks, weeks]);
  expect(expected.status).not.toContain('in the future');
  for (const [name, aheadMs] of process.env['CI'] === undefined ? SHIFTS : SHIFTS.slice(0, 1)) {
    const { sent, stored: found, status } = await dayAfter(aheadMs);
    expect({ name, sent, found }).toEqual({ name, sent: expected.sent, found: expected.stored });
    // What it did record, such as the steps that were stopped, is listed for a person.
    if (aheadMs > DAY_MS) expect(status).toMatch(/in the future +.*\d × step.*, by a clock that was wrong/);
  }
}, 480_000);
