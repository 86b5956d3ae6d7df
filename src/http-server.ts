import { getRequestListener } from '@hono/node-server';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';

/** What a server answers with. `errorHandler` answers requests that no URL can be made of. */
interface Served {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly fetch: Parameters<typeof getRequestListener>[0];
  readonly errorHandler?: (error: unknown) => Response;
}

/** Open connections. A browser has six; a proxy in front has those of all its visitors. */
const MOST_CONNECTIONS = 1_000;
/** A path of 2,000 characters fits into an address, even percent-encoded. */
const MAX_HEADER_BYTES = 32 * 1024;

/** Longer than proxies keep theirs, commonly a minute: they would use one that is just being closed, and answer 502. */
const KEPT_ALIVE_MS = 75_000;

/** Serves HTTP until `close`, which cuts open connections. Rejects if the port is taken. */
export async function listen({ host, port, fetch, ...options }: Served) {
  // Global Request and Response stay as they are, because servers also run inside tests and commands.
  const listener = getRequestListener(fetch, { ...options, overrideGlobalObjects: false, hostname: host });
  const times = {
    requestTimeout: 30_000,
    headersTimeout: 10_000,
    keepAliveTimeout: KEPT_ALIVE_MS,
    connectionsCheckingInterval: 5_000,
  };
  const server = createServer({ ...times, maxHeaderSize: MAX_HEADER_BYTES }, (incoming, outgoing) => {
    void listener(incoming, outgoing);
  });
  server.maxConnections = MOST_CONNECTIONS;
  server.listen(port, host);
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close: async (): Promise<void> => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A host as it is written in an address. */
export const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** What `Host` may say in requests to a server on this machine. */
export const localHosts = (host: string, port = 0): string[] =>
  ['localhost', '127.0.0.1', '[::1]', inUrl(host)].map((name) => new URL(`http://${name}:${port}`).host);

/**
 * The body of a request as text; undefined if it is larger, and the rest is then not read. Hono's
 * `bodyLimit` needs servers to replace the global Request.
 */
export async function bodyWithin(maxBytes: number, incoming: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
