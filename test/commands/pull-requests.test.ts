import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openTestState } from '../open-state.js';
import { insert } from '../stored-jobs.js';
import { callCleanly, daysAgo, endedWith, env, replaceIn, serveSandbox, workspaceOf } from './workspace.js';

const HOST = 'https://code.example.com';
const SETTING = `pullRequests: { url: '${HOST}' }\n`;
const PROBLEM = 'Could not look up the pull request: the code host answered 404.';

/** What was found about the pull request of each job, by its number. */
const FOUND: readonly (readonly [job: number, found: object])[] = [
  [1, { problem: PROBLEM }],
  [2, { merged_into: 'staging' }],
  [3, {}],
];

/** A workspace with completed jobs and what was found about their pull requests, and what its commands say. */
async function reviewed() {
  const sandbox = await serveSandbox();
  const cwd = await workspaceOf(sandbox, SETTING);
  const cli = (...args: string[]) => callCleanly(args, { cwd, env });
  endedWith(0, await cli('export'));
  const { state, close } = await openTestState(join(cwd, 'data'));
  const checked = { checked_at: new Date().toISOString(), next_check_at: `${daysAgo(-9)}T00:00:00.000Z` };
  await state.transaction(() => {
    for (const [job, found] of FOUND) {
      insert(state, 'jobs', {
        id: job,
        reference: String(job),
        project: sandbox.projectId,
        path: `/page-${job}`,
        state: 'completed',
        reason: 'much read',
        prompt: 'p',
        planned_at: `${daysAgo(6)}T00:00:00.000Z`,
        ended_at: `${daysAgo(5)}T00:00:00.000Z`,
        ref: 'main',
        pr_link: `${HOST}/acme/docs/pull/${job}`,
        merged_on: null,
        weekly_human: 0,
        weekly_ai: 0,
        weeks: '[]',
      });
      insert(state, 'pull_requests', { job, ...checked, ...found });
    }
  });
  await close();
  return {
    removeSetting: async () => {
      await replaceIn(cwd, SETTING, '');
      endedWith(0, await cli('jobs', 'poll'));
    },
    list: async () => endedWith(0, await cli('jobs', 'list')).stdout,
    show: async (id: number) => endedWith(0, await cli('jobs', 'show', String(id))).stdout,
    status: () => cli('status'),
    report: async () => endedWith(0, await cli('report', 'improve', '--format', 'text')).stdout,
  };
}

it('a pull request that cannot be looked up, or was merged into another branch, is said to be that, and waits for no review', async () => {
  const { list, show, status, report, removeSetting } = await reviewed();
  expect(await list()).toMatch(/pull\/1 not looked up\n/);
  expect(await list()).toMatch(/pull\/2 merged into staging\n/);
  expect(await list()).toMatch(/pull\/3\n/);
  expect(await show(1)).toMatch(/\n {2}not looked up +Could not look up .+ answered 404\./);
  const note = 'erged into staging, which is neither the branch the agent began with nor the default branch';
  expect(await show(2)).toContain(`not merged yet   m${note}`);
  const { stdout, stderr } = endedWith(1, await status());
  expect(stdout + stderr).toContain(
    `1 pull request could not be looked up, such as that of job 1: ${PROBLEM}`,
  );
  const looked = await report();
  expect(looked).toContain('One pull request is waiting for your review');
  expect(looked).toMatch(/PULL REQUESTS TO CHECK\n\n\/page-1\n {2}Check #1: http/);
  expect(looked).toContain(PROBLEM);
  expect(looked).toContain(`M${note}.`);

  // Without the setting, nothing is looked up.
  await removeSetting();
  endedWith(0, await status());
  expect(await show(1)).not.toContain('not looked up');
  expect(await report()).toContain('Two pull requests are waiting for your review');
});
