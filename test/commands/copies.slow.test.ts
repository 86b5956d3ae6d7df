import { appendFile, cp, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { readJobs } from '../../src/agents/ledger.js';
import { planMessage } from '../../src/agents/messages.js';
import { afterFile } from '../cleanup.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { reply, serve } from '../serve.js';
import { runCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { openSite } from './site.js';
import { liveFile } from './workspace.js';

// Each command is a separate process, and a shared machine may be slow.
vi.setConfig({ testTimeout: 240_000 });

const SETTINGS = `
history: { requestsPerHour: unlimited }
mail: { from: docs@example.com }
channels: { chat: { kind: slack, urlEnv: CHAT } }
reports: { weekly: { to: [docs@example.com, chat] } }
`;
const improve = (jobs: number): string =>
  `improve: { mode: apply, minWeeklyViews: 1, maxJobsPerRun: ${jobs} }\n`;

/** A workspace in which a job, a message, an email and a post are due, and a copy of it. */
async function openCopies(settings = '') {
  let posts = 0;
  const chat = await serve((_, response) => {
    posts++;
    reply(response, 200, {});
  });
  afterFile(() => chat.close());
  const site = await openSite({ pages: 40 }, SETTINGS + settings);
  const original = site.cwd;
  const env = { ...site.env, CHAT: chat.baseUrl, READERSHIP_MACHINE: 'first' };
  const runIn = (cwd: string, args: readonly string[], machine = 'first') =>
    runCli(args, { cwd, env: { ...env, READERSHIP_MACHINE: machine } });
  const file = join(original, 'readership.yaml');
  await appendFile(file, improve(1));
  for (const args of [['export'], ['improve', '--apply']]) {
    const { code, stderr } = await runIn(original, args);
    expect(code, stderr).toBe(0);
  }
  const warehouse = await liveWarehouse(liveFile(original));
  const [job] = await readJobs(warehouse, site.sandbox.projectId);
  if (job === undefined) throw new Error('no job');
  await planMessage(warehouse, job, { origin: 'typed', prompt: 'Shorter', now: new Date() });
  await closeNow(warehouse);
  const copy = await tempDir();
  await cp(original, copy, { recursive: true });
  /** How many jobs, messages, emails and posts arrived. */
  const arrived = () => {
    const { jobs } = site.sandbox.inspect();
    const messages = jobs.flatMap((one) => one.messages).length;
    return [jobs.length, messages, [...site.mailServer.accepted.values()].flat().length, posts];
  };
  return { original, copy, runIn, arrived };
}

const SENDING = [
  ['run'],
  ['improve', '--apply'],
  ['jobs', 'poll'],
  ['jobs', 'message', '1', 'Longer'],
  ['report', 'weekly', '--send'],
];

it('a copy exports and reports, but sends nothing and says why; the original sends everything once', async () => {
  const { original, copy, runIn, arrived } = await openCopies();
  const before = arrived();
  expect(before).toEqual([1, 0, 0, 0]);
  for (const [cwd, machine] of [
    [copy, 'first'],
    [original, 'second'],
  ] as const)
    for (const args of SENDING) {
      const { code, stderr } = await runIn(cwd, args, machine);
      const what = `${args.join(' ')} on ${machine}: ${stderr}`;
      expect(code, what).toBe(1);
      const [here, there] = await Promise.all([cwd, original].map((path) => realpath(join(path, 'data'))));
      expect(stderr, what).toContain(`Nothing is sent from ${machine}:${here ?? ''}, because`);
      expect(stderr, what).toMatch(
        new RegExp(`from first:${there ?? ''}, where it last sent something on .+ UTC`),
      );
      expect(stderr.match(/Nothing is sent/g), what).toHaveLength(1);
      expect(arrived(), what).toEqual(before);
    }
  const status = await runIn(copy, ['status']);
  expect(status.stdout).toMatch(/sends from +first:.+; this copy sends nothing \(readership adopt\)/);
  expect((await runIn(copy, ['doctor'])).stdout).toMatch(/warn +sends from +first:/);

  expect(await runIn(original, ['run'])).toMatchObject({ code: 0 });
  expect(arrived()).toEqual([2, 1, 1, 1]);
  expect(await runIn(original, ['run'])).toMatchObject({ code: 0 });
  expect(arrived().slice(1)).toEqual([1, 1, 1]);
});

it('after `adopt` in a copy, the original finds out from the lake, and everything is sent once', async () => {
  const lake = await tempDir();
  const { original, copy, runIn, arrived } = await openCopies(
    `publish: { parquet: ${join(lake, 'lake')} }\n`,
  );
  const unadopted = await runIn(copy, ['publish']);
  expect(unadopted.code, unadopted.stderr).toBe(1);
  expect(await runIn(copy, ['adopt'])).toMatchObject({ code: 0 });
  for (const args of [...SENDING, ['publish']]) {
    const { code, stderr } = await runIn(original, args);
    expect(code, stderr).toBe(1);
    expect(stderr).toContain(`restore --from ${join(lake, 'lake')}`);
    expect(stderr).toContain('readership adopt');
    expect(arrived()).toEqual([1, 0, 0, 0]);
  }
  expect(await runIn(copy, ['run'])).toMatchObject({ code: 0 });
  expect(arrived()).toEqual([2, 1, 1, 1]);
  const back = await runIn(original, ['restore', '--from', join(lake, 'lake')]);
  expect(back.code, back.stderr).toBe(0);
  expect(await runIn(original, ['run'])).toMatchObject({ code: 1 });
  expect(arrived()).toEqual([2, 1, 1, 1]);
});
