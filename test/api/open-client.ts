import type { ServerResponse } from 'node:http';
import { Client, type ClientOptions, type ViewsQuery } from '../../src/api/client.js';
import { Transport, type TransportOptions } from '../../src/api/transport.js';
import { day } from '../../src/day.js';
import { afterTest } from '../cleanup.js';
import { type SeenRequest, serve, type TestServer } from '../serve.js';

export const KEY = 'adm_3f9c1b7e-KEY+of/tests==';

export const PAGE: ViewsQuery = {
  dateFrom: day('2026-11-10'),
  dateTo: day('2026-11-11'),
  limit: 250,
  offset: 0,
};
export const NO_ROWS = { totals: { human: 0, ai: 0, total: 0 }, views: [], hasMore: false };
export const JOB = { id: 'job_1', status: 'active' };

interface OpenOptions extends Partial<ClientOptions> {
  readonly limits?: TransportOptions;
}

/** A transport that is closed after the test. */
export function openTransport(options?: TransportOptions): Transport {
  const transport = new Transport({ responseTimeoutMs: 20_000, ...options });
  afterTest(() => transport.close());
  return transport;
}

/** A client with small limits that is closed after the test. */
export const openClient = (baseUrl: string, { limits, ...options }: OpenOptions = {}): Client =>
  new Client({
    baseUrl,
    projectId: 'prj_1',
    apiKey: KEY,
    keyName: 'ACME_KEY',
    now: () => new Date('2026-11-18T05:00:00Z'),
    retries: { retries: 2, minDelayMs: 1, maxDelayMs: 2_000 },
    transport: options.transport ?? openTransport(limits),
    ...options,
  });

/** A client of a server that handles every request with `handle`; `count` is 1 for the first. */
export async function clientOf(
  handle: (response: ServerResponse, count: number, request: SeenRequest) => unknown,
  options: OpenOptions = {},
): Promise<{ client: Client; server: TestServer }> {
  const server = await serve((request, response, count) => handle(response, count, request));
  return { client: openClient(server.baseUrl, options), server };
}

/** What a promise rejects with; throws when it does not. */
export async function errorOf(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Error) return error;
    throw new Error('rejected with something that is no error', { cause: error });
  }
  throw new Error('expected it to reject');
}
