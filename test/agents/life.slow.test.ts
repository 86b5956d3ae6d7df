import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { callCli, type CliResult } from '../run-cli.js';
import { type Sandbox, startSandbox } from '../sandbox/faulty-sandbox.js';
import { agentSite } from './agent-site.js';
import { steadyPages } from './reading.js';

const listed = z.array(z.object({ id: z.int(), state: z.string(), prLink: z.string().nullable() }));

/** The command line on a site whose agents end in each of the four ways. */
async function life(pages: number, improve: string) {
  const outcomes = ['pull-request', 'no-change', 'failed', 'archived'] as const;
  const sandbox = await startSandbox({ now: () => new Date(), jobSeconds: 1, outcomes });
  const site = await agentSite(sandbox, steadyPages(pages), improve);
  const run = (...args: string[]): Promise<CliResult> => callCli(args, site);
  const states = async () => {
    const { stdout } = await run('jobs', 'list', '--json');
    return listed.parse(JSON.parse(stdout)).map(({ state, prLink }) => [state, prLink !== null]);
  };
  return { sandbox, run, states };
}

// Decisions and their words are tested in test/steps, and processes that are killed in test/commands/sending.slow.test.ts.
describe('the whole life of jobs, on the command line', () => {
  let sandbox: Sandbox;
  let run: (...args: string[]) => Promise<CliResult>;
  let states: () => Promise<unknown[]>;
  beforeAll(async () => {
    ({ sandbox, run, states } = await life(6, '{ maxJobsPerWeek: 20, exclude: ["/guides/page-1"] }'));
  });

  it('shows the plan, and creates nothing', async () => {
    const { code, stdout } = await run('improve', '--verbose');
    expect(code).toBe(0);
    expect(stdout).toMatch(/rank +page +views a week +people +AI +change/);
    expect(stdout).toMatch(/\/guides\/page-1 +excluded \(improve\.exclude\)/);
    expect(stdout).toContain('    | "/guides/page-2"');
    type Plan = Record<'flagged' | 'leftOut', { evidence: object }[]>;
    const [json] = JSON.parse((await run('improve', '--json')).stdout) as Plan[];
    const [some, other] = [json?.flagged[0], json?.leftOut[0]];
    expect(some).toMatchObject({ path: '/guides/page-2', evidence: { weeklyHuman: 735 } });
    expect(Object.keys(other?.evidence ?? {})).toEqual(Object.keys(some?.evidence ?? {}));
    expect(sandbox.inspect().jobs).toEqual([]);
  });

  it('skips a page, undoes that, and rejects invalid options', async () => {
    await run('improve', '--skip', '/guides/page-6', '--until', '2999-01-01');
    const plan = await run('improve');
    expect(plan.stdout).toMatch(/\/guides\/page-6 +skipped by your team until Jan 1, 2999/);
    expect(plan.stdout).toContain('To undo a skip: readership improve --unskip /guides/page-6');
    expect((await run('improve', '--apply', '/guides/page-6')).code).toBe(1);
    expect((await run('improve', '--unskip', '/guides/page-6')).code).toBe(0);
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
    expect([applied.code, applied.stdout]).toEqual([1, expect.stringContaining('4 jobs created')]);
    sandbox.setFaults([]);
    expect(sandbox.inspect().jobs).toHaveLength(5);
    expect((await run('jobs', 'list')).stderr).toMatch(
      'readership jobs settle 5 --sent REMOTE_ID, or --not-sent',
    );
  });

  it('polls them until they end: with a pull request, without one, failed, archived', async () => {
    expect((await run('jobs', 'poll', '--watch', '--wait', '10m')).code).toBe(2);
    expect((await run('jobs', 'poll', '--watch')).code).toBe(0);
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
  });

  it('follows up: reopened, then completed', async () => {
    const messaged = await run('jobs', 'message', '2', 'Mention the rate limits.');
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
    for (const part of ['Weekly views that the choice is based on', 'Improve one page of this documentation'])
      expect(stdout).toContain(part);
  });

  it('settles a job of unknown outcome only with an id that the platform knows', async () => {
    const unknown = await run('jobs', 'settle', '5', '--sent', 'job_999999');
    expect(unknown.stderr).toContain('If it was deleted there: readership jobs settle 5 --ended');
    expect(unknown.code).toBe(1);
    expect((await run('jobs', 'settle', '5')).stderr).toContain('Give one of --merged');
    expect((await states())[4]).toEqual(['unknown', false]);
    expect((await run('jobs', 'settle', '5', '--sent', 'job_000005')).code).toBe(0);
    await run('jobs', 'poll', '--watch');
    expect((await states())[4]).toEqual(['completed', true]);
  });

  it('shows what a person found out of a pull request, and its history', async () => {
    for (const found of ['--merged', '--closed', '--ended']) await run('jobs', 'settle', '1', found);
    const { stdout } = await run('jobs', 'show', '1');
    expect(stdout).not.toMatch(/^ +(merged|closed) /m);
    expect([...stdout.matchAll(/completed +recorded by a person: (\w+)/g)].map(([, what]) => what)).toEqual([
      ...['merged', 'closed', 'neither'],
    ]);
  });

  it('never planned a second job for a page', async () => {
    const again = await run('improve', '--apply');
    expect(again.stdout).toMatch(/no new job: \d jobs? already planned for the week of /);
    expect(sandbox.inspect().jobs).toHaveLength(5);
  });
});

it('in mode: plan, nothing is created by run, jobs poll or improve without --apply', async () => {
  const { sandbox, run, states } = await life(4, '{ mode: plan }');
  for (const command of [['run'], ['improve'], ['jobs', 'poll']])
    expect((await run(...command)).code).toBe(0);
  expect(sandbox.inspect().requests.counts.create).toBeUndefined();
  expect(await states()).toEqual([]);
});
