import { describe, expect, it } from 'vitest';
import { findPullRequest } from '../../src/agents/pull-request.js';
import { submitPrompts } from '../../src/agents/submit.js';
import { secretsOf } from '../../src/app/secrets.js';
import { settingsSchema } from '../../src/config/schema.js';
import { readWorkspaceRow } from '../../src/state/workspace.js';
import { pollStep } from '../../src/steps/poll.js';
import { reply, serve } from '../serve.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { agentDesk } from './agent-desk.js';
import { openCodeHost } from './open-code-host.js';

const TOKEN = 'glpat-Secret0123456789';
type Answers = readonly { readonly status?: number; readonly body?: unknown; readonly headers?: object }[];

/** Jobs that ended with pull requests, and a fake host that gives these answers, repeating the last one. */
async function reviewed(
  answers: Answers,
  { pages = 1, token, meanwhile }: { pages?: number; token?: string; meanwhile?: string } = {},
) {
  const desk = await agentDesk({ jobSeconds: 1, outcomes: ['pull-request'] });
  const server = await serve(async (_, response, count) => {
    if (meanwhile !== undefined) await desk.change(meanwhile);
    const { status = 200, body = {}, headers = {} } = answers[Math.min(count, answers.length) - 1] ?? {};
    reply(response, status, body, headers);
  });
  const options = { apiUrl: `${server.baseUrl}/api`, token, now: desk.clock.now };
  const codeHost = openCodeHost({ url: 'https://code.example.com' }, options);
  const parts = desk.parts({ platform: { codeHost } });
  await desk.plan(pages);
  await submitPrompts(desk.task(), 'job');
  desk.clock.advance(60);
  const poll = async (seconds = 0) => {
    desk.clock.advance(seconds);
    return pollStep(parts, {});
  };
  return { ...desk, poll, server };
}

/** What GitHub answers about a pull request into a branch. */
const github = (given: object, into = 'main') => ({
  body: {
    state: 'closed',
    merged_at: null,
    closed_at: null,
    updated_at: '2026-11-22T00:00:00Z',
    base: { ref: into, repo: { default_branch: 'main' } },
    ...given,
  },
});

const OPEN = github({ state: 'open' });
const MERGE = { merged_at: '2026-11-20T23:30:00-02:00', closed_at: '2026-11-21T01:30:00Z' };
const MERGED = github(MERGE);
const CLOSED = github({ closed_at: '2026-11-19T10:00:00Z' });
const HOUR = 3600;

describe('a merged pull request', () => {
  it('is recorded with the day of the merge in UTC, and not looked up again', async () => {
    const { poll, server, job, change } = await reviewed([OPEN, MERGED]);
    await poll();
    expect(job(1).merged_on).toBeNull();
    // By a clock that was ahead.
    await change("UPDATE pull_requests SET next_check_at = '2027-12-24T00:00:00.000Z'");
    const { summary } = await poll(80 * HOUR);
    expect(summary).toBe('0 jobs ended, 0 still active, 1 pull request merged or closed');
    expect(job(1).merged_on).toBe('2026-11-21');
    await poll(80 * HOUR);
    const asked = server.seen.map(({ method, url }) => `${method} ${url.pathname}`);
    expect(asked).toEqual(Array(2).fill('GET /api/repos/acme/docs/pulls/101'));
  });

  it('is looked up after a tenth of the time, an hour at least and a day at most, for half a year', async () => {
    const { poll, server } = await reviewed([OPEN]);
    const lookedUpAfter = async (seconds: number) => {
      const before = server.seen.length;
      await poll(seconds);
      return server.seen.length - before;
    };
    await poll();
    for (const [since, next] of [
      [0, HOUR],
      [99 * HOUR, 10 * HOUR],
      [1_000 * HOUR, 24 * HOUR],
    ] as const) {
      await poll(since);
      expect([await lookedUpAfter(next - 1), await lookedUpAfter(1)]).toEqual([0, 1]);
    }
    expect(await lookedUpAfter(180 * 24 * HOUR)).toBe(0);
    expect(server.seen[0]?.headers.authorization).toBeUndefined();
    // GitHub refuses requests without one.
    expect(server.seen[0]?.headers['user-agent']).toMatch(/^readership\/\d/);
  });

  it('that a person settled meanwhile stays as settled', async () => {
    const meanwhile = "UPDATE jobs SET merged_on = '2026-11-18'";
    const { poll, server, job } = await reviewed([CLOSED], { meanwhile });
    await poll(30 * HOUR);
    expect(server.seen).toHaveLength(1);
    expect(job(1)).toMatchObject({ merged_on: '2026-11-18', closed_on: null });
  });

  it('that is still open changes nothing that the history or a report depends on', async () => {
    const { poll, server, state } = await reviewed([OPEN, OPEN, CLOSED]);
    await poll();
    const { changes } = readWorkspaceRow(state);
    await poll(HOUR);
    expect(server.seen).toHaveLength(2);
    expect(readWorkspaceRow(state).changes).toBe(changes);
    await poll(HOUR);
    expect(readWorkspaceRow(state).changes).toBe(changes + 1);
  });

  it('is ignored if its merge date is before its job was planned, or after today', async () => {
    const times = ['2026-11-17T23:59:59Z', '2026-11-19T00:00:00Z', '2026-11-18T00:00:00Z'];
    const answers = times.map((merged_at) => github({ merged_at }));
    const { poll, jobs } = await reviewed(answers, { pages: 3 });
    await poll();
    const wrong = (on: string) => `the code host reports ${on} as the merge date, which cannot be right`;
    const found = jobs().map(({ merged_on, pull_request_problem: problem }) => [merged_on, problem]);
    expect(found).toEqual([
      [null, wrong('2026-11-17')],
      [null, wrong('2026-11-19')],
      ['2026-11-18', null],
    ]);
  });

  it('is not looked up on another host', async () => {
    const { poll, server, job, change } = await reviewed([MERGED]);
    const elsewhere = "UPDATE jobs SET pr_link = 'https://evil.example/acme/docs/pull/101'";
    await poll();
    await change(`${elsewhere}, merged_on = NULL`);
    await poll(80 * HOUR);
    expect(server.seen).toHaveLength(1);
    expect(job(1).pull_request_problem).toMatch('not a pull request at pullRequests.url');
  });
});

it('a pull request closed without being merged is recorded, and so is its reopening', async () => {
  const { poll, job } = await reviewed([CLOSED, OPEN]);
  expect((await poll(30 * HOUR)).summary).toMatch(/, 1 pull request merged or closed$/);
  expect(job(1).closed_on).toBe('2026-11-19');
  await poll(30 * HOUR);
  expect(job(1).closed_on).toBeNull();
});

describe('a code host', () => {
  it('that limits requests gets none until the limit resets, and jobs are still polled', async () => {
    const limit = { status: 429, headers: { 'retry-after': '3600' } };
    const { poll, server, job } = await reviewed([OPEN, limit, OPEN], { pages: 3 });
    expect((await poll()).error).toBeUndefined();
    expect(job(1).pull_request_problem).toBeNull();
    expect(job(3).pull_request_problem).toMatch(
      /^Could not look up the pull request: the code host answered 429/,
    );
    await poll(HOUR - 1);
    expect(server.seen).toHaveLength(2);
    await poll(1);
    expect(server.seen).toHaveLength(5);
    expect(job(3).pull_request_problem).toBeNull();
  });

  const now = NOW.getTime() / 1000;
  it.each([
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': `${now + 900}` }, 403, 900_000],
    [{ 'ratelimit-remaining': '0', 'ratelimit-reset': `${now + 9e9}` }, 429, HOUR * 1000],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1' }, 403, 0],
    [{}, 429, 600_000],
    [{}, 502, 600_000],
    // GitHub's secondary limit, without a header.
    [{}, 403, 600_000, 'You have exceeded a secondary rate limit.'],
  ])('that answers %j with %i requests a pause', async (headers, status, retryAfterMs, message = '') => {
    const server = await serve((_, response) => reply(response, status, { message }, headers));
    const host = openCodeHost({}, { apiUrl: server.baseUrl });
    const asked = host.review('https://github.com/a/b/pull/1', null);
    await expect(asked).rejects.toMatchObject({ name: 'TryLaterError', retryAfterMs });
  });

  it('gets at most ten requests per round', async () => {
    const { poll, server } = await reviewed([OPEN], { pages: 12 });
    await poll();
    expect(server.seen).toHaveLength(10);
    await poll();
    expect(server.seen).toHaveLength(12);
  });

  it.each([
    [404, /private, a token that can read it is required; set one in READERSHIP_CODE_HOST_TOKEN\. \[GET/],
    [403, /answered 403\. If the repository is private, a token that can read it is required/],
    [303, /answered 303\. Check pullRequests in readership\.yaml\. \[GET/],
  ])('that answers %i for one says what to do, and others are still looked up', async (status, words) => {
    const { poll, job } = await reviewed([{ status, body: { message: 'Not Found' } }, MERGED], { pages: 2 });
    await poll(80 * HOUR);
    expect(job(1).pull_request_problem).toMatch(words);
    expect(job(2).merged_on).toBe('2026-11-21');
  });

  it('that refuses the token gets one request per round, and no message contains the token', async () => {
    const { poll, server, job } = await reviewed([{ status: 401, body: { message: TOKEN } }], {
      pages: 2,
      token: TOKEN,
    });
    await poll();
    expect(server.seen.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${TOKEN}`]);
    const problem = job(2).pull_request_problem ?? '';
    expect(problem).toContain('check the one in READERSHIP_CODE_HOST_TOKEN');
    expect(problem).not.toContain(TOKEN);
  });

  it('that answers with anything else: the note says that it is not a pull request', async () => {
    const bodies = ['<html>', [], { merged_at: null }, github({ merged_at: 'yesterday' }).body];
    const answers = bodies.map((body) => ({ body }));
    const { poll, jobs } = await reviewed(answers, { pages: bodies.length });
    await poll();
    for (const { pull_request_problem } of jobs())
      expect(pull_request_problem).toMatch('the response is not that of this kind of code host');
  });
});

type Kind = 'github' | 'gitlab' | 'bitbucket';

/** What each host answers about a pull request that was merged, closed or neither on a day. */
const ANSWERS: Readonly<Record<Kind, (state: 'merged' | 'closed' | 'open', into: string) => object>> = {
  github: (state, into) => {
    const merged_at = state === 'merged' ? '2026-11-18T10:00:00Z' : null;
    const closed_at = state === 'open' ? null : '2026-11-18T10:00:00Z';
    return github({ state: state === 'open' ? 'open' : 'closed', merged_at, closed_at }, into).body;
  },
  gitlab: (state, into) => ({
    state: state === 'open' ? 'opened' : state,
    merged_at: state === 'merged' ? '2026-11-18T10:00:00.000Z' : null,
    closed_at: state === 'closed' ? '2026-11-18T12:00:00.000+02:00' : null,
    updated_at: '2026-11-22T00:00:00.000Z',
    target_branch: into,
  }),
  bitbucket: (state, into) => ({
    state: { open: 'OPEN', merged: 'MERGED', closed: 'DECLINED' }[state],
    closed_on: state === 'open' ? null : '2026-11-18T10:00:00.123456+00:00',
    updated_on: '2026-11-22T00:00:00.000000+00:00',
    destination: { branch: { name: into }, repository: { mainbranch: { name: 'main' } } },
  }),
};

const LINKS: Readonly<Record<Kind, string>> = {
  github: 'https://github.com/acme/docs/pull/1',
  gitlab: 'https://gitlab.com/acme/docs/-/merge_requests/1',
  bitbucket: 'https://bitbucket.org/acme/docs/pull-requests/1',
};

const NOTHING = { mergedOn: null, closedOn: null, mergedInto: null };

describe.each<Kind>(['github', 'gitlab', 'bitbucket'])('a pull request at %s', (host) => {
  /** What is found if the host answers this, and the agent began with `start`. */
  async function review(answer: object, start: string | null = null) {
    const server = await serve(({ url }, response) =>
      reply(response, 200, url.pathname.endsWith('/1') ? answer : { default_branch: 'main' }),
    );
    const found = await openCodeHost({ url: new URL(LINKS[host]).origin }, { apiUrl: server.baseUrl }).review(
      LINKS[host],
      start,
    );
    return { found, requests: server.seen.length };
  }
  const answer = ANSWERS[host];

  it.each([
    ['open', 'main', NOTHING],
    ['closed', 'main', { ...NOTHING, closedOn: '2026-11-18' }],
    ['merged', 'refs/heads/main', { ...NOTHING, mergedOn: '2026-11-18' }],
  ] as const)('is %s, as one request says', async (state, start, found) => {
    expect(await review(answer(state, 'main'), start)).toEqual({ found, requests: 1 });
  });

  it.each([
    ['main', null, true],
    ['main', 'docs', true],
    ['docs', 'docs', true],
    ['staging', null, false],
    ['staging', 'docs', false],
  ])('merged into %s, when the agent began with %s: %s', async (into, start, isMerged) => {
    const { found } = await review(answer('merged', into), start);
    expect(found).toEqual({ ...NOTHING, ...(isMerged ? { mergedOn: '2026-11-18' } : { mergedInto: into }) });
  });

  it('in a state that is not known is open', async () => {
    const { found } = await review({ ...answer('open', 'main'), state: 'QUEUED' });
    expect(found).toEqual(NOTHING);
  });
});

it('a host that says neither when a pull request was closed nor what the default branch is', async () => {
  const body = {
    state: 'MERGED',
    updated_on: '2026-11-22T00:00:00+00:00',
    destination: { branch: { name: 'x' } },
  };
  const server = await serve((_, response) => reply(response, 200, body));
  const host = openCodeHost({ url: 'https://bitbucket.org' }, { apiUrl: server.baseUrl });
  expect(await host.review(LINKS.bitbucket, null)).toMatchObject({ mergedOn: '2026-11-22' });
});

describe('the address of a pull request', () => {
  it.each([
    [{}, 'https://github.com/a/b.c/pull/7/files', 'https://api.github.com/repos/a/b.c/pulls/7'],
    [
      { url: 'https://git.example.com' },
      'https://git.example.com/a/b/pull/7',
      'https://git.example.com/api/v3/repos/a/b/pulls/7',
    ],
    [
      { url: 'https://acme.ghe.com' },
      'https://acme.ghe.com/a/b/pull/7',
      'https://api.acme.ghe.com/repos/a/b/pulls/7',
    ],
    [
      { url: 'https://gitlab.com' },
      'https://gitlab.com/a/b/c/-/merge_requests/12',
      'https://gitlab.com/api/v4/projects/a%2Fb%2Fc/merge_requests/12',
    ],
    // The links come from the platform: none may send the token elsewhere.
    [{}, 'https://github.com.evil.example/a/b/pull/7', undefined],
    [{}, 'https://github.com@evil.example/a/b/pull/7', undefined],
    [{}, 'https://github.com/../user/pull/7', undefined],
    [{}, 'https://github.com/a/b/issues/7', undefined],
    [{ url: 'https://gitlab.com' }, 'https://github.com/a/b/pull/7', undefined],
    [
      { url: 'https://gitlab.com' },
      'https://gitlab.com/a.b/c/-/merge_requests/12',
      'https://gitlab.com/api/v4/projects/a%2Eb%2Fc/merge_requests/12',
    ],
    [
      { url: 'https://bitbucket.org' },
      'https://bitbucket.org/a/b/pull-requests/3/diff',
      'https://api.bitbucket.org/2.0/repositories/a/b/pullrequests/3?fields=%2Bdestination.repository.mainbranch.name',
    ],
  ])('%j, %s', (settings, link, address) => {
    expect(findPullRequest(link, openCodeHost(settings).settings)?.address).toBe(address);
  });

  it('is never one that would send the token unencrypted', () => {
    expect(() => openCodeHost({ url: 'http://git.example.com' })).toThrow('would send the token unencrypted');
  });
});

it('the token is a secret', () => {
  const settings = settingsSchema.parse({ baseUrl: 'https://a.example', projects: [{ id: 'prj_1' }] });
  const environment = { READERSHIP_CODE_HOST_TOKEN: TOKEN };
  expect(secretsOf({ settings, environment })).toContain(TOKEN);
});
