import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it, type TestContext } from 'vitest';
import { z } from 'zod';
import { CLI, startCli } from '../run-cli.js';
import { buildShim, killedAt } from '../torture/shim.js';
import { openSite, type Site } from './site.js';
import { daysAgo, endedWith, keep, putBack } from './workspace.js';

// What is sent by real processes: killed ones, several at once, and on other machines. What is lost is in
// loss.slow.test.ts.

const SETTINGS = `improve: { mode: apply, minWeeklyViews: 1, maxJobsPerWeek: 2 }
mail: { from: docs@example.com }
reports: { weekly: { to: [ada@example.com, bob@example.com] } }
`;
const RECIPIENTS = 2;
const JOBS = 2;

let site: Site;
let data: string;
/** A workspace with a history, in which two jobs and two emails are due. */
let due: string;
let jobsBefore = 0;
/** Called when a job arrives at the platform. */
let arrived: () => void;

const newJobs = () => site.sandbox.inspect().jobs.slice(jobsBefore);
const sent = () => ({ jobs: newJobs().length, emails: site.emails() });
const start = (env: Readonly<Record<string, string>> = {}, ...args: string[]) =>
  startCli(args.length === 0 ? ['run'] : args, { cwd: site.cwd, env: { ...site.env, ...env } });

/** What nobody knows, as `status` names it. */
const unknowns = async () => {
  const unknown = z.array(z.unknown());
  const named = z.object({ unknownJobs: unknown, unknownDeliveries: unknown });
  const { unknownJobs, unknownDeliveries } = named.parse(
    JSON.parse((await site.run('status', '--json')).stdout),
  );
  return { jobs: unknownJobs.length, emails: unknownDeliveries.length };
};

beforeAll(async () => {
  const onRequest = (operation: string) => {
    if (operation === 'create') arrived();
  };
  const options = { firstDay: daysAgo(45), pages: 30, jobSeconds: 3600, usesPerHour: 10_000, onRequest };
  site = await openSite(options, SETTINGS);
  data = join(site.cwd, 'data');
  endedWith(0, await site.run('export'));
  due = await keep(site.cwd);
});

async function startOver(): Promise<void> {
  arrived = () => undefined;
  await putBack(site.cwd, due);
  jobsBefore = site.sandbox.inspect().jobs.length;
  site.mailServer.accepted.clear();
}
beforeEach(startOver);

/** Checks that the next run sends what was not sent, and nothing that was. */
async function expectEachOnce(what: string): Promise<void> {
  await site.run('run');
  const unknown = await unknowns();
  const { jobs, emails } = sent();
  const pages = newJobs().map(({ prompt }) => /^"\/.*"$/m.exec(prompt)?.[0]);
  expect(new Set(pages).size, what).toBe(jobs);
  for (const [recipient, mails] of site.mailServer.accepted)
    expect(mails.length, `${what}: ${recipient}`).toBeLessThanOrEqual(1);
  // What is unknown may have arrived or not.
  expect(jobs, what).toBeGreaterThanOrEqual(JOBS - unknown.jobs);
  expect(jobs, what).toBeLessThanOrEqual(JOBS);
  expect(emails, what).toBeGreaterThanOrEqual(RECIPIENTS - unknown.emails);
  expect(emails, what).toBeLessThanOrEqual(RECIPIENTS);
}

describe('a run that is killed', () => {
  let shim: string | undefined;
  afterAll(async () => {
    if (shim !== undefined) await rm(dirname(shim), { recursive: true });
  });

  it('at any change of the state or the witness leaves a journal, perhaps, and nothing is sent twice', async (context) => {
    shim = await buildShim();
    if (shim === undefined) return context.skip('this needs Linux and a C compiler');
    let journals = 0;
    // Odd, so that every other kill comes in the middle of the change.
    const every = process.env['CI'] === undefined ? 11 : 201;
    for (let change = 7, isOver = false; !isOver; change += every) {
      await startOver();
      const killed = { change, isTorn: change % 2 === 0, permille: (change * 37) % 1000 };
      const { signal } = await start(killedAt(shim, killed, site.cwd, ['state.db', '.sent'])).result;
      if (existsSync(join(data, 'state.db-journal'))) journals += 1;
      await expectEachOnce(`killed at ${change}`);
      isOver = signal === null;
    }
    expect(journals).toBeGreaterThan(0);
  });
});

describe('two workers', () => {
  it('send each thing once', async () => {
    const ends = await Promise.all([start().result, start().result]);
    expect(ends.map(({ code }) => code)).toEqual([0, 0]);
    expect(sent()).toEqual({ jobs: JOBS, emails: RECIPIENTS });
    await expectEachOnce('two runs');
  });

  it('send each thing once where the file of the lock is deleted between them; the first one stops', async () => {
    // The first one waits for the platform's answer about a job.
    site.sandbox.setFaults([{ on: 'create', kind: 'latency', delayMs: 4_000 }]);
    const isArrived = new Promise<void>((resolve) => (arrived = resolve));
    const first = start();
    await isArrived;
    await rm(join(data, 'worker.lock'));
    const second = endedWith(0, await start().result);
    const { code, stderr } = await first.result;
    expect(code, stderr).toBe(1);
    expect(stderr).toMatch(/Another process of Readership has taken over .+ Leave that file alone/);
    expect(second.stderr).toContain('1 job may or may not have been sent');
    await expectEachOnce('without its lock');
  });
});

describe('another machine', () => {
  /** Runs a command on a machine of another host name. */
  async function runOn(context: TestContext, host: string, env: Readonly<Record<string, string>> = {}) {
    const line = `hostname ${host} && exec "${process.execPath}" "${CLI}" run`;
    const options = { cwd: site.cwd, env: { PATH: process.env['PATH'], ...site.env, ...env } };
    const run = promisify(execFile);
    if (process.getuid?.() !== 0) return context.skip('only root can change the host name');
    return run('unshare', ['--uts', 'sh', '-c', line], options).then(
      ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
      (error: unknown) => {
        const { code, stdout, stderr } = failed.parse(error);
        return { code, output: stdout + stderr };
      },
    );
  }
  const failed = z.object({ code: z.int(), stdout: z.string(), stderr: z.string() });

  it('that is a clone, with the same id and path and another host name, sends nothing', async (context) => {
    const { code, output } = await runOn(context, 'clone');
    expect(code, output).toBe(1);
    expect(output).toMatch(/Nothing is sent from clone:.+readership adopt \(or set READERSHIP_MACHINE/);
    expect(sent()).toEqual({ jobs: 0, emails: 0 });
    endedWith(0, await site.run('run'));
    expect(sent()).toEqual({ jobs: JOBS, emails: RECIPIENTS });
  });

  it('that is a container made anew each night sends, where READERSHIP_MACHINE names it', async (context) => {
    const machine = { READERSHIP_MACHINE: 'docs' };
    endedWith(0, await start(machine, 'adopt').result);
    const { code, output } = await runOn(context, 'night-one', machine);
    expect(code, output).toBe(0);
    expect(sent()).toEqual({ jobs: JOBS, emails: RECIPIENTS });
    expect(await runOn(context, 'night-two', machine)).toMatchObject({ code: 0 });
    expect(sent()).toEqual({ jobs: JOBS, emails: RECIPIENTS });
  });
});
