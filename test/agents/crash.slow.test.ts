import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type Job, readJobs } from '../../src/agents/ledger.js';
import { readMessages } from '../../src/agents/messages.js';
import { drawPairs } from '../../src/agents/pairs.js';
import { EffectsJournal } from '../../src/effects/journal.js';
import type { FaultInput } from '../sandbox/faulty-sandbox.js';
import { type Sandbox, startSandbox } from '../sandbox/faulty-sandbox.js';
import { type Uniform, uniformFrom } from '../../src/sandbox/traffic/random.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { runCli, startCli } from '../run-cli.js';
import { type AgentSite, agentSite } from './agent-site.js';

/** 300 were run when this was written; the suite runs fewer, unless `CRASH_RUNS=300` is set. */
const RUNS = Number(process.env['CRASH_RUNS'] ?? 12);
const RUNS_A_SITE = 8;
const LANES = 2;
const PAGES = 24;

/** The faults that a run may meet. A 429 has no wait, so that the next run has something to do. */
const FAULTS: readonly (FaultInput['kind'] | undefined)[] = [
  ...(['lost-reply', 'status-after', 'timeout', 'reset', 'rate-limit', 'status'] as const),
  undefined,
  undefined,
];

function faultsOf(uniform: Uniform): FaultInput[] {
  const kind = FAULTS[Math.floor(uniform() * FAULTS.length)];
  const aim = { after: Math.floor(uniform() * 3), times: 1 };
  const latency: FaultInput = { on: 'any', kind: 'latency', delayMs: Math.floor(uniform() * 30) };
  if (kind === undefined) return [latency];
  return (['create', 'message'] as const).flatMap((on): FaultInput[] => {
    if (kind === 'status') return [latency, { ...aim, on, kind, status: 503 }];
    if (kind === 'rate-limit') return [latency, { ...aim, on, kind, seconds: 0 }];
    return [latency, { ...aim, on, kind } as FaultInput];
  });
}

/** Two of three runs create jobs; the others send a message, each with a different text. */
const commandOf = (seed: number, uniform: Uniform): string[] =>
  uniform() < 0.65
    ? ['improve', '--apply']
    : ['jobs', 'message', String(1 + Math.floor(uniform() * 4)), `intent ${seed}`];

const postsSeen = (sandbox: Sandbox): number => {
  const { create = {}, message = {} } = sandbox.inspect().requests.counts;
  return [...Object.values(create), ...Object.values(message)].reduce((sum, count) => sum + count, 0);
};

/**
 * Runs a command and kills it: one in three somewhere between opening the database and its end, the others soon after
 * one of its prompts arrived, before its reply or after. True if it was still running.
 */
async function killedRun(
  sandbox: Sandbox,
  site: AgentSite,
  seed: number,
  uniform: Uniform,
): Promise<boolean> {
  const command = commandOf(seed, uniform);
  const posts = postsSeen(sandbox) + 1 + Math.floor(uniform() * (command[0] === 'improve' ? 6 : 1));
  const isAnywhere = uniform() < 1 / 3;
  const { child, result } = startCli(command, site);
  const ended = result.then(({ signal }) => signal === 'SIGKILL');
  const isThere = () => (isAnywhere ? existsSync(`${site.liveFile}.lock`) : postsSeen(sandbox) >= posts);
  const startedMs = performance.now();
  // A reply that never comes holds the command back from its next prompt.
  const isStuck = () => performance.now() - startedMs > 4_000;
  while (!isThere() && !isStuck() && child.exitCode === null) await delay(2);
  await Promise.race([ended, delay(uniform() * (isAnywhere ? 900 : 60))]);
  child.kill('SIGKILL');
  return ended;
}

interface Tally {
  killed: number;
  jobs: number;
  unconfirmed: number;
  messages: number;
}

const pageOf = (prompt: string): string | undefined => /^"(\/.*)"$/m.exec(prompt)?.[1];
/** The page of a job that chance chose and its twin, which must not have a job, agree with the draw and the journal. */
function checkDraw(job: Job, jobs: readonly Job[], journal: EffectsJournal): void {
  const { path, held_out: heldOut, draw_seed: seed } = job;
  const draw = heldOut === null || seed === null ? undefined : { heldOut, seed };
  expect(journal.known('job').get(job.reference)?.last.draw).toEqual(draw);
  if (draw === undefined || seed === null) return;
  const twins = [path, draw.heldOut].map((twin) => ({ path: twin, weeks: [], leaving: null }));
  expect(drawPairs(twins, 1, seed)).toEqual([{ treated: path, heldOut }]);
  expect(jobs.filter((other) => other.path === heldOut)).toEqual([]);
}

const repeated = (values: readonly unknown[]): unknown[] =>
  values.filter((value, index) => values.indexOf(value) !== index);

/** Compares the sandbox's own record with the ledger once everything has ended. */
async function check(sandbox: Sandbox, site: AgentSite, isExperiment: boolean, tally: Tally): Promise<void> {
  const remote = sandbox.inspect().jobs;
  const warehouse = await liveWarehouse(site.liveFile);
  const jobs = await readJobs(warehouse, sandbox.projectId);
  const messages = await readMessages(warehouse, sandbox.projectId);
  const journal = await EffectsJournal.open(dirname(site.liveFile));
  for (const job of jobs) checkDraw(job, jobs, journal);
  expect(jobs.some(({ draw_seed }) => draw_seed !== null)).toBe(isExperiment);
  await journal.close();
  await closeNow(warehouse);

  expect(repeated(remote.map(({ prompt }) => pageOf(prompt)))).toEqual([]);
  for (const { id, prompt } of remote) {
    const known = jobs.filter((job) => job.remote_id === id);
    const suspected = jobs.filter((job) => job.state === 'unconfirmed' && job.prompt === prompt);
    expect(known.length + suspected.length).toBe(1);
  }
  const arrived = remote.flatMap((job) => job.messages.map(({ prompt }) => prompt));
  expect(repeated(arrived)).toEqual([]);
  for (const prompt of arrived) {
    const states = messages.filter((message) => message.prompt === prompt).map(({ state }) => state);
    expect([['sent'], ['unconfirmed']]).toContainEqual(states);
  }
  expect(jobs.filter(({ state }) => state === 'submitting' || state === 'planned')).toEqual([]);
  tally.jobs += remote.length;
  tally.messages += arrived.length;
  tally.unconfirmed += [...jobs, ...messages].filter(({ state }) => state === 'unconfirmed').length;
}

async function crashSite(lane: number, firstSeed: number, runs: number, tally: Tally): Promise<void> {
  const sandbox = await startSandbox({ now: () => new Date(), jobSeconds: 1, usesPerHour: 10_000 });
  const pages = Array.from({ length: PAGES }, (_, page) => ({
    ...{ path: `/site-${lane}/page-${page}`, human: 100 + page, ai: 50 },
  }));
  // On every other site, chance decides between twins.
  const mode = lane % (2 * RUNS_A_SITE) === 0 ? 'apply' : 'plan';
  const limits = 'maxJobsPerRun: 6, maxJobsPerWeek: 1000, maxOpenPullRequests: 1000';
  const site = await agentSite(sandbox, pages, `{ mode: ${mode}, readingShare: 1, ${limits} }`);
  for (let run = 0; run < runs; run++) {
    const uniform = uniformFrom(firstSeed + run);
    sandbox.setFaults(faultsOf(uniform));
    if (await killedRun(sandbox, site, firstSeed + run, uniform)) tally.killed++;
  }
  sandbox.setFaults([]);
  const last = await runCli(['improve', '--apply'], site);
  expect(last).toMatchObject({ code: 0, stderr: expect.not.stringMatching('failed') as string });
  await check(sandbox, site, mode === 'apply', tally);
  await sandbox.close();
}

it(
  `${RUNS} runs killed at random points, with faults of every kind, never send a prompt twice or lose a job`,
  async ({ annotate }) => {
    const tally: Tally = { killed: 0, jobs: 0, unconfirmed: 0, messages: 0 };
    const starts = Array.from({ length: Math.ceil(RUNS / RUNS_A_SITE) }, (_, site) => site * RUNS_A_SITE);
    const lane = async (): Promise<void> => {
      for (let start = starts.shift(); start !== undefined; start = starts.shift())
        await crashSite(start, start, Math.min(RUNS_A_SITE, RUNS - start), tally);
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    await annotate(JSON.stringify(tally));
    expect(tally.killed).toBeGreaterThan(RUNS / 4);
    expect(tally.unconfirmed).toBeGreaterThan(0);
  },
  RUNS * 15_000,
);
