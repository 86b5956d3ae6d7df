import { setTimeout } from 'node:timers/promises';
import type { ServeSettings } from '../config/schema.js';
import { isLoopback } from '../config/values.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { inUrl, listen } from '../http-server.js';
import { openApp, type WebOptions } from './app.js';

/** A running web app. */
export type Web = Awaited<ReturnType<typeof serveWeb>>;

/** A server announces its address once its pages are warmed up, or after this. */
const LONGEST_WARMING_MS = 3_000;

/** Throws a `ConfigurationError` if anyone on the network could get in. */
function expectGuarded({ host, auth, proxies }: ServeSettings): void {
  if (isLoopback(host) || auth === 'password') return;
  const where = `To listen on ${host}, where others can reach it,`;
  if (auth === 'link')
    throw new ConfigurationError(
      `${where} set serve.password in readership.yaml (its hash: readership serve --hash-password), or serve.auth: proxy with serve.header. See docs/serve.md.`,
    );
  if (proxies === undefined)
    throw new ConfigurationError(
      `${where} set serve.proxies in readership.yaml to the addresses of the proxy, because any other machine could claim to be any user. Or listen on 127.0.0.1. See docs/serve.md.`,
    );
}

/** Serves the web app until it is closed. Throws a `ConfigurationError` when the port is taken. */
export async function serveWeb(options: WebOptions) {
  const { host, port, url } = options.settings;
  expectGuarded(options.settings);
  const { app, access, warm, close } = await openApp(options);
  const server = await listen({ host, port, fetch: app.fetch }).catch((cause: unknown) => {
    throw new ConfigurationError(
      `Cannot listen on ${host}, port ${port}: ${messageOf(cause)}. Choose another --port.`,
      { cause },
    );
  });
  // Pages say what is wrong with the history.
  const warmed = warm().catch(() => undefined);
  await Promise.race([warmed, setTimeout(LONGEST_WARMING_MS, undefined, { ref: false })]);
  const base = url ?? `http://${inUrl(host)}:${server.port}`;
  return {
    /** Contains the key of the link if people sign in with it. */
    address: access.linkToken === undefined ? `${base}/` : `${base}/?token=${access.linkToken}`,
    port: server.port,
    close: async (): Promise<void> => {
      await server.close();
      await close();
    },
  };
}
