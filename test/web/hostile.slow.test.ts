import fc from 'fast-check';
import { once } from 'node:events';
import { appendFile, readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { timeLimit } from '../../src/sleep.js';
import { hashPassword } from '../../src/web/access.js';
import { hostilePiece, tries } from '../fuzz.js';
import { startCli, withMemory } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { mcpClient, mcpProcess } from './mcp-client.js';
import { basic, freePort, storedSite } from './site.js';

/** `npm run test:all` takes the whole time: HOSTILE_SECONDS=60. */
const SECONDS = Number(process.env['HOSTILE_SECONDS'] ?? 4);
const NEVER_ENDS =
  'SELECT count(*) FROM range(100000000000) AS a (x), range(1000) AS b (y) WHERE hash(x * y) = 1';
/** Only a hang takes this long, however busy the machine is. */
const AT_MOST_MS = 100_000;

let directory: string;
let origin: string;
let server: ReturnType<typeof startCli>;
const viewer = basic('just looking around');

beforeAll(async () => {
  directory = await storedSite();
  const port = await freePort();
  const [password, viewerPassword] = await Promise.all(
    ['correct horse battery', 'just looking around'].map(hashPassword),
  );
  const serve = `serve: { password: '${password}', viewerPassword: '${viewerPassword}' }\n`;
  await appendFile(join(directory, 'readership.yaml'), serve);
  server = startCli(['serve', '--port', String(port)], {
    cwd: directory,
    env: withMemory(384e6),
  });
  await server.until(/Press Ctrl-C/);
  origin = `http://127.0.0.1:${port}`;
  // The password is checked once.
  expect((await ask('/')).status).toBe(200);
});

/** The status and text of an answer, which comes before a hang would end. */
async function ask(path: string, options: Parameters<typeof request>[1] = {}) {
  const signal = timeLimit(AT_MOST_MS);
  const { statusCode, body, headers } = await request(origin + path, { headers: viewer, signal, ...options });
  return { status: statusCode, text: await body.text(), headers };
}

describe('a server with a hostile visitor', () => {
  const nested = fc.integer({ min: 1, max: 7_900 });
  const word = fc.oneof(
    fc.constantFrom('SELECT', 'FROM page_views', 'movers(', "'%'", 'CASE WHEN', '/quickstart'),
    hostilePiece,
  );
  const text = fc.oneof(
    fc.array(word, { maxLength: 12 }).map((words) => words.join(' ')),
    fc.string({ unit: 'binary', maxLength: 60 }),
    nested.map((count) => `SELECT ${'('.repeat(count)}`),
    nested.map((count) => `SELECT ${'('.repeat(count / 2)}1${')'.repeat(count / 2)}`),
    nested.map((count) => `SELECT 1${' + 1'.repeat(count / 4)}`),
  );
  const names =
    'project range from to grain against search section readers only minShare per order sort page path token';
  const places = '/ /pages /page /section /agents /reports /health /pages.csv /login /healthz';
  const path = fc.oneof(
    fc.constantFrom(...places.split(' ')),
    fc
      .tuple(text, text)
      .map(([project, file]) => `/reports/${encodeURIComponent(project)}/${encodeURIComponent(file)}`),
  );
  const hostile = fc.record({
    path,
    method: fc.constantFrom('GET', 'GET', 'GET', 'POST'),
    fields: fc.array(fc.tuple(fc.constantFrom(...names.split(' ')), text), { minLength: 1, maxLength: 3 }),
  });

  it('answers its first page throughout, in the same process', async ({ annotate }) => {
    const seen = new Set<number>();
    const tookMs: number[] = [];
    let tried = 0;
    const attack = fc.asyncProperty(fc.array(hostile, { minLength: 8, maxLength: 8 }), async (requests) => {
      const answers = Promise.allSettled(
        requests.map(async ({ path, method, fields }) => {
          const text = new URLSearchParams(
            fields.map(([name, value]): [string, string] => [name, Buffer.from(value).toString()]),
          ).toString();
          const headers = { ...viewer, 'sec-fetch-site': 'same-origin' };
          const signal = timeLimit(2_000);
          const { statusCode, body } = await (method === 'POST'
            ? request(origin + path, { method, headers, signal, body: text })
            : request(`${origin}${path}?${text}`, { headers, signal }));
          await body.dump();
          seen.add(statusCode);
        }),
      );
      const startMs = performance.now();
      const first = await ask('/');
      expect(first.status).toBe(200);
      tookMs.push(performance.now() - startMs);
      await answers;
      tried += requests.length;
    });
    // A few rounds on a machine of any speed, then as many as the time allows.
    await fc.assert(attack, { ...tries(3), numRuns: 3 });
    await fc.assert(attack, {
      ...tries(1e6),
      interruptAfterTimeLimit: SECONDS * 1_000,
      markInterruptAsFailure: false,
    });
    expect(tried).toBeGreaterThan(20);
    const [median, most] = [0.5, 1].map(
      (part) => tookMs.toSorted((a, b) => a - b)[Math.ceil(tookMs.length * part) - 1],
    );
    await annotate(
      `${tried} requests; the first page took ${median?.toFixed()} ms (median), ${most?.toFixed()} ms at most`,
    );
    expect(seen).toContain(200);
    expect(server.child.exitCode).toBeNull();
    expect((await ask('/healthz')).text).toBe('ok\n');
  });

  it.each([
    ['nested deeply', `SELECT ${'('.repeat(7_900)}`],
    ['too large for memory', "SELECT list(repeat('x', 100000000)) FROM range(1000)"],
  ])('says as an assistant’s server why a query fails that is %s, and answers the next', async (_, sql) => {
    const { client, ask: tool } = await mcpClient(directory);
    const failed = await client.callTool({ name: 'query', arguments: { sql } }, { timeout: AT_MOST_MS });
    expect(failed).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('The query failed') as unknown }],
    });
    expect(await tool('query', { sql: 'SELECT 1 AS one' })).toContain('{"rows":[{"one":1}]}');
  });

  it('answers the next query of an assistant that canceled ten, and ends those of one that left', async () => {
    const own = await tempDir();
    const { client, ask: tool } = await mcpClient(directory, mcpProcess(directory, { TMPDIR: own }));
    const begin = (signal: AbortSignal) =>
      client.callTool({ name: 'query', arguments: { sql: NEVER_ENDS } }, { signal });
    const left = new AbortController();
    const all = Array.from({ length: 10 }, () => begin(left.signal));
    await vi.waitFor(() => expect(readdir(own)).resolves.toHaveLength(1), AT_MOST_MS);
    left.abort();
    await Promise.allSettled(all);
    const late = globalThis.setTimeout(() => expect.unreachable('the next query waits'), AT_MOST_MS);
    expect(await tool('query', { sql: 'SELECT 1 AS one' })).toContain('{"rows":[{"one":1}]}');
    clearTimeout(late);
    const abandoned = begin(new AbortController().signal).catch(() => undefined);
    await vi.waitFor(() => expect(readdir(own)).resolves.toHaveLength(1), AT_MOST_MS);
    await client.close();
    await abandoned;
    await vi.waitFor(() => expect(readdir(own)).resolves.toEqual([]), AT_MOST_MS);
  });

  it('answers others while one address holds 300 idle connections and half-sent requests', async () => {
    const { port } = new URL(origin);
    const sockets = Array.from({ length: 300 }, (_, index) => {
      const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress: '127.0.0.2' });
      socket.on('error', () => undefined);
      socket.on('connect', () => index % 2 === 0 && socket.write('GET / HTTP/1.1\r\nHost: '));
      return socket;
    });
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    await vi.waitFor(() => {
      const ended = sockets.filter(({ destroyed, readableEnded }) => destroyed || readableEnded);
      expect(ended.length).toBeGreaterThanOrEqual(100);
    }, AT_MOST_MS);
    for (const localAddress of ['127.0.0.1', '127.0.0.2']) {
      const dispatcher = new Agent({ localAddress });
      expect((await ask('/', { dispatcher })).status).toBe(200);
      await dispatcher.close();
    }
    for (const socket of sockets) socket.destroy();
  });
});
