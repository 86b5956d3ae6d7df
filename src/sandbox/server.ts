import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';

/** A listening HTTP server. */
export interface Listening {
  readonly baseUrl: string;
  /** Stops at once: idle, open and hanging connections are cut. */
  readonly close: () => Promise<void>;
}

export const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** Listens on `port`, any free one for 0. Rejects if the port is taken. */
export async function listen(listener: RequestListener, host: string, port: number): Promise<Listening> {
  const server = createServer(listener);
  server.listen(port, host);
  await once(server, 'listening');
  const address = server.address();
  const bound = typeof address === 'object' && address !== null ? address.port : port;
  return {
    baseUrl: `http://${inUrl(host)}:${bound}`,
    close: async () => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
