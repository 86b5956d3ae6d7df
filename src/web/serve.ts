import { getRequestListener } from '@hono/node-server';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import type { ServeSettings } from '../config/serve.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { inUrl, isLoopback } from './access.js';
import { openApp, type WebOptions } from './app.js';

/** A running web app. `address` lets its reader in where that takes no password. */
export interface Web {
  readonly address: string;
  readonly port: number;
  readonly close: () => Promise<void>;
}

const MAX_CONNECTIONS = 256;
/** A server says that it listens once its first visitors wait for no template or query, or after this. */
const LONGEST_WARMING_MS = 3_000;

/** Throws a `ConfigurationError` where anyone on the network could come in. */
function expectGuarded({ host, auth, proxies }: ServeSettings): void {
  if (isLoopback(host) || auth === 'password') return;
  const where = `To listen on ${host}, where others can reach it,`;
  if (auth === 'link')
    throw new ConfigurationError(
      `${where} set serve.password in readership.yaml (its hash: readership serve --hash-password), or serve.auth: proxy with serve.header. See docs/serve.md.`,
    );
  if (proxies === undefined)
    throw new ConfigurationError(
      `${where} set serve.proxies in readership.yaml to the addresses of the proxy: anyone else could claim to be anyone. Or listen on 127.0.0.1. See docs/serve.md.`,
    );
}

/** Serves the web app until it is closed. Throws a `ConfigurationError` when the port is taken. */
export async function serveWeb(options: WebOptions): Promise<Web> {
  const { settings } = options;
  expectGuarded(settings);
  const { app, access, warm, close } = await openApp(options);

  const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false, hostname: settings.host });
  const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000 }, (incoming, outgoing) => {
    void listener(incoming, outgoing);
  });
  server.maxConnections = MAX_CONNECTIONS;
  try {
    server.listen(settings.port, settings.host);
    await once(server, 'listening');
  } catch (cause) {
    const where = `${settings.host}, port ${settings.port}`;
    throw new ConfigurationError(`Cannot listen on ${where}: ${messageOf(cause)}. Choose another --port.`, {
      cause,
    });
  }
  // What is wrong with the history is said on its pages.
  const warmed = warm().catch(() => undefined);
  await Promise.race([warmed, setTimeout(LONGEST_WARMING_MS, undefined, { ref: false })]);
  const bound = server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : settings.port;
  const base = settings.url ?? `http://${inUrl(settings.host)}:${port}`;
  return {
    address: access.linkToken === undefined ? `${base}/` : `${base}/?token=${access.linkToken}`,
    port,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
      await close();
    },
  };
}
