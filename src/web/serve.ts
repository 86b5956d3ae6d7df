import { getConnInfo } from '@hono/node-server/conninfo';
import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { ipRestriction } from 'hono/ip-restriction';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import pLimit, { type LimitFunction } from 'p-limit';
import type { Runtime, Workspace, WorkspaceOptions } from '../app/workspace.js';
import type { ServeSettings } from '../config/schema.js';
import { codeOf, ConfigurationError, messageOf, ReadershipError } from '../errors.js';
import { bodyWithin, inUrl, listen } from '../http-server.js';
import { HEADERS, isReading, openAccess, type WebContext, type WebEnv } from './access.js';
import { actionOf, agents } from './agents.js';
import { ask, completions } from './ask.js';
import { addressOf, openFrame } from './frame.js';
import { health, metrics, renderedReport, reports } from './health.js';
import type { PublishedReader } from './history.js';
import { mcpHandler } from './mcp.js';
import { FORMATS, MAX_SQL } from './questions.js';
import { ActionQueue } from './queue.js';
import { openSources, type PageRequest, parseQuery, requestOf, type Visit } from './request.js';
import { ai, overview, page, pages, pagesCsv } from './views.js';

interface WebOptions {
  readonly workspace: Workspace;
  /** The options that the workspace was found with. */
  readonly options: WorkspaceOptions;
  readonly runtime: Runtime;
  readonly settings: ServeSettings;
  /** Takes turns with whatever else in this process holds the live database. */
  readonly inTurn?: LimitFunction;
  /** Called with errors that are bugs, or that only the owner can understand. */
  readonly onError: (words: string) => void;
}

/** What the template of each page shows, by the page's title. The template has the same name. */
const PAGES: Readonly<Record<string, (request: PageRequest) => Promise<object>>> = {
  ...{ Overview: overview, Pages: pages, AI: ai, Agents: agents },
  ...{ Ask: ask, Reports: reports, Health: health, Page: page },
};

const TITLES: Readonly<Record<number, string>> = {
  ...{ 400: 'Invalid request', 403: 'Not allowed', 404: 'Not found', 405: 'Not possible', 413: 'Too large' },
};

const MAX_FORM_BYTES = 256 * 1024;

/** The fields of a form. Throws an `HTTPException` (413) if it is too large. */
async function formOf({ env }: WebContext): Promise<URLSearchParams> {
  const text = await bodyWithin(MAX_FORM_BYTES, env.incoming);
  if (text === undefined) throw new HTTPException(413, { message: 'The form is too large.' });
  return new URLSearchParams(text);
}

/** Who requests a page, with a signal that aborts when the browser no longer waits for the response. */
function visitOf(c: WebContext): Visit {
  const left = new AbortController();
  c.env.outgoing.once('close', () => {
    left.abort();
  });
  return { visitor: c.get('visitor'), signal: left.signal };
}

/** The headers of a download. */
const download = (type: string, name: string) => ({
  ...{ 'Content-Type': type, 'Content-Disposition': `attachment; filename="${name}"` },
});

/** A running web app. */
export type Web = Awaited<ReturnType<typeof serveWeb>>;

/** A server announces its address once its pages are warmed up, or after this. */
const LONGEST_WARMING_MS = 3_000;

/**
 * Serves the web app until it is closed. Throws a `ConfigurationError` if the port is taken, or if
 * anyone on the network could get in.
 */
export async function serveWeb(options: WebOptions) {
  const { host, port, url } = options.settings;
  const { app, access, warm, close } = await openApp(options);
  const server = await listen({ host, port, fetch: app.fetch }).catch((cause: unknown) => {
    const isPort = codeOf(cause) === 'EADDRINUSE' || codeOf(cause) === 'EACCES';
    throw new ConfigurationError(
      `Cannot listen on ${host}, port ${port}: ${messageOf(cause)}. Choose another --${isPort ? 'port' : 'host'}.`,
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

/**
 * The routes, and who may use them. `warm` renders every page once, so that the first visitors do
 * not wait.
 */
async function openApp({ workspace, options, runtime, settings, onError, inTurn = pLimit(1) }: WebOptions) {
  const sources = openSources(workspace, options, runtime);
  const { history, questions, saved } = sources;
  const frame = await openFrame(workspace);
  const queue = new ActionQueue(workspace, runtime, inTurn, settings.port, onError);
  const mcp = mcpHandler(sources);

  const refuse = (c: WebContext, status: ContentfulStatusCode, words: string, login = false) =>
    c.html(frame.fill('refused', { title: 'Readership', words, login }), status);
  const problem = (c: WebContext, status: ContentfulStatusCode, words: string) => {
    // Only visitors may see the names of projects.
    if ((c.var as Partial<WebEnv['Variables']>).visitor === undefined) return refuse(c, status, words);
    const title = TITLES[status] ?? 'Not available';
    return c.html(frame.page('problem', title, new URL(c.req.url), { words }), status);
  };
  const access = openAccess(settings, refuse);

  const render = async (title: string, address: URL, visit: Visit, reader: PublishedReader) => {
    const request = await requestOf(address, visit, reader, queue, sources);
    const { query: asked, range, visitor } = request;
    const shared = { asked, range, actionToken: visitor.isEditor ? access.actionToken : '' };
    const model = await PAGES[title]?.(request);
    return frame.page(title.toLowerCase(), title, address, { ...shared, ...model });
  };

  const app = new Hono<WebEnv>();
  app.use(async (c, next) => {
    await next();
    for (const [name, value] of Object.entries(HEADERS)) if (!c.res.headers.has(name)) c.header(name, value);
  });
  // Before the gate: a probe names the server by its address, and has no key.
  app.get('/healthz', (c) => c.text('ok\n'));
  if (settings.proxies !== undefined)
    app.use(
      ipRestriction(getConnInfo, { allowList: settings.proxies }, (_, c: WebContext) =>
        refuse(c, 403, 'Only the proxy may connect here: see serve.proxies in readership.yaml.'),
      ),
    );
  app.use(access.gate);
  const forever = { 'Cache-Control': 'public, max-age=31536000, immutable' };
  const { css, js } = frame.assets;
  app.get('/app.css', (c) => c.body(css, 200, { ...forever, 'Content-Type': 'text/css; charset=utf-8' }));
  app.get('/app.js', (c) =>
    c.body(js, 200, { ...forever, 'Content-Type': 'text/javascript; charset=utf-8' }),
  );
  app.get('/login', (c) => c.redirect('/', 303));
  app.post('/login', async (c) => access.login(c, (await formOf(c)).get('password') ?? ''));

  for (const title of Object.keys(PAGES))
    app.get(addressOf(title), (c) =>
      history.with(async (reader) => c.html(await render(title, new URL(c.req.url), visitOf(c), reader))),
    );
  app.get('/pages.csv', (c) =>
    history.with(async (reader) => {
      const request = await requestOf(new URL(c.req.url), visitOf(c), reader, queue, sources);
      const { first, last } = request.range;
      const headers = download('text/csv; charset=utf-8', `pages-${first}-${last}.csv`);
      return c.body(await pagesCsv(request), 200, headers);
    }),
  );
  for (const { name, type } of FORMATS)
    app.get(`/ask.${name}`, async (c) => {
      const sql = await saved.sqlOf(parseQuery(new URL(c.req.url).searchParams));
      const answer = Readable.toWeb(await questions.file(sql, name, visitOf(c).signal));
      return c.body(answer as ReadableStream, 200, download(type, `answer.${name}`));
    });
  app.get('/complete', (c) =>
    history.with(async (reader) =>
      c.json(await completions(reader, c.req.query('sql')?.slice(-MAX_SQL) ?? '')),
    ),
  );
  app.get('/metrics', async (c) =>
    c.body(await history.with((reader) => metrics(reader, workspace, runtime.now())), 200, {
      'Content-Type': 'text/plain; version=0.0.4; charset=utf-8',
    }),
  );
  app.get('/reports/:project/:file', async (c) => {
    // Still encoded, as in the list of rendered pages.
    const href = new URL(c.req.url).pathname.slice('/reports/'.length);
    const report = await renderedReport(workspace, href, (links) => frame.fill('report-bar', links));
    if (report === undefined) return problem(c, 404, 'There is no such report.');
    return c.html(report.html, 200, { 'Content-Security-Policy': report.policy });
  });
  app.post('/mcp', (c) => mcp(c.req.raw));

  /**
   * Carries out a form, and then shows a page. Throws an `HTTPException` if its sender may not
   * change anything.
   */
  const onForm = (path: string, work: (form: URLSearchParams) => Promise<Record<string, string>>) =>
    app.post(path, async (c) => {
      const form = await formOf(c);
      if (!c.get('visitor').isEditor)
        throw new HTTPException(403, { message: 'You have read-only access. Nothing was changed.' });
      if (!access.isActionToken(form.get('token') ?? ''))
        throw new HTTPException(403, {
          message:
            'This form is out of date, because readership serve was restarted. Nothing was changed: reload the page.',
        });
      const query = new URLSearchParams({ project: form.get('project') ?? '', ...(await work(form)) });
      return c.redirect(`${path}?${query.toString()}`, 303);
    });
  onForm('/agents', (form) => {
    queue.add(actionOf(form), form.get('project'), form.toString());
    return Promise.resolve({});
  });
  onForm('/ask', (form) => saved.change(form));

  app.notFound((c) =>
    isReading(c.req.method)
      ? problem(c, 404, 'There is no such page.')
      : problem(c, 405, 'This address accepts only GET and HEAD.'),
  );
  app.onError((error, c) => {
    if (error instanceof HTTPException) return problem(c, error.status, error.message);
    if (error instanceof ConfigurationError) return problem(c, 400, error.message);
    if (error instanceof ReadershipError) return problem(c, 503, error.message);
    // If the browser has gone, its queries were interrupted, and nobody sees the response.
    if (!c.env.outgoing.destroyed) onError(error.stack ?? messageOf(error));
    return problem(c, 503, 'This page failed. The log of readership serve says why.');
  });

  const warm = () =>
    history.with(async (reader) => {
      const visit = { visitor: { isEditor: false }, signal: runtime.signal };
      for (const title of Object.keys(PAGES)) {
        runtime.signal.throwIfAborted();
        await render(title, new URL(addressOf(title), 'http://page'), visit, reader);
      }
    });
  const close = async () => {
    await queue.close();
    history.close();
  };
  return { app, access, warm, close };
}
