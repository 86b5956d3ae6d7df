import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readRanking } from '../../src/agents/ranking.js';
import { type Proposal, proposalOf, REFERENCE_TO_COME } from '../../src/agents/prompt.js';
import { type Day, day } from '../../src/day.js';
import { type Approval, approvePages, skipPages, unskipPages } from '../../src/steps/decide-pages.js';
import { improveStep } from '../../src/steps/improve.js';
import { submitWaiting } from '../../src/steps/poll.js';
import { type Job, readJob } from '../../src/state/jobs.js';
import { readChoices, readSkips } from '../../src/state/decisions.js';
import { agentDesk } from '../agents/agent-desk.js';
import { planFrom, steadyPages, storeReading } from '../agents/reading.js';
import { tempDir } from '../temp-dir.js';

/** Four pages are flagged, of twelve that are read enough; `/guides/page-12` is read least. */
async function desk(improve: object = {}, faults: Parameters<typeof agentDesk>[0] = {}) {
  const agents = await agentDesk(faults);
  await storeReading(agents.history, [...steadyPages(12), { path: '/rare', human: 1, ai: 0 }]);
  const workspaceDir = await tempDir();
  const rules = { maxJobsPerWeek: 4, exclude: ['/guides/page-2'], ...improve };
  const parts = agents.parts({ workspace: { workspaceDir }, settings: { improve: rules } });
  const [project = expect.fail('no project')] = parts.workspace.projects;
  const stores = { reader: agents.history, state: agents.state };
  const plan = () =>
    planFrom(stores, project.id, parts.workspace.settings.improve, {
      now: agents.clock.now(),
    });
  /** Approves pages, and sends their jobs; each answer has its job as it is then. */
  const approve = async (...approvals: Approval[]) => {
    const { workspace, session } = parts;
    const now = session.now();
    const ranking = await readRanking(agents.history, project, workspace.settings.improve, {
      sitemap: undefined,
      now,
    });
    const approving = { ...stores, workspace, ranking, now };
    const answers = await approvePages(approving, project, approvals);
    await submitWaiting(parts, project);
    return answers.map((answer): { path: string; job?: Job | undefined; refusal?: string } =>
      'job' in answer ? { path: answer.path, job: readJob(agents.state, answer.job) } : answer,
    );
  };
  return {
    ...{ ...agents, parts, project, workspaceDir, plan },
    proposals: async () =>
      (await plan()).flagged.map((page) => proposalOf(project.id, page, parts.workspace)),
    skip: (paths: readonly string[], until: Day | null) =>
      skipPages(stores, project, paths, { now: agents.clock.now(), until }),
    unskip: (paths: readonly string[]) => unskipPages(agents.state, project, paths, agents.clock.now()),
    approve,
    sent: () => agents.sandbox.inspect().jobs.map(({ prompt }) => prompt),
  };
}

const pathsOf = (of: readonly { readonly path: string }[]) => of.map(({ path }) => path);

describe('pages approved one by one', () => {
  it('get jobs regardless of their rank, and no other page does', async () => {
    const { approve, sent, jobs } = await desk();
    const answers = await approve({ path: '/guides/page-9' }, { path: '/guides/page-3' });
    expect(answers).toMatchObject([
      { path: '/guides/page-9', job: { id: 1, state: 'active' } },
      { path: '/guides/page-3', job: { id: 2, state: 'active' } },
    ]);
    expect(sent()).toEqual([
      expect.stringContaining('"/guides/page-9"'),
      expect.stringContaining('"/guides/page-3"'),
    ]);
    const [job] = jobs();
    expect(job?.prompt).toContain(`Readership reference ${job?.reference ?? '?'},`);
    expect(job?.prompt).not.toContain(REFERENCE_TO_COME);
  });

  it('are listed one by one if they get none, with the reason', async () => {
    const { skip, approve, sent } = await desk();
    await approve({ path: '/guides/page-1' });
    // Its job says more than a skip.
    await skip(['/guides/page-1'], null);
    const paths = ['/guides/page-1', '/guides/page-2', '/rare', '/guides/paeg-3', '/zzz', '/guides/page-4'];
    const answers = await approve(...paths.map((path) => ({ path })));
    expect(answers.map(({ refusal }) => refusal)).toEqual([
      'has job 1, active',
      'excluded (improve.exclude)',
      'fewer than 200 views in a typical week (improve.minWeeklyViews)',
      expect.stringMatching(/^the history has no such page; did you mean \/guides\/page-3, .+ or .+\?$/),
      'the history has no such page',
      undefined,
    ]);
    expect(sent()).toHaveLength(2);
  });

  it('stay within the limits: what there is no room for is sent next', async () => {
    const { approve, sent, parts, project, clock } = await desk({ maxJobsPerWeek: 1 });
    const answers = await approve({ path: '/guides/page-5' }, { path: '/guides/page-1' });
    expect(answers).toMatchObject([
      { path: '/guides/page-5', job: { id: 1, state: 'active' } },
      { path: '/guides/page-1', job: { id: 2, state: 'planned' } },
    ]);
    expect(sent()).toHaveLength(1);
    clock.advance(7 * 86_400);
    await submitWaiting(parts, project);
    expect(sent()).toEqual([expect.stringContaining('page-5'), expect.stringContaining('page-1"')]);
  });

  it('are not sent with a prompt other than the one that was shown', async () => {
    const { approve, proposals, sent, workspaceDir } = await desk();
    const [first] = (await proposals()) as [Proposal];
    await mkdir(join(workspaceDir, 'templates/prompts'), { recursive: true });
    await writeFile(join(workspaceDir, 'templates/prompts/improve.hbs'), 'Rewrite {{path}}');
    const refusal = `its prompt changed since ${first.digest} was shown: review it again`;
    expect(await approve(first)).toEqual([{ path: '/guides/page-1', refusal }]);
    expect(sent()).toEqual([]);

    const [shown] = (await proposals()) as [Proposal];
    await approve({ path: shown.path, digest: shown.digest });
    expect(sent()).toEqual([expect.stringMatching(/^Rewrite "\/guides\/page-1"\n\nCopy this line/)]);
  });

  it('can be sent with an edited prompt, which still carries the reference', async () => {
    const { approve, sent, jobs } = await desk();
    const answers = await approve(
      { path: '/guides/page-1', instruction: 'Only fix the links.' },
      { path: '/guides/page-3', instruction: ' \n' },
    );
    expect(answers[1]).toEqual({ path: '/guides/page-3', refusal: 'the prompt is empty' });
    const [job] = jobs();
    expect(sent()).toEqual([job?.prompt]);
    expect(job?.prompt).toMatch(
      new RegExp(`^Only fix the links\\.\\n\\nCopy this line.+\\nReadership reference ${job?.reference},`),
    );
  });

  it('have the same job for whoever approves the same prompt again, edited or not', async () => {
    const { approve, proposals, sent } = await desk();
    const [first, second] = (await proposals()) as [Proposal, Proposal];
    const edited = { path: second.path, digest: second.digest, instruction: 'Only fix the links.' };
    for (let times = 0; times < 2; times++)
      expect(await approve(first, { ...edited })).toMatchObject([
        { path: '/guides/page-1', job: { id: 1, state: 'active' } },
        { path: '/guides/page-3', job: { id: 2, state: 'active' } },
      ]);
    expect(await approve({ path: first.path, digest: first.digest })).toMatchObject([{ job: { id: 1 } }]);
    expect(await approve({ ...edited, instruction: 'Rewrite it.' })).toEqual([
      { path: '/guides/page-3', refusal: 'has job 2, active' },
    ]);
    expect(sent()).toHaveLength(2);
  });

  it('are never sent twice, even when the reply is lost', async () => {
    const { approve, sent, jobs, sandbox } = await desk();
    sandbox.setFaults([{ on: 'create', kind: 'lost-reply', times: 1 }]);
    await approve({ path: '/guides/page-1' });
    const answers = await approve({ path: '/guides/page-1' });
    expect(answers).toEqual([{ path: '/guides/page-1', refusal: 'has job 1, unknown' }]);
    expect(jobs().map(({ state }) => state)).toEqual(['unknown']);
    expect(sent()).toHaveLength(1);
  });
});

it('a job that no person approved is not taken for the answer to an approval', async () => {
  const { approve, proposals, parts } = await desk();
  const [proposal = expect.fail('no proposal')] = await proposals();
  await improveStep(parts, { apply: true });
  const { path, digest } = proposal;
  expect(await approve({ path, digest })).toEqual([{ path, refusal: 'has job 1, active' }]);
});

describe('a skipped page', () => {
  const skipped = async (until: string | null) => {
    const all = await desk();
    await improveStep(all.parts, { apply: false });
    await all.skip(['/guides/page-1'], until === null ? null : day(until));
    return all;
  };
  const choiceOf = ({ state, project }: Awaited<ReturnType<typeof desk>>) =>
    readChoices(state, project.id).find(({ path }) => path === '/guides/page-1');

  it('is no longer flagged or sent, and its report says so at once', async () => {
    const all = await skipped('2026-12-01');
    expect(pathsOf((await all.plan()).flagged)).not.toContain('/guides/page-1');
    const [answer] = await all.approve({ path: '/guides/page-1' });
    expect(answer?.refusal).toBe('skipped by your team until Dec 1, 2026');
    await improveStep(all.parts, { apply: true });
    expect(pathsOf(all.jobs())).not.toContain('/guides/page-1');
    const facts = '{"until":"2026-12-01"}';
    expect(choiceOf(all)).toMatchObject({ is_flagged: false, code: 'skipped', facts });
    // It is flagged again from that day on.
    all.clock.advance(12 * 24 * 3600);
    expect(pathsOf((await all.plan()).flagged)).not.toContain('/guides/page-1');
    all.clock.advance(24 * 3600);
    expect(pathsOf((await all.plan()).flagged)).toContain('/guides/page-1');
  });

  it('stays skipped without a day until that is undone', async () => {
    const all = await skipped(null);
    all.clock.advance(365 * 24 * 3600);
    const skips = () => pathsOf(readSkips(all.state, all.project.id, all.clock.now()));
    expect(skips()).toEqual(['/guides/page-1']);
    await all.unskip(['/guides/page-1']);
    expect(skips()).toEqual([]);
    expect(choiceOf(all)).toBeUndefined();
  });

  it('that has a job meanwhile is still left out for that when the skip is undone', async () => {
    const all = await desk();
    await all.approve({ path: '/guides/page-1' });
    await all.skip(['/guides/page-1'], null);
    await improveStep(all.parts, { apply: false });
    expect(choiceOf(all)).toMatchObject({ code: 'has-job' });
    await all.unskip(['/guides/page-1']);
    expect(choiceOf(all)).toMatchObject({ code: 'has-job' });
  });

  it('must exist, and the day must be in the future; otherwise nothing changes', async () => {
    const { skip, unskip, plan } = await desk();
    const page = '/guides/page-1';
    await expect(skip([page, '/guides/pge-1'], null)).rejects.toThrow(
      /^Cannot skip \/guides\/pge-1: the history has no such page; did you mean \/guides\/page-1/,
    );
    await expect(skip([page], day('2026-11-18'))).rejects.toThrow(
      'cannot be skipped until 2026-11-18: today is 2026-11-18 (UTC)',
    );
    await expect(unskip([page])).rejects.toThrow(
      '/guides/page-1 is not skipped; no page is. Nothing was changed.',
    );
    expect((await plan()).skips).toEqual([]);
  });
});
