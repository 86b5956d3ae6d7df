import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
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
    expect(plan.stdout).toMatch(/page +people a week +AI a week +AI per human +trend/);
    expect(plan.stdout).toMatch(/\/guides\/page-1 +excluded by improve.exclude/);
    expect(Math.max(...plan.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
    const verbose = await run('improve', '--verbose');
    expect(verbose.stdout).toMatch('    | "/guides/page-2"');
    type Plan = Record<'flagged' | 'leftOut', { evidence: object }[]>;
    const [json] = JSON.parse((await run('improve', '--json')).stdout) as Plan[];
    const [some, other] = [json?.flagged[0], json?.leftOut[0]];
    expect(some).toMatchObject({ path: '/guides/page-2', evidence: { humanRank: 2 } });
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
    expect(stdout).toMatch(/5 +unconfirmed +\/guides\/page-6/);
    expect(stderr).toMatch('readership jobs resolve 5 --created REMOTE_ID, or --not-created');
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
      ['unconfirmed', false],
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
      UNCONFIRMED: ['/guides/page-6'],
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
      ...['planned', 'submitting', 'active', 'completed'],
      ...['message 1 planned', 'message 1 submitting', 'message 1 sent', 'active', 'completed'],
    ]);
    expect(stdout).toMatch('Weeks the choice is based on');
    expect(stdout).toMatch('Improve one page of this documentation');
  });

  it('resolves an unconfirmed job only with an id that exists on the platform and that no other job has', async () => {
    const resolve = (...found: string[]) => run('jobs', 'resolve', '5', ...found);
    const unknown = await resolve('--created', 'job_999999');
    expect(unknown.stderr).toContain('run readership jobs resolve 5 --not-created, and then --withdrawn');
    expect(unknown.code).toBe(1);
    expect((await resolve('--created', 'job_000001')).stderr).toMatch('is already recorded as job 1');
    expect((await resolve()).code).toBe(2);
    expect((await states())[4]).toEqual(['unconfirmed', false]);
    expect((await resolve('--created', 'job_000005')).code).toBe(0);
    await run('jobs', 'poll', '--watch');
    expect((await states())[4]).toEqual(['completed', true]);
  });

  it('resolves an unconfirmed message', async () => {
    sandbox.setFaults([{ on: 'message', kind: 'lost-reply', times: 1 }]);
    expect((await run('jobs', 'message', '3', 'Try again.')).code).toBe(1);
    const unconfirmed = await run('jobs', 'list');
    expect(unconfirmed.stderr).toMatch('readership jobs resolve 3 --sent, or --not-sent');
    const again = await run('jobs', 'message', '3', 'And again.');
    expect(again.stderr).toMatch('unconfirmed. Settle that first');
    expect((await run('jobs', 'resolve', '3', '--sent')).stdout).toMatch(/^job 3 +active/);
    await run('jobs', 'poll', '--watch');
    expect((await states())[2]).toEqual(['completed', true]);
  });

  it('compares views before and after the day a pull request was merged', async () => {
    expect((await run('jobs', 'merged', '1', '2020-01-01')).code).toBe(2);
    expect((await run('jobs', 'merged', '1')).code).toBe(0);
    expect((await run('jobs', 'show', '1')).stdout).toMatch(
      /after the merge +no full week is over since the merge on /,
    );
    expect((await run('jobs', 'merged', '1', '2026-01-01', '--undo')).code).toBe(2);
    expect((await run('jobs', 'merged', '1', '--undo')).code).toBe(0);
    expect((await run('jobs', 'show', '1')).stdout).not.toContain('merged on');
    expect((await run('jobs', 'merged', '1', '--undo')).stderr).toContain('No merge of job 1 is recorded');
    expect((await run('jobs', 'merged', '1')).code).toBe(0);
  });

  it('never planned a second job for a page', async () => {
    const again = await run('improve', '--apply');
    expect(again.stdout).toMatch(/no new job: \d pages? already chosen this week/);
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

it('a job that the platform no longer has, or that is over, is ended only by hand', async () => {
  const { sandbox, run } = await life(3, '{ maxJobsPerWeek: 20 }', 3600);
  const gone = (id: number) => run('jobs', 'resolve', String(id), '--gone');
  await run('improve', '--apply');
  expect(sandbox.inspect().jobs).toHaveLength(3);
  expect((await run('jobs', 'show', '3')).stdout).toContain(
    'jobs resolve 3 --ended, if it is over on the platform',
  );
  const over = await run('jobs', 'resolve', '3', '--ended');
  expect(over.stdout).toMatch(/^job 3 +failed +\/guides\/page-3 +over; ended manually on \w+ \d+, \d{4}\n$/);

  const known = await gone(1);
  expect(known.stderr).toMatch(
    /Job 1 still exists on the platform, with the status active\. .+ resolve 1 --ended\n$/,
  );
  expect(known.code).toBe(2);

  // A refused key does not say whether the job exists.
  sandbox.setFaults([{ on: 'job', kind: 'status', status: 401 }]);
  const locked = await gone(1);
  expect([locked.code, locked.stderr]).toEqual([1, expect.stringMatching('is wrong or has expired')]);
  expect((await run('jobs', 'list')).stdout.match(/ active /g)).toHaveLength(2);

  sandbox.setFaults([{ on: 'job', kind: 'status', status: 404 }]);
  const asked = await run('jobs', 'poll', '--watch');
  expect(asked.code).toBe(1);
  expect(asked.stderr).toMatch(/poll failed:.+: readership jobs resolve \d --gone/);
  const needed = await run('status');
  expect([needed.code, needed.stdout]).toEqual([1, expect.stringMatching(/jobs resolve \d --gone/)]);
  expect((await run('jobs', 'list')).stdout.match(/ active /g)).toHaveLength(2);

  for (const id of [1, 2]) {
    const ended = await gone(id);
    expect(ended.stdout).toMatch(
      /^job \d +failed .+ gone from the platform; ended manually on \w+ \d+, \d{4}\n$/,
    );
    expect(ended.code).toBe(0);
  }
  expect((await run('jobs', 'show', '1')).stdout).toMatch(/failed +resolved: gone from the platform/);
  const again = await gone(1);
  expect(again.stderr).toMatch('Job 1 is failed: only an active job can be ended.');
  expect(again.code).toBe(2);

  const polled = await run('jobs', 'poll');
  expect([polled.code, polled.stdout]).toEqual([0, 'No active jobs.\n']);
  expect((await run('status')).stdout).not.toMatch('--gone');
});
