import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterFile } from './cleanup.js';

/** A request as it arrived. `atMs` is on the clock of `performance.now()`. */
export interface SeenRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly atMs: number;
}

/** A server on loopback, and every request that reached it. */
export type TestServer = Awaited<ReturnType<typeof serve>>;

/** Serves until the tests of the file are over. */
export async function serve(
  handle: (request: SeenRequest, response: ServerResponse, count: number) => unknown,
) {
  const seen: SeenRequest[] = [];
  const server = createServer((incoming, response) => {
    const atMs = performance.now();
    // Tests have their own clocks, so a server sends the time only if its test does.
    response.sendDate = false;
    void text(incoming).then((body) => {
      const { method = '', url = '', headers } = incoming;
      const request = { method, headers, body, atMs, url: new URL(url, 'http://127.0.0.1') };
      seen.push(request);
      return handle(request, response, seen.length);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const testServer = {
    baseUrl: `http://127.0.0.1:${port}`,
    seen,
    close: async () => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
  afterFile(testServer.close);
  return testServer;
}

/** Answers with JSON. */
export const reply = (response: ServerResponse, status: number, body: unknown, headers = {}) =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
