import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { type Client, retrying } from '../../src/api/client.js';
import { ApiError, TryLaterError, UnknownOutcomeError } from '../../src/api/errors.js';
import { reply, serve } from '../serve.js';
import { clientOf, errorOf, KEY, NO_ROWS, openClient, PAGE } from './open-client.js';
import { ATTEMPT } from '../attempt.js';

const NO_RETRIES = { retries: 0, minDelayMs: 1, maxDelayMs: 60_000 };

const VIEWS = '/v1/analytics/prj_1/views?dateFrom=2026-11-10&dateTo=2026-11-11&limit=250&offset=0';
const JOBS = '/v2/agent/prj_1/job';
const create = (client: Client) => client.createJob('Improve /a', ATTEMPT);
const send = (client: Client) => client.sendMessage('job_1', 'Shorter', ATTEMPT);
const OPERATIONS = [
  ['read page views', 'GET', VIEWS, (client: Client) => client.views(PAGE)],
  ['read the agent job', 'GET', `${JOBS}/job_1`, (client: Client) => client.job('job_1')],
  ['create the agent job', 'POST', JOBS, create],
  ['send the follow-up message', 'POST', `${JOBS}/job_1/message`, send],
] as const;

/** The error of each operation with a server that must have received exactly one request: a POST is never sent again. */
async function faultsAt(handle: (response: ServerResponse) => unknown, responseTimeoutMs = 20_000) {
  const faultAt = async ([name, method, url, call]: (typeof OPERATIONS)[number]): Promise<ApiError> => {
    const options = { limits: { responseTimeoutMs }, ...(method === 'GET' && { retries: NO_RETRIES }) };
    const { client, server } = await clientOf(handle, options);
    const error = await errorOf(call(client));
    if (!(error instanceof ApiError)) throw error;
    expect(error.message).toMatch(new RegExp(`^Could not ${name}: `));
    expect(error.message).toContain(`[${method} ${server.baseUrl}${url}]`);
    expect(error.message).not.toContain(KEY);
    expect(server.seen.map((request) => request.method)).toEqual([method]);
    return error;
  };
  const all = await Promise.all(OPERATIONS.map(faultAt));
  const of = (wanted: string) => all.filter(({ operation }) => operation.method === wanted);
  return { get: of('GET'), post: of('POST'), all };
}

const answer =
  (status: number, headers: Record<string, string> = {}) =>
  (response: ServerResponse) => {
    reply(response, status, { error: 'Words of the server', details: [{ message: 'and more' }] }, headers);
  };

const refused = (status: number) => ({ name: 'RefusedError', status, exitCode: 1 });
const limited = (retryAfterMs: number | undefined) => ({
  name: 'TryLaterError',
  reason: 'rate-limited',
  exitCode: 75,
  isKnownNotDone: true,
  retryAfterMs,
});
const notTaken = {
  name: 'TryLaterError',
  reason: 'not-taken',
  retryAfterMs: 5_000,
  isKnownNotDone: true,
};
const later = (reason: string) => ({ name: 'TryLaterError', reason, isKnownNotDone: false });
const UNKNOWN = { name: 'UnknownOutcomeError', exitCode: 1 };
const BROKEN = { name: 'ContractError', exitCode: 1 };
const MAYBE_DONE = 'may have been carried out';

/** What a server answers, the errors of requests that read and of those that create, and what all of them say. */
type Case = [
  what: string,
  handle: (response: ServerResponse) => unknown,
  get: object,
  post: object,
  words?: string | RegExp,
];
const same = (what: string, handle: Case[1], error: object, words: string | RegExp = ''): Case => [
  what,
  handle,
  error,
  error,
  words,
];

const WRONG_BODIES = {
  'a web page': '<!doctype html><title>Welcome</title>',
  'an empty body': '',
  'damaged JSON': '{"totals": {"human": 1',
  'a missing field': '{"status": "active", "totals": {"human": 1, "ai": 0, "total": 1}, "hasMore": false}',
  'a negative count':
    '{"totals": {"human": -1, "ai": 0, "total": 1}, "views": [], "hasMore": false, "id": 0.5, "status": "active"}',
};

/** A body that is shorter than announced. */
const begun = (response: ServerResponse, then?: () => void) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 500 });
  response.write('{"id": "job_1", ', then);
};

it.each<Case>([
  ...(
    [
      [400, 'there is no project prj_'],
      [401, 'ACME_KEY is wrong or has expired'],
      [402, 'out of credits'],
      [403, 'ACME_KEY may be read-only'],
      [404, 'Check the project ID (prj_'],
    ] as const
  ).map(([status, advice]) => same(`${status}, with advice`, answer(status), refused(status), advice)),
  same('400, in its own words', answer(400), refused(400), '400: “Words of the server; and more”'),
  same(
    'a redirect, which is not followed',
    (response) => response.writeHead(307, { location: `https://login.example.com/?key=${KEY}` }).end(),
    refused(307),
    /redirects to https:\/\/login\.example\.com\/\?key=\S*\. Set baseUrl/,
  ),
  // Unlike others, it may follow a request that was carried out.
  ['303', (response) => response.writeHead(303, { location: '/' }).end(), refused(303), UNKNOWN],
  same('429 with seconds', answer(429, { 'retry-after': '30' }), limited(30_000)),
  same('429 with a date', answer(429, { 'retry-after': 'Wed, 18 Nov 2026 05:01:00 GMT' }), limited(60_000)),
  same(
    '429 in plain text',
    (response) => response.writeHead(429).end('Slow down,\n please'),
    limited(undefined),
    '429: “Slow down, please”',
  ),
  ...[503, 425].map((status) =>
    same(`${status} with Retry-After`, answer(status, { 'retry-after': '5' }), notTaken),
  ),
  ...[408, 500, 502, 503, 504].map((status): Case => [
    String(status),
    answer(status),
    later('server-error'),
    UNKNOWN,
  ]),
  ['a reset connection', (response) => response.socket?.resetAndDestroy(), later('connection-lost'), UNKNOWN],
  ['nothing in time', () => undefined, later('connection-lost'), UNKNOWN],
  [
    'a body that is cut off',
    (response) => {
      begun(response, () => response.destroy());
    },
    later('connection-lost'),
    UNKNOWN,
  ],
  [
    'a body that stops arriving',
    (response) => {
      begun(response);
    },
    later('connection-lost'),
    UNKNOWN,
  ],
  ...Object.entries(WRONG_BODIES).map(([what, body]): Case => [
    what,
    (response) => response.end(body),
    BROKEN,
    UNKNOWN,
  ]),
  same(
    'a web page, with advice',
    (response) => response.end(WRONG_BODIES['a web page']),
    {},
    /begins “<!doctype html><title>Welcome<\/title>”.*Check that baseUrl/,
  ),
])('the answer %s means', async (_, handle, get, post, words = '') => {
  const faults = await faultsAt(handle, 500);
  for (const error of faults.get) expect(error).toMatchObject(get);
  for (const error of faults.post) {
    expect(error).toMatchObject(post);
    if (post === UNKNOWN && get !== BROKEN) expect(error.message).toContain(MAYBE_DONE);
  }
  for (const error of faults.all) expect(error.message).toMatch(words);
});

it('no connection: nothing was sent, so anything may be sent again', async () => {
  const closed = await serve(() => undefined);
  await closed.close();
  for (const baseUrl of [closed.baseUrl, 'http://nowhere.invalid'])
    for (const [, , , call] of OPERATIONS) {
      const error = await errorOf(call(openClient(baseUrl, { retries: NO_RETRIES })));
      expect(error).toMatchObject({ ...later('unreachable'), isKnownNotDone: true, exitCode: 75 });
      expect(error.message).toMatch(/no connection \(.+\).+Check the address/);
    }
});

describe('a request that is sent again', () => {
  it.each([
    ['was refused', answer(404)],
    ['broke the contract', (response: ServerResponse) => response.end('<html>')],
  ] as const)('is never one whose answer %s', async (_, handle) => {
    const { client, server } = await clientOf(handle);
    await errorOf(client.views(PAGE));
    expect(server.seen).toHaveLength(1);
  });

  it('is never one whose host does not exist, or whose certificate is not trusted', async () => {
    for (const code of ['ENOTFOUND', 'SELF_SIGNED_CERT_IN_CHAIN']) {
      const cause = Object.assign(new Error(code), { code });
      const operation = { name: 'read page views', method: 'GET', url: 'https://a.example' } as const;
      let attempts = 0;
      const attempt = () => {
        attempts++;
        return Promise.reject(new TryLaterError(operation, 'unreachable', code, undefined, { cause }));
      };
      const policy = { retries: 2, minDelayMs: 1, maxDelayMs: 1 };
      expect(await errorOf(retrying(attempt, policy, false, undefined, () => undefined))).toMatchObject({
        cause,
      });
      expect(attempts).toBe(1);
    }
  });

  it('is one that only reads, as often as the policy says, and is counted each time', async () => {
    const retried: number[] = [];
    let counted = 0;
    const { client, server } = await clientOf(
      (response, count) => {
        if (count === 1) response.socket?.resetAndDestroy();
        else if (count === 2) response.end('{"totals": {"human": 1');
        else if (count === 3) reply(response, 200, NO_ROWS);
        else reply(response, 500, {});
      },
      { onRequest: () => counted++, onRetry: (_, left) => retried.push(left) },
    );
    expect(await client.views(PAGE)).toEqual(NO_ROWS);
    expect(await errorOf(client.views(PAGE))).toBeInstanceOf(TryLaterError);
    expect([server.seen.length, counted, retried]).toEqual([6, 6, [2, 1, 2, 1]]);
  });

  it.each([
    [429, 'rate-limited'],
    [503, 'not-taken'],
  ])(
    'is not made if a %i wants a longer wait than the policy: the error says when to retry',
    async (status, reason) => {
      const { client, server } = await clientOf(answer(status, { 'retry-after': '3' }));
      const error = await errorOf(client.views(PAGE));
      expect(error).toBeInstanceOf(TryLaterError);
      const resumeAt = new Date('2026-11-18T05:00:03Z');
      expect(error).toMatchObject({ exitCode: 75, resumeAt, reason });
      expect(server.seen).toHaveLength(1);
    },
  );
});

describe('an abort', () => {
  const REASON = new Error('told to stop');

  it('before the request sends nothing', async () => {
    const { client, server } = await clientOf((response) => reply(response, 200, NO_ROWS));
    const signal = AbortSignal.abort(REASON);
    expect(await errorOf(client.views(PAGE, { signal }))).toBe(REASON);
    expect(await errorOf(client.createJob('Improve /a', ATTEMPT, signal))).toBe(REASON);
    expect(server.seen).toHaveLength(0);
  });

  it('ends a request in progress, and leaves the outcome of a POST unknown', async () => {
    let abort = new AbortController();
    const { client, server } = await clientOf(() => {
      abort.abort(REASON);
    });
    expect(await errorOf(client.views(PAGE, { signal: abort.signal }))).toBe(REASON);
    expect(server.seen).toHaveLength(1);
    abort = new AbortController();
    const error = await errorOf(client.createJob('Improve /a', ATTEMPT, abort.signal));
    expect(error).toBeInstanceOf(UnknownOutcomeError);
  });

  it('ends the wait for the next attempt, with its reason', async () => {
    const abort = new AbortController();
    const { client, server } = await clientOf(answer(429, { 'retry-after': '2' }), {
      onRetry: () =>
        setImmediate(() => {
          abort.abort(REASON);
        }),
    });
    expect(await errorOf(client.views(PAGE, { signal: abort.signal }))).toBe(REASON);
    expect(server.seen).toHaveLength(1);
  });
});
