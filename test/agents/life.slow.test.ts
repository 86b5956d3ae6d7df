import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { dayOf } from '../../src/day.js';
import { longDay } from '../../src/format/days.js';
import { callCli, type CliResult } from '../run-cli.js';
import { type Sandbox, startSandbox } from '../sandbox/faulty-sandbox.js';
import { agentSite } from './agent-site.js';
import { steadyPages } from './reading.js';

const listed = z.array(z.object({ id: z.int(), state: z.string(), prLink: z.string().nullable() }));

/** The command line on a site whose agents end in each of the four ways. */
async function life(pages: number, improve: string, jobSeconds = 1) {
  const outcomes = ['pull-request', 'no-change', 'failed', 'archived'] as const;
  const sandbox = await startSandbox({ now: () => new Date(), jobSeconds, outcomes });
  const site = await agentSite(sandbox, steadyPages(pages), improve);
  const run = (...args: string[]): Promise<CliResult> => callCli(args, site);
  const states = async () => {
    const { stdout } = await run('jobs', 'list', '--json');
    return listed.parse(JSON.parse(stdout)).map(({ state, prLink }) => [state, prLink !== null]);
  };
  return { sandbox, run, states };
}

describe('the whole life of jobs, on the command line', () => {
  let sandbox: Sandbox;
  let run: (...args: string[]) => Promise<CliResult>;
  let states: () => Promise<unknown[]>;
  beforeAll(async () => {
    const rules = '{ maxJobsPerWeek: 20, exclude: ["/guides/page-1"] }';
    ({ sandbox, run, states } = await life(6, rules));
  });

  it('shows the plan, and creates nothing', async () => {
    const plan = await run('improve');
    expect(plan.code).toBe(0);
    expect(plan.stdout).toMatch('Acme Docs: 5 pages would get a job now');
    expect(plan.stdout).toMatch(/rank +page +views a week +people +AI +trend/);
    expect(plan.stdout).toMatch(/\/guides\/page-1 +excluded by improve.exclude/);
    expect(Math.max(...plan.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
    const verbose = await run('improve', '--verbose');
    expect(verbose.stdout).toMatch('    | "/guides/page-2"');
    type Plan = Record<'flagged' | 'leftOut', { evidence: object }[]>;
    const [json] = JSON.parse((await run('improve', '--json')).stdout) as Plan[];
    const [some, other] = [json?.flagged[0], json?.leftOut[0]];
    expect(some).toMatchObject({ path: '/guides/page-2', evidence: { weeklyHuman: 735 } });
    expect(Object.keys(other?.evidence ?? {})).toEqual(Object.keys(some?.evidence ?? {}));
    expect(sandbox.inspect().jobs).toEqual([]);
  });

  it('skips a page, shows it, undoes the skip, and rejects invalid options', async () => {
    const skipped = await run('improve', '--skip', '/guides/page-6', '--until', '2999-01-01');
    expect([skipped.code, skipped.stdout]).toEqual([0, '/guides/page-6: skipped until Jan 1, 2999\n']);
    const plan = await run('improve');
    expect(plan.stdout).toMatch(/\/guides\/page-6 +skipped manually until Jan 1, 2999/);
    expect(plan.stdout).toContain('To undo a skip: readership improve --unskip /guides/page-6');
    const refused = await run('improve', '--apply', '/guides/page-6', '/guides/page-1#0123abcd');
    expect(refused.stdout).toBe(
      '/guides/page-6: no job: skipped manually until Jan 1, 2999\n/guides/page-1: no job: excluded by improve.exclude\n',
    );
    expect(refused.code).toBe(1);
    const { stdout } = await run('improve', '--unskip', '/guides/page-6');
    expect(stdout).toBe('/guides/page-6: no longer skipped\n');
    for (const [args, words] of [
      [['--until', '2999-01-01'], '--until requires --skip'],
      [['--skip', 'guides'], 'guides is not the path of a page'],
      [['--skip', '/a', '--apply'], 'cannot be used with'],
    ] as const) {
      const { code, stderr } = await run('improve', ...args);
      expect([code, stderr]).toEqual([2, expect.stringContaining(words)]);
    }
    expect(sandbox.inspect().jobs).toEqual([]);
  });

  it('creates the jobs, and stops when a reply is lost', async () => {
    sandbox.setFaults([{ on: 'create', kind: 'lost-reply', after: 4 }]);
    const applied = await run('improve', '--apply');
    expect(applied.stdout).toMatch('Acme Docs: 4 jobs created');
    expect(applied.code).toBe(1);
    sandbox.setFaults([]);
    expect(sandbox.inspect().jobs).toHaveLength(5);
    const { stdout, stderr } = await run('jobs', 'list');
    expect(stdout).toMatch(/5 +unknown +\/guides\/page-6/);
    expect(stderr).toMatch('readership jobs settle 5 --sent REMOTE_ID, or --not-sent');
  });

  it('polls them until they end: with a pull request, without one, failed, archived', async () => {
    const both = await run('jobs', 'poll', '--watch', '--wait', '10m');
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('cannot be used with')]);
    const watched = await run('jobs', 'poll', '--watch');
    expect(watched.code).toBe(0);
    expect(await states()).toEqual([
      ['completed', true],
      ['completed', false],
      ['failed', false],
      ['archived', true],
      ['unknown', false],
    ]);
  });

  it('reports each of them', async () => {
    const { stdout } = await run('report', 'improve', '--format', 'text');
    const sections = stdout.split(/\n\n\n/).map((section) => section.split('\n').filter(Boolean));
    const pages = new Map(
      sections.map(([title = '', ...lines]) => [title, lines.filter((line) => line.startsWith('/'))]),
    );
    expect(Object.fromEntries(pages)).toMatchObject({
      'WAITING FOR YOUR REVIEW': ['/guides/page-2', '/guides/page-5'],
      FAILED: ['/guides/page-4'],
      'OUTCOME UNKNOWN': ['/guides/page-6'],
      'OTHER PAGES': ['/guides/page-3'],
    });
    expect(stdout).toMatch(/^\/guides\/page-3\n {2}No change, flagged today/m);
    expect(stdout).toMatch(/^Skipped popular pages: 1 /m);
  });

  it('follows up: reopened, then completed', async () => {
    const messaged = await run('jobs', 'message', '2', 'Mention the rate limits.');
    expect(messaged.stdout).toMatch(/^job 2 +active/);
    expect(messaged.stderr).toBe('The message was sent to job 2.\n');
    expect((await states())[1]).toEqual(['active', false]);
    await run('jobs', 'poll', '--watch');
    expect((await states())[1]).toEqual(['completed', true]);
    const { stdout } = await run('jobs', 'show', '2');
    expect(stdout).toMatch(/Message 1, sent\n +Mention the rate limits\./);
    const history = [...stdout.matchAll(/UTC {2}(.*?) {2}/g)].map(([, state]) => state?.trim());
    expect(history).toEqual([
      ...['planned', 'sending', 'active', 'completed'],
      ...['message 1 planned', 'message 1 sending', 'message 1 sent', 'active', 'completed'],
    ]);
    expect(stdout).toMatch('Weeks the choice is based on');
    expect(stdout).toMatch('Improve one page of this documentation');
  });

  it('settles a job of unknown outcome only with an id that exists on the platform and that no other job has', async () => {
    const settle = (...found: string[]) => run('jobs', 'settle', '5', ...found);
    const unknown = await settle('--sent', 'job_999999');
    expect(unknown.stderr).toContain('If it was deleted there: readership jobs settle 5 --ended');
    expect(unknown.code).toBe(1);
    expect((await settle('--sent', 'job_000001')).stderr).toMatch('is already recorded as job 1');
    expect((await settle('--sent')).stderr).toContain('Give the id of the job on the platform');
    for (const none of [[], ['--ended', '--not-sent']])
      expect((await settle(...none)).stderr).toContain('Give one of --merged');
    expect((await settle('--closed')).stderr).toBe(
      'Job 5 may or may not have been created and has no pull request. It can be settled with --ended, --sent REMOTE_ID or --not-sent.\n',
    );
    expect((await states())[4]).toEqual(['unknown', false]);
    expect((await settle('--sent', 'job_000005')).code).toBe(0);
    await run('jobs', 'poll', '--watch');
    expect((await states())[4]).toEqual(['completed', true]);
  });

  it('settles a message of unknown outcome', async () => {
    sandbox.setFaults([{ on: 'message', kind: 'lost-reply', times: 1 }]);
    expect((await run('jobs', 'message', '3', 'Try again.')).code).toBe(1);
    const unknown = await run('jobs', 'list');
    expect(unknown.stderr).toMatch('readership jobs settle 3 --sent, or --not-sent');
    const again = await run('jobs', 'message', '3', 'And again.');
    expect(again.stderr).toMatch('may or may not have arrived. Settle that first');
    expect((await run('jobs', 'settle', '3', '--sent', 'job_000003')).stderr).toContain(
      'has a message that is not settled',
    );
    expect((await run('jobs', 'settle', '3', '--sent')).stdout).toMatch(/^job 3 +active/);
    await run('jobs', 'poll', '--watch');
    expect((await states())[2]).toEqual(['completed', true]);
  });

  it('settles a pull request by hand, and again if that was a mistake; the history shows each change', async () => {
    const settle = (...found: string[]) => run('jobs', 'settle', '1', ...found);
    const today = longDay(dayOf(new Date()));
    expect((await settle('--merged', '2020-01-01')).stderr).toContain(
      'cannot have been merged on 2020-01-01',
    );
    expect((await settle('--merged')).stderr).toBe(`Merged on ${today}.\n`);
    expect((await run('jobs', 'show', '1')).stdout).toMatch(
      /after the merge +no full week is over since the merge on /,
    );
    expect((await settle('--closed')).stdout).toMatch(/ closed\n$/);
    expect((await settle('--ended')).stderr).toBe('Its pull request waits for review again.\n');
    const open = (await run('jobs', 'show', '1')).stdout;
    expect(open).not.toMatch(/^ +(merged|closed) /m);
    expect((await settle('--ended')).stderr).toBe(
      'Job 1 is completed. It can be settled with --merged [DAY], --closed or --sent REMOTE_ID.\n',
    );
    await settle('--merged');
    const { stdout } = await run('jobs', 'show', '1');
    expect([...stdout.matchAll(/completed +settled by hand: (.+)/g)].map(([, what]) => what)).toEqual([
      `merged on ${today}`,
      'closed without a merge',
      'neither merged nor closed',
      `merged on ${today}`,
    ]);
  });

  it('never planned a second job for a page', async () => {
    const again = await run('improve', '--apply');
    expect(again.stdout).toMatch(/no new job: \d jobs? already planned this week/);
    expect(sandbox.inspect().jobs).toHaveLength(5);
  });
});

describe('in mode: plan', () => {
  it('nothing is created by run, jobs poll or improve without --apply', async () => {
    const { sandbox, run, states } = await life(4, '{ mode: plan }');
    for (const command of [['run'], ['improve'], ['jobs', 'poll']])
      expect((await run(...command)).code).toBe(0);
    expect(sandbox.inspect().jobs).toEqual([]);
    expect(sandbox.inspect().requests.counts.create).toBeUndefined();
    expect(await states()).toEqual([]);
  });

  it('jobs that were applied but delayed by a failure are sent by the next improve --apply, not by jobs poll', async () => {
    const { sandbox, run } = await life(2, '{ mode: plan }');
    sandbox.setFaults([{ on: 'create', kind: 'rate-limit', seconds: 0, times: 1 }]);
    const applied = await run('improve', '--apply');
    expect([applied.code, sandbox.inspect().jobs.length]).toEqual([75, 0]);
    await run('jobs', 'poll');
    expect(sandbox.inspect().jobs).toHaveLength(0);
    await run('improve', '--apply');
    expect(sandbox.inspect().jobs).toHaveLength(2);
  });
});

it.each([
  ['does not answer', { kind: 'timeout' }],
  ['asks to wait', { kind: 'rate-limit', seconds: 1 }],
] as const)('jobs poll --wait ends in time if the platform %s', async (_, fault) => {
  const { sandbox, run } = await life(2, '{ maxJobsPerWeek: 20 }', 3600);
  await run('improve', '--apply');
  sandbox.setFaults([{ on: 'job', ...fault }]);
  const begun = performance.now();
  const { stdout } = await run('jobs', 'poll', '--wait', '2s');
  expect(performance.now() - begun).toBeLessThan(20_000);
  expect(stdout.match(/ active /g)).toHaveLength(2);
});

it('a job that the platform no longer has, or that is over, is ended only by hand, and can be polled again', async () => {
  const { sandbox, run } = await life(3, '{ maxJobsPerWeek: 20 }', 3600);
  const settle = (id: number, ...found: string[]) => run('jobs', 'settle', String(id), ...found);
  await run('improve', '--apply');
  expect(sandbox.inspect().jobs).toHaveLength(3);
  expect((await run('jobs', 'show', '3')).stdout).toContain(
    'jobs settle 3 --ended, if it is over on the platform',
  );
  const over = await settle(3, '--ended');
  expect(over.stdout).toMatch(/^job 3 +failed +\/guides\/page-3 +over; ended by hand on \w+ \d+, \d{4}\n$/);

  sandbox.setFaults([{ on: 'job', kind: 'status', status: 404 }]);
  const asked = await run('jobs', 'poll', '--watch');
  expect(asked.code).toBe(1);
  expect(asked.stderr).toMatch(/poll failed:.+: readership jobs settle \d --ended/);
  const needed = await run('status');
  expect([needed.code, needed.stdout]).toEqual([1, expect.stringMatching(/jobs settle \d --ended/)]);
  expect((await run('jobs', 'list')).stdout.match(/ active /g)).toHaveLength(2);

  for (const id of [1, 2]) expect((await settle(id, '--ended')).stdout).toMatch(/^job \d +failed /);
  expect((await run('jobs', 'show', '1')).stdout).toMatch(/failed +settled by hand: ended/);
  const again = await settle(1, '--ended');
  expect(again).toMatchObject({
    code: 2,
    stderr: 'Job 1 failed and has no pull request. It can be settled with --sent REMOTE_ID.\n',
  });
  const polled = await run('jobs', 'poll');
  expect([polled.code, polled.stdout]).toEqual([0, 'No active jobs.\n']);
  expect((await run('status')).stdout).not.toMatch('--ended');

  // It was not over after all.
  sandbox.setFaults([]);
  expect((await settle(1, '--sent', 'job_000001')).stdout).toMatch(/^job 1 +active/);
  expect((await run('jobs', 'show', '1')).stdout).toMatch(/active +settled by hand: sent, as job_000001/);
});
