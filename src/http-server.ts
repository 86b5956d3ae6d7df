import { getRequestListener } from '@hono/node-server';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';

/** What a server answers with. `errorHandler` answers requests that no URL can be made of. */
interface Listening {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly fetch: Parameters<typeof getRequestListener>[0];
  readonly errorHandler?: (error: unknown) => Response;
}

/** Serves HTTP until `close`, which cuts open connections. Rejects if the port is taken. */
export async function listen({ host, port, fetch, ...options }: Listening) {
  // Global Request and Response stay as they are, because servers also run inside tests and commands.
  const listener = getRequestListener(fetch, { ...options, overrideGlobalObjects: false, hostname: host });
  const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000 }, (incoming, outgoing) => {
    void listener(incoming, outgoing);
  });
  server.maxConnections = 256;
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
