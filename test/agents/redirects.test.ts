import { expect, it } from 'vitest';
import { reply, serve } from '../serve.js';
import { openCodeHost } from './open-code-host.js';

const API = '/api/v3';
const TOKEN = 'ghp_Secret0123456789';
const MERGED = {
  state: 'closed',
  merged_at: '2026-11-18T10:00:00Z',
  closed_at: '2026-11-18T10:00:00Z',
  updated_at: '2026-11-18T10:00:00Z',
  base: { ref: 'main', repo: { default_branch: 'main' } },
};

it('the pull request of a repository that was renamed is found through three redirects, and not through four', async () => {
  const statuses = [301, 302, 307, 308];
  const server = await serve(({ url }, response) => {
    const [, step = '0', number = ''] = /repositories\/(\d+)\/pulls\/(\d+)$/.exec(url.pathname) ?? [];
    const at = Number(step);
    const asked = number || url.pathname.split('/').at(-1);
    if (at === Number(asked)) reply(response, 200, MERGED);
    else
      response
        .writeHead(statuses[at] ?? 301, { location: `${API}/repositories/${at + 1}/pulls/${asked}` })
        .end();
  });
  const host = openCodeHost({ url: server.baseUrl }, { token: TOKEN });
  const review = (number: number) => host.review(`${server.baseUrl}/acme/docs/pull/${number}`, null);
  expect(await review(3)).toMatchObject({ mergedOn: '2026-11-18' });
  await expect(review(4)).rejects.toThrow(/^Could not look up .+ redirects more than 3 times\. /);
  expect(new Set(server.seen.map(({ headers }) => headers.authorization))).toEqual(
    new Set([`Bearer ${TOKEN}`]),
  );
});

it('no redirect to another origin is followed, so nothing else gets the token', async () => {
  const elsewhere = await serve((_, response) => reply(response, 200, MERGED));
  const server = await serve(({ url }, response) =>
    response.writeHead(301, { location: elsewhere.baseUrl + url.pathname }).end(),
  );
  const host = openCodeHost({ url: server.baseUrl }, { token: TOKEN });
  await expect(host.review(`${server.baseUrl}/acme/docs/pull/1`, null)).rejects.toThrow(
    `the code host redirects to ${elsewhere.baseUrl}, where the token is not sent. Check pullRequests.url in readership.yaml.`,
  );
  expect(elsewhere.seen).toEqual([]);
});
