import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openTestState } from '../open-state.js';
import { reply, serve } from '../serve.js';
import { insert } from '../stored-jobs.js';
import { callCleanly, daysAgo, endedWith, env, replaceIn, serveSandbox, workspaceOf } from './workspace.js';

const TOKEN = 'ghp_Secret0123456789';
const MERGED_ON = daysAgo(2);

/** What GitHub answers about a pull request that was merged into a branch, or is open. */
const answer = (into: string | null) => ({
  state: into === null ? 'open' : 'closed',
  merged_at: into === null ? null : `${MERGED_ON}T10:00:00Z`,
  closed_at: into === null ? null : `${MERGED_ON}T10:00:00Z`,
  updated_at: `${MERGED_ON}T10:00:00Z`,
  base: { ref: into ?? 'main', repo: { default_branch: 'main' } },
});

const API = '/api/v3';

/**
 * A workspace with a job for each of some pull requests, which `handle` answers about by their number, and what commands
 * say once they were looked up. `elsewhere` is another server, and its requests.
 */
async function reviewed(
  handle: (response: ServerResponse, path: string, elsewhere: string) => unknown,
  numbers: readonly number[],
) {
  const elsewhere = await serve((_, response) => reply(response, 200, answer('main')));
  const host = await serve(({ url }, response) =>
    handle(response, url.pathname.slice(API.length), elsewhere.baseUrl),
  );
  const sandbox = await serveSandbox();
  const setting = `pullRequests: { url: '${host.baseUrl}' }\n`;
  const cwd = await workspaceOf(sandbox, setting);
  const cli = (...args: string[]) =>
    callCleanly(args, { cwd, env: { ...env, READERSHIP_CODE_HOST_TOKEN: TOKEN } });
  endedWith(0, await cli('export'));
  const { state, close } = await openTestState(join(cwd, 'data'));
  await state.transaction(() => {
    for (const number of numbers)
      insert(state, 'jobs', {
        id: number,
        reference: String(number),
        project: sandbox.projectId,
        path: `/page-${number}`,
        state: 'completed',
        reason: 'much read',
        prompt: 'p',
        planned_at: `${daysAgo(6)}T00:00:00.000Z`,
        ended_at: `${daysAgo(5)}T00:00:00.000Z`,
        ref: 'main',
        pr_link: `${host.baseUrl}/acme/docs/pull/${number}`,
        weekly_human: 0,
        weekly_ai: 0,
        weeks: '[]',
      });
  });
  await close();
  endedWith(0, await cli('jobs', 'poll'));
  return {
    host,
    elsewhere,
    cli,
    removeSetting: () => replaceIn(cwd, setting, ''),
    list: async () => endedWith(0, await cli('jobs', 'list')).stdout,
    show: async (id: number) => endedWith(0, await cli('jobs', 'show', String(id))).stdout,
    status: () => cli('status'),
    report: async () => endedWith(0, await cli('report', 'improve', '--format', 'text')).stdout,
  };
}

const redirect = (response: ServerResponse, status: number, location: string) =>
  response.writeHead(status, { location }).end();

it('the pull request of a repository that was renamed is found through three redirects, and not through four', async () => {
  const hops = [301, 302, 307, 308];
  const { host, list, show } = await reviewed(
    (response, path) => {
      const [, kind = '', step = '0', number = ''] = /^\/(\w+)\/(\d+)?.*\/(\d+)$/.exec(path) ?? [];
      const at = kind === 'repos' ? 0 : Number(step);
      const isEnd = at === Number(number);
      if (isEnd) reply(response, 200, answer('main'));
      else redirect(response, hops[at] ?? 301, `${API}/repositories/${at + 1}/pulls/${number}`);
    },
    [3, 4],
  );
  expect(await list()).toMatch(/pull\/3 merged\n/);
  expect(await list()).toMatch(/pull\/4 not looked up\n/);
  expect(await show(4)).toMatch(/\n {2}not looked up +Could not look up .+ redirects more than 3 times\. /);
  expect(new Set(host.seen.map(({ headers }) => headers.authorization))).toEqual(
    new Set([`Bearer ${TOKEN}`]),
  );
});

it('no redirect to another origin is followed, so nothing else gets the token', async () => {
  const { elsewhere, show, list } = await reviewed(
    (response, path, other) => redirect(response, 301, `${other}${path}`),
    [1],
  );
  expect(elsewhere.seen).toEqual([]);
  expect(await list()).toMatch(/pull\/1 not looked up\n/);
  expect(await show(1)).toContain(
    `the code host redirects to ${elsewhere.baseUrl}, where the token is not sent. Check pullRequests.url in readership.yaml.`,
  );
});

it.each([
  [404, {}, 'the code host answered 404. If the repository is private'],
  [403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '9999999999' }, 'because it limits requests.'],
])(
  'an answer of %i is said to be one, and does not wait for a review; without the setting, it does',
  async (status, headers, words) => {
    const { host, list, show, report, removeSetting, cli, ...workspace } = await reviewed(
      (response) => reply(response, status, { message: 'No' }, headers),
      [1],
    );
    expect(await list()).toMatch(/pull\/1 not looked up\n/);
    expect(await show(1)).toContain(words);
    const looked = await report();
    expect(looked).toContain('No pull requests to review, and 1 pull request to check.');
    expect(looked).toMatch(/PULL REQUESTS TO CHECK\n\n\/page-1\n {2}Check #1: http:/);
    expect(looked).toContain(words);
    expect(looked).not.toContain('WAITING FOR YOUR REVIEW');
    const status1 = endedWith(1, await workspace.status());
    expect(status1.stdout + status1.stderr).toContain(
      '1 pull request could not be looked up, such as that of job 1: Could not look up the pull request',
    );
    const asked = host.seen.length;
    await removeSetting();
    endedWith(0, await cli('jobs', 'poll'));
    endedWith(0, await workspace.status());
    expect(await show(1)).not.toContain('not looked up');
    expect(await report()).toContain('One pull request is waiting for your review.');
    expect(host.seen).toHaveLength(asked);
  },
);

it('a merge into another branch is not a merge yet, and is said to be that', async () => {
  const { list, show, report, status } = await reviewed(
    (response, path) => reply(response, 200, answer(path.endsWith('/1') ? 'staging' : 'main')),
    [1, 2],
  );
  expect(await list()).toMatch(/pull\/1 merged into staging\n/);
  expect(await list()).toMatch(/pull\/2 merged\n/);
  const note = 'erged into staging, which is neither the branch the agent began with nor the default branch';
  expect(await show(1)).toContain(`not merged yet   m${note}`);
  expect(await report()).toMatch(/PULL REQUESTS TO CHECK\n\n\/page-1\n/);
  expect(await report()).toContain(`M${note}.`);
  endedWith(0, await status());
});

it('an open pull request waits for review', async () => {
  const { report, list } = await reviewed((response) => reply(response, 200, answer(null)), [1]);
  expect(await report()).toContain('One pull request is waiting for your review.');
  expect(await list()).toMatch(/pull\/1\n/);
});
