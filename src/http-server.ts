import { getRequestListener } from '@hono/node-server';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { codeOf } from './errors.js';

/** What a server answers with. `errorHandler` answers requests that no URL can be made of. */
interface Served {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly fetch: Parameters<typeof getRequestListener>[0];
  readonly errorHandler?: (error: unknown) => Response;
  /** Whether an address is that of a proxy, whose connections are those of many clients. */
  readonly isProxy?: (address: string) => boolean;
}

/** Open connections. A browser has six; a proxy in front has those of all its visitors. */
const MOST_CONNECTIONS = 1_000;
const MOST_OF_ONE_ADDRESS = 200;
/** A path of 2,000 characters fits into an address, even percent-encoded. */
const MAX_HEADER_BYTES = 32 * 1024;

/** Longer than proxies keep theirs, commonly a minute: they would use one that is just being closed, and answer 502. */
const KEPT_ALIVE_MS = 75_000;

/** Serves HTTP until `close`, which cuts open connections. Rejects if the port is taken. */
export async function listen({ host, port, fetch, isProxy = () => false, ...options }: Served) {
  // Global Request and Response stay as they are, because servers also run inside tests and commands.
  const listener = getRequestListener(fetch, { ...options, overrideGlobalObjects: false, hostname: host });
  const connections = new Connections(isProxy);
  const times = {
    requestTimeout: 30_000,
    headersTimeout: 10_000,
    keepAliveTimeout: KEPT_ALIVE_MS,
    connectionsCheckingInterval: 5_000,
  };
  const server = createServer({ ...times, maxHeaderSize: MAX_HEADER_BYTES }, (incoming, outgoing) => {
    outgoing.once('close', connections.use(incoming.socket));
    void listener(incoming, outgoing);
  });
  server.on('connection', (socket) => {
    connections.add(socket);
  });
  server.on('clientError', (error, socket) => {
    if (socket.writable) socket.end(answerTo(codeOf(error)));
    else socket.destroy();
  });
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

/** The open connections, of which no address gets more than its share, unless it is that of a proxy. */
class Connections {
  readonly #byAddress = new Map<string, Set<Socket>>();
  readonly #used = new WeakSet<Socket>();
  #count = 0;

  constructor(private readonly isProxy: (address: string) => boolean) {}

  /** Counts a connection. If there are too many, the one that has been idle the longest is closed. */
  add(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    const own = (this.#byAddress.get(address) ?? new Set()).add(socket);
    this.#byAddress.set(address, own);
    this.#count += 1;
    socket.once('close', () => {
      this.#count -= 1;
      own.delete(socket);
      if (own.size === 0) this.#byAddress.delete(address);
    });
    const isShareTaken = own.size > MOST_OF_ONE_ADDRESS && !this.isProxy(address);
    if (!isShareTaken && this.#count <= MOST_CONNECTIONS) return;
    const bySize = [...this.#byAddress.values()].sort((one, other) => other.size - one.size);
    const crowd = (isShareTaken ? own : bySize[0]) ?? own;
    const idle = [...crowd].find((one) => !this.#used.has(one));
    (idle ?? socket).destroy();
  }

  /** Notes that a connection has a request, until the returned function is called. */
  use(socket: Socket): () => void {
    this.#used.add(socket);
    return () => this.#used.delete(socket);
  }
}

/** What a request gets that cannot be read. */
function answerTo(code: string | undefined): string {
  const [status, words] =
    code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'The address of this request is too long.']
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'The request took too long to arrive.']
        : ['400 Bad Request', 'This is not an HTTP request.'];
  const length = Buffer.byteLength(words) + 1;
  return `HTTP/1.1 ${status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n${words}\n`;
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
