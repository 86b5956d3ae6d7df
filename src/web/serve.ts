import { getConnInfo } from '@hono/node-server/conninfo';
import { Hono } from 'hono';
import { compress } from 'hono/compress';
import { HTTPException } from 'hono/http-exception';
import { ipRestriction } from 'hono/ip-restriction';
import { setFlagsFromString } from 'node:v8';
import { codeOf, ConfigurationError, messageOf, ReadershipError } from '../errors.js';
import { inUrl, listen } from '../http-server.js';
import type { WebContext, WebEnv } from './access.js';
import { addRoutes, type App, openApp, pageOf, PAGES, type WebOptions } from './app.js';
import { BusyError } from './limits.js';
import { proxyTest } from './origin.js';
import { requestOf } from './request.js';

/** The headers of every response that does not set its own. */
const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  // Without any, browsers would not say which site a form comes from.
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};

/** A running web app. */
export type Web = Awaited<ReturnType<typeof serveWeb>>;

/** How often a server looks for a new version of the history to warm up. */
const LOOKED_EVERY_MS = 60_000;
/** A response that its client does not read for once or twice this time is ended. */
const UNREAD_MS = 12_000;

/**
 * Serves the web app until it is closed. Throws a `ConfigurationError` if the port is taken, or if
 * anyone on the network could get in.
 */
export async function serveWeb(options: WebOptions) {
  // By default, garbage may take several times the memory that is in use before it is collected.
  setFlagsFromString('--heap-growing-percent=50');
  const { host, port, url } = options.settings;
  const app = await openApp(options);
  const { access, sending, sources } = app;
  const isProxy = proxyTest(options.settings);
  const server = await listen({ host, port, fetch: routed(app, options).fetch, isProxy }).catch(
    (cause: unknown) => {
      const what = ['EADDRINUSE', 'EACCES'].includes(codeOf(cause) ?? '') ? 'port' : 'host';
      const words = `Cannot listen on ${host}, port ${port}: ${messageOf(cause)}. Choose another with --${what}.`;
      throw new ConfigurationError(words, { cause });
    },
  );
  const last = { version: '' };
  const closing = new AbortController();
  const signal = AbortSignal.any([options.runtime.signal, closing.signal]);
  // Pages say what is wrong with the history.
  const warmUp = () => warm(app, signal, last).catch(() => undefined);
  // The address is known at once; whoever opens it in the first seconds waits for the page that they asked for.
  let warming = warmUp();
  const timer = setInterval(() => {
    warming = warming.then(warmUp);
  }, LOOKED_EVERY_MS).unref();
  const base = url ?? `http://${inUrl(host)}:${server.port}`;
  return {
    /** Contains the key of the link if people sign in with it. */
    address: access.linkToken === undefined ? `${base}/` : `${base}/?token=${access.linkToken}`,
    port: server.port,
    close: async (): Promise<void> => {
      clearInterval(timer);
      closing.abort();
      await server.close();
      await warming;
      await sending.close();
      sources.history.close();
    },
  };
}

/** The server's requests, from the outside in: headers, compression, access, routes. */
function routed(app: App, { settings, onError }: WebOptions): Hono<WebEnv> {
  const { access, problem } = app;
  const hono = new Hono<WebEnv>();
  hono.use(async (c, next) => {
    await next();
    for (const [name, value] of Object.entries(HEADERS)) if (!c.res.headers.has(name)) c.header(name, value);
    c.env.outgoing.socket?.setTimeout(UNREAD_MS);
  });
  hono.use(compress());
  // Before the gate: a probe names the server by its address, and has no key.
  hono.get('/healthz', (c) => c.text('ok\n'));
  if (settings.proxies !== undefined)
    hono.use(
      ipRestriction(getConnInfo, { allowList: settings.proxies }, (_, c: WebContext) =>
        problem(c, 403, 'Only the proxy may connect here: see serve.proxies in readership.yaml.'),
      ),
    );
  hono.use(access.gate);
  addRoutes(hono, app);
  hono.notFound((c) =>
    PAGES.some(({ path }) => path === c.req.path)
      ? problem(c, 405, `This address does not accept ${c.req.method}.`)
      : problem(c, 404, 'There is no such page.'),
  );
  hono.onError((error, c) => {
    if (error instanceof HTTPException) return problem(c, error.status, error.message);
    if (error instanceof ConfigurationError) return problem(c, 400, error.message);
    if (error instanceof BusyError) {
      c.header('Retry-After', '60');
      return problem(c, 429, error.message);
    }
    if (error instanceof ReadershipError) return problem(c, 503, error.message);
    // If the browser has gone, its queries were interrupted, and nobody sees the response.
    if (!c.env.outgoing.destroyed) onError(error.stack ?? messageOf(error));
    return problem(c, 503, 'This page failed. The log of readership serve says why.');
  });
  return hono;
}

/** Pages that read all days, and what is the same for every section. */
const WARMED_TOO = ['/section?section=/', '/?range=all', '/pages?range=all&per=section'];

/** Renders every page once for a version of the history other than the `last` one, so that its first visitors do not wait. */
function warm(app: App, signal: AbortSignal, last: { version: string }): Promise<void> {
  // Not the signal itself, because a history removes the limit of listeners of the one that it is given.
  const visit = { isEditor: false, client: '', signal: AbortSignal.any([signal]) };
  return app.sources.history.with(visit, async (reader) => {
    if (reader.version === last.version) return;
    last.version = reader.version;
    for (const path of [...PAGES.map((page) => page.path), ...WARMED_TOO]) {
      if (signal.aborted) return;
      const address = new URL(path, 'http://page');
      await pageOf(app, address, await requestOf(address, visit, reader, app)).catch(() => undefined);
    }
  });
}
