import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import type { Client } from '../../src/api/client.js';
import {
  ApiError,
  ContractError,
  PausedError,
  RefusedError,
  TryLaterError,
  UnknownOutcomeError,
} from '../../src/api/errors.js';
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

function expectUnknown(errors: readonly ApiError[]): void {
  for (const error of errors) {
    expect(error).toBeInstanceOf(UnknownOutcomeError);
    expect(error.message).toContain('may have been carried out');
  }
}

const answer =
  (status: number, headers: Record<string, string> = {}) =>
  (response: ServerResponse) => {
    reply(response, status, { error: 'Words of the server', details: [{ message: 'and more' }] }, headers);
  };

it.each([
  [400, 'there is no project prj_'],
  [401, 'ACME_KEY is wrong or has expired'],
  [402, 'out of credits'],
  [403, 'ACME_KEY may be read-only'],
  [404, 'Check the project ID (prj_'],
])('a refusal %i is a permanent refusal, with advice', async (status, advice) => {
  const { all } = await faultsAt(answer(status));
  for (const error of all) {
    expect(error).toBeInstanceOf(RefusedError);
    expect(error).toMatchObject({ status, exitCode: 1 });
    expect(error.message).toContain(`${status}: “Words of the server; and more”`);
    expect(error.message).toContain(advice);
  }
});

it('a redirect is not followed: the message names its target', async () => {
  const location = `https://login.example.com/?key=${KEY}`;
  const { all } = await faultsAt((response) => response.writeHead(307, { location }).end());
  for (const error of all)
    expect(error.message).toMatch(/redirects to https:\/\/login\.example\.com\/\?key=\S*\. Set baseUrl/);
});

describe('an answer that asks to retry later', () => {
  it.each([
    ['seconds', { 'retry-after': '30' }, 30_000],
    ['an HTTP date', { 'retry-after': 'Wed, 18 Nov 2026 05:01:00 GMT' }, 60_000],
    ['no word of it', {}, undefined],
  ])('429 with a wait in %s', async (_, headers, retryAfterMs) => {
    const { all } = await faultsAt(answer(429, headers));
    for (const error of all) {
      expect(error).toBeInstanceOf(TryLaterError);
      expect(error).toMatchObject({ reason: 'rate-limited', exitCode: 75, isKnownNotDone: true });
      expect(error).toHaveProperty('retryAfterMs', retryAfterMs);
    }
  });

  it('429 with a plain-text body is quoted too', async () => {
    const { all } = await faultsAt((response) =>
      response.writeHead(429, { 'content-type': 'text/plain' }).end('Slow down,\n please'),
    );
    for (const error of all) expect(error.message).toContain('429: “Slow down, please”');
  });

  it.each([503, 425])('%i with Retry-After was not done, so a POST may be sent again', async (status) => {
    const { all } = await faultsAt(answer(status, { 'retry-after': '5' }));
    for (const error of all)
      expect(error).toMatchObject({ reason: 'not-taken', retryAfterMs: 5_000, isKnownNotDone: true });
  });
});

describe('a server that fails', () => {
  it.each([408, 500, 502, 503, 504])('%i: a GET may be sent again, and a POST is unknown', async (status) => {
    const { get, post } = await faultsAt(answer(status));
    for (const error of get)
      expect(error).toMatchObject({ name: 'TryLaterError', reason: 'server-error', isKnownNotDone: false });
    expectUnknown(post);
  });
});

describe('an incomplete answer', () => {
  const LOST: [string, (response: ServerResponse) => unknown][] = [
    ['the connection is reset', (response) => response.socket?.resetAndDestroy()],
    ['no answer arrives in time', () => undefined],
    [
      'the body is cut off',
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 500 });
        response.write('{"id": "job_1", ', () => response.destroy());
      },
    ],
    [
      'the body stops arriving',
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 500 });
        response.write('{"id": "job_1", ');
      },
    ],
  ];

  it.each(LOST)('%s: a GET may be sent again, a POST may have been carried out', async (_, handle) => {
    const { get, post } = await faultsAt(handle, 500);
    const lost = { name: 'TryLaterError', reason: 'connection-lost', isKnownNotDone: false };
    for (const error of get) expect(error).toMatchObject(lost);
    expectUnknown(post);
    for (const error of post) expect(error.cause).toBeInstanceOf(Error);
  });

  it('no connection: nothing was sent, so anything may be sent again', async () => {
    const closed = await serve(() => undefined);
    await closed.close();
    for (const baseUrl of [closed.baseUrl, 'http://nowhere.invalid'])
      for (const [, , , call] of OPERATIONS) {
        const error = await errorOf(call(openClient(baseUrl, { retries: NO_RETRIES })));
        expect(error).toBeInstanceOf(TryLaterError);
        expect(error).toMatchObject({ reason: 'unreachable', isKnownNotDone: true, exitCode: 75 });
        expect(error.message).toMatch(/no connection \(.+\).+Check the address/);
      }
  });
});

describe('an answer that the API does not document', () => {
  const WRONG: [string, string][] = [
    ['a web page', '<!doctype html><title>Welcome</title>'],
    ['an empty body', ''],
    ['damaged JSON', '{"totals": {"human": 1'],
    [
      'a missing field',
      '{"status": "active", "totals": {"human": 1, "ai": 0, "total": 1}, "hasMore": false}',
    ],
    [
      'a negative count',
      '{"totals": {"human": -1, "ai": 0, "total": 1}, "views": [], "hasMore": false, "id": 0.5, "status": "active"}',
    ],
  ];

  it.each(WRONG)('%s: the contract is broken, and the outcome of a POST is unknown', async (_, body) => {
    const { get, post } = await faultsAt((response) => response.end(body));
    for (const error of get) {
      expect(error).toBeInstanceOf(ContractError);
      expect(error).toMatchObject({ exitCode: 1 });
    }
    for (const error of post) expect(error).toBeInstanceOf(UnknownOutcomeError);
  });

  it('a web page: the message points to baseUrl', async () => {
    const { all } = await faultsAt((response) => response.end('<!doctype html><title>Welcome</title>'));
    for (const error of all) {
      expect(error.message).toContain('begins “<!doctype html><title>Welcome</title>”');
      expect(error.message).toContain('Check that baseUrl');
    }
  });
});

describe('a request that is sent again', () => {
  it('is one that only reads, as often as the policy says', async () => {
    const retried: number[] = [];
    const { client, server } = await clientOf(answer(500), { onRetry: (_, left) => retried.push(left) });
    expect(await errorOf(client.views(PAGE))).toBeInstanceOf(TryLaterError);
    expect(server.seen).toHaveLength(3);
    expect(retried).toEqual([2, 1]);
  });

  it.each([
    ...[400, 401, 402, 403, 404].map((status) => [`was refused with ${status}`, answer(status)] as const),
    ['broke the contract', (response: ServerResponse) => response.end('<html>')],
  ] as const)('is never one whose answer %s', async (_, handle) => {
    const { client, server } = await clientOf(handle);
    await errorOf(client.views(PAGE));
    expect(server.seen).toHaveLength(1);
  });

  it('succeeds when the server has recovered, and is counted each time', async () => {
    let counted = 0;
    const { client, server } = await clientOf(
      (response, count) => {
        if (count === 1) response.socket?.resetAndDestroy();
        else if (count === 2) response.end('{"totals": {"human": 1');
        else reply(response, 200, NO_ROWS);
      },
      { onRequest: () => counted++ },
    );
    expect(await client.views(PAGE)).toEqual(NO_ROWS);
    expect(server.seen).toHaveLength(3);
    expect(counted).toBe(3);
  });

  it('waits for as long as Retry-After says', async () => {
    const { client, server } = await clientOf(
      (response, count) => {
        if (count > 1) reply(response, 200, NO_ROWS);
        else reply(response, 429, {}, { 'retry-after': 'Wed, 18 Nov 2026 05:00:01 GMT' });
      },
      { now: () => new Date('2026-11-18T05:00:00.600Z') },
    );
    await client.views(PAGE);
    const [first, second] = server.seen;
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(395);
  });

  it('is not made if Retry-After is longer than the policy waits: the error says when to retry', async () => {
    const { client, server } = await clientOf(answer(429, { 'retry-after': '3' }));
    const error = await errorOf(client.views(PAGE));
    expect(error).toBeInstanceOf(PausedError);
    expect(error).toMatchObject({ exitCode: 75, resumeAt: new Date('2026-11-18T05:00:03Z') });
    expect(server.seen).toHaveLength(1);
  });
});

it('a 503 with a Retry-After beyond the longest delay is not waited for: the error says when to retry', async () => {
  const { client, server } = await clientOf(answer(503, { 'retry-after': '3' }));
  const error = await errorOf(client.views(PAGE));
  expect(error).toMatchObject({
    name: 'TryLaterError',
    reason: 'not-taken',
    resumeAt: new Date('2026-11-18T05:00:03Z'),
  });
  expect(server.seen).toHaveLength(1);
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
