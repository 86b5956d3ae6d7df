import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { ContractError, TryLaterError, UnknownOutcomeError } from '../../src/api/errors.js';
import { ATTEMPT } from '../attempt.js';
import { clientOf, errorOf, JOB, KEY, NO_ROWS, openClient, PAGE } from './open-client.js';
import { reply } from '../serve.js';

const NO_RETRIES = { retries: 0, minDelayMs: 1, maxDelayMs: 1 };
const BODY = JSON.stringify({
  totals: { human: 3, ai: 0, total: 3 },
  views: [{ path: '/dépôt', human: 3, ai: 0, total: 3 }],
  hasMore: false,
});
describe('a refusal', () => {
  it.each(['cut off', 'too large', 'damaged'])(
    'counts although its text is %s: a 429 is never unknown',
    async (how) => {
      const { client } = await clientOf(
        (response) => {
          response.writeHead(429, {
            ...(how === 'cut off' ? { 'content-length': 1_000 } : {}),
            ...(how === 'damaged' ? { 'content-encoding': 'gzip' } : {}),
          });
          response.write(how === 'too large' ? Buffer.alloc(20_000_000) : 'Too many requ', () =>
            how === 'cut off' ? response.destroy() : response.end(),
          );
        },
        { retries: NO_RETRIES },
      );
      for (const ask of [() => client.createJob('Go', ATTEMPT), () => client.views(PAGE)])
        expect(await errorOf(ask())).toMatchObject({ reason: 'rate-limited', isKnownNotDone: true });
    },
  );

  it('may repeat its headers, of which the first counts', async () => {
    const { client } = await clientOf(
      (response) => {
        response.setHeader('retry-after', ['7', '9']);
        response.setHeader('content-encoding', ['identity', 'identity']);
        response.writeHead(429).end('Too many requests');
      },
      { retries: NO_RETRIES },
    );
    const error = await errorOf(client.createJob('Go', ATTEMPT));
    expect(error).toMatchObject({ reason: 'rate-limited', retryAfterMs: 7_000 });
    expect(error.message).toContain('“Too many requests”');
  });
});

describe('an encoded answer', () => {
  it.each([
    ['gzip', gzipSync(BODY)],
    ['GZIP', gzipSync(BODY)],
    ['identity', Buffer.from(BODY)],
    ['', Buffer.from(`\uFEFF${BODY}`)],
  ])('%s is read', async (encoding, body) => {
    const { client, server } = await clientOf((response) =>
      response.writeHead(200, { 'content-encoding': encoding }).end(body),
    );
    expect(await client.views(PAGE)).toEqual(JSON.parse(BODY));
    expect(server.seen[0]?.headers['accept-encoding']).toBe('gzip');
  });

  it.each([
    ['', Buffer.from(BODY, 'latin1'), 'not valid UTF-8, in the path “/d�p�t”'],
    ['gzip', Buffer.from(BODY), 'incorrect header check'],
    ['gzip', gzipSync(BODY).subarray(0, 40), 'unexpected end of file'],
    ['br', Buffer.from(BODY), 'the content encoding br is unknown'],
    ['gzip', gzipSync(Buffer.alloc(20_000_000)), 'larger'],
  ])('%s that cannot be decoded breaks the contract, and a POST is unknown', async (encoding, body, why) => {
    const { client } = await clientOf(
      (response) => response.writeHead(200, { 'content-encoding': encoding }).end(body),
      { retries: NO_RETRIES },
    );
    const error = await errorOf(client.views(PAGE));
    expect(error).toBeInstanceOf(ContractError);
    expect(error.message).toContain('cannot be decoded');
    expect(error.message).toContain(why);
    expect(await errorOf(client.createJob('Go', ATTEMPT))).toBeInstanceOf(UnknownOutcomeError);
  });

  it('is decoded in an error too', async () => {
    const { client } = await clientOf((response) => {
      const body = gzipSync(JSON.stringify({ error: 'unknown project' }));
      response.writeHead(400, { 'content-encoding': 'gzip' }).end(body);
    });
    expect((await errorOf(client.views(PAGE))).message).toContain('400: “unknown project”');
  });
});

it.each([
  [
    'details as an object',
    { error: 'bad', details: { dateFrom: 'too old', limit: ['a', 'b'] } },
    'bad; dateFrom: too old; limit: a; limit: b',
  ],
  ['details as messages', { error: 'bad', details: [{ message: 'one' }] }, 'bad; one'],
  ['details as text', { error: 'bad', details: 'too old' }, 'bad; too old'],
  ['an error as an object', { error: { code: 12, message: 'bad' } }, 'code: 12; bad'],
  ['a problem document', { title: 'Bad', detail: 'too old' }, 'title: Bad; too old'],
  ['a list', [{ message: 'one' }, 'two', null], 'one; two'],
])('an error body of any shape with %s is quoted as text', async (_, body, words) => {
  const { client } = await clientOf((response) => response.writeHead(422).end(JSON.stringify(body)));
  expect((await errorOf(client.views(PAGE))).message).toContain(`the server answered 422: “${words}”.`);
});

/** A server in a thread, which answers once the main thread does nothing else than wait for that. */
const ANSWERS_SUSPENDED = `
  const { parentPort, workerData: { signals, body } } = require('node:worker_threads');
  const server = require('node:http').createServer((_, response) => {
    parentPort.postMessage('asked');
    Atomics.wait(signals, 0, 0);
    response.end(body, () => {
      Atomics.store(signals, 1, 1);
      Atomics.notify(signals, 1);
    });
  });
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`;

describe('the deadline for a whole answer', () => {
  /** Sends a byte now and then, forever. */
  const drip = async (response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    while (!response.destroyed) {
      response.write(' ');
      await delay(10);
    }
  };

  it('ends an answer that trickles in, and a GET may be sent again', async () => {
    const { client } = await clientOf(drip, { retries: NO_RETRIES, limits: { responseTimeoutMs: 60 } });
    const error = await errorOf(client.views(PAGE));
    expect(error).toBeInstanceOf(TryLaterError);
    expect(error).toMatchObject({ reason: 'connection-lost' });
    expect(error.message).toContain('it took more than 0.06 s');
    expect(await errorOf(client.createJob('Go', ATTEMPT))).toBeInstanceOf(UnknownOutcomeError);
  });

  it('counts an answer that arrived while the process was suspended', async () => {
    const [isSuspended, isAnswered] = [0, 1];
    const signals = new Int32Array(new SharedArrayBuffer(8));
    const workerData = { signals, body: JSON.stringify(JOB) };
    const worker = new Worker(ANSWERS_SUSPENDED, { eval: true, workerData });
    const [port] = z.tuple([z.int()]).parse(await once(worker, 'message'));
    const responseTimeoutMs = 200;
    const client = openClient(`http://127.0.0.1:${port}`, { limits: { responseTimeoutMs } });
    const start = performance.now();
    const answer = client.createJob('Go', ATTEMPT);
    worker.once('message', () => {
      // As if it was suspended: nothing runs here until the server has answered and the time is over.
      Atomics.store(signals, isSuspended, 1);
      Atomics.notify(signals, isSuspended);
      Atomics.wait(signals, isAnswered, 0);
      while (performance.now() < start + 2 * responseTimeoutMs);
    });
    await expect(answer).resolves.toMatchObject({ id: 'job_1' });
    await worker.terminate();
  });
});

it('an answer of more than 16 MB breaks the contract, and is not requested again', async () => {
  const { client, server } = await clientOf((response) =>
    response.writeHead(200).end(Buffer.alloc(17_000_000, ' ')),
  );
  const error = await errorOf(client.views(PAGE));
  expect(error).toBeInstanceOf(ContractError);
  expect(error.message).toContain('larger than 16 MB');
  expect(server.seen).toHaveLength(1);
});

it('no more GETs than allowed are sent at once, and none whose signal aborts while it waits', async () => {
  const underWay: ServerResponse[] = [];
  const { client, server } = await clientOf((response) => underWay.push(response), {
    limits: { concurrency: 2 },
  });
  const abort = new AbortController();
  const [first, second, third, fourth] = [undefined, undefined, abort.signal, undefined].map((signal) =>
    client.views(PAGE, { signal }),
  );
  await vi.waitUntil(() => underWay.length === 2, 20_000);
  const rejection = expect(third).rejects.toThrow('interrupted');
  abort.abort(new Error('interrupted'));
  for (let sent = 1; sent <= 3; sent++) {
    await vi.waitUntil(() => underWay.length > 0, 20_000);
    expect(underWay.length).toBeLessThanOrEqual(2);
    underWay.shift()?.end(JSON.stringify(NO_ROWS));
  }
  expect(await Promise.all([first, second, fourth])).toEqual([NO_ROWS, NO_ROWS, NO_ROWS]);
  await rejection;
  expect(server.seen).toHaveLength(3);
});

it('each POST has its own connection, and GETs share theirs', async () => {
  const ports: [string, number | undefined][] = [];
  const { client } = await clientOf(async (response, _, { method }) => {
    ports.push([method, response.socket?.remotePort]);
    response.end(JSON.stringify(method === 'POST' ? JOB : NO_ROWS));
    await once(response, 'close');
  });
  for (let time = 0; time < 3; time++) {
    await client.createJob('Go', ATTEMPT);
    await client.views(PAGE);
  }
  const of = (wanted: string) =>
    new Set(ports.flatMap(([method, port]) => (method === wanted ? [port] : [])));
  expect(ports).toHaveLength(6);
  expect(of('POST').size).toBe(3);
  expect(of('GET').size).toBe(1);
});

describe('the four operations', () => {
  it('are sent as the API documents, below the path of the base URL', async () => {
    const { server } = await clientOf((response, _, { url }) => {
      const job = url.pathname.endsWith('message') ? { ...JOB, id: 'job/1?' } : JOB;
      reply(response, 200, url.pathname.endsWith('views') ? NO_ROWS : job);
    });
    const client = openClient(`${server.baseUrl}/api`, { projectId: 'prj/1 ü' });
    await client.views({ ...PAGE, limit: 50, offset: 100 });
    await client.createJob('Improve “/a”', ATTEMPT);
    await client.sendMessage('job/1?', 'Shorter', ATTEMPT);
    await client.job('job_1');
    const prefix = 'prj%2F1%20%C3%BC';
    expect(server.seen.map(({ method, url, body }) => [method, url.pathname + url.search, body])).toEqual([
      [
        'GET',
        `/api/v1/analytics/${prefix}/views?dateFrom=2026-11-10&dateTo=2026-11-11&limit=50&offset=100`,
        '',
      ],
      ['POST', `/api/v2/agent/${prefix}/job`, '{"prompt":"Improve “/a”"}'],
      ['POST', `/api/v2/agent/${prefix}/job/job%2F1%3F/message`, '{"prompt":"Shorter"}'],
      ['GET', `/api/v2/agent/${prefix}/job/job_1`, ''],
    ]);
    for (const { headers, method } of server.seen) {
      expect(headers.authorization).toBe(`Bearer ${KEY}`);
      expect(headers['content-type']).toBe(method === 'POST' ? 'application/json' : undefined);
    }
  });

  it.each([200, 201, 202])('accept %i as success', async (status) => {
    const { client } = await clientOf((response) => reply(response, status, JOB));
    expect(await client.createJob('Improve /a', ATTEMPT)).toMatchObject(JOB);
    expect(await client.job('job_1')).toMatchObject(JOB);
  });
});

it('an empty prompt is refused, and nothing is sent', async () => {
  const { client, server } = await clientOf((response) => reply(response, 200, JOB));
  for (const send of [() => client.createJob('', ATTEMPT), () => client.sendMessage('job_1', '', ATTEMPT)])
    expect(await errorOf((async () => send())())).toBeInstanceOf(RangeError);
  expect(server.seen).toHaveLength(0);
});
