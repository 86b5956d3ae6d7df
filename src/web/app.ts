import { getConnInfo } from '@hono/node-server/conninfo';
import { Hono } from 'hono';
import { ipRestriction } from 'hono/ip-restriction';
import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { Readable } from 'node:stream';
import pLimit from 'p-limit';
import type { Runtime, Workspace, WorkspaceOptions } from '../app/workspace.js';
import type { ServeSettings } from '../config/serve.js';
import { ConfigurationError, messageOf, ReadershipError } from '../errors.js';
import { openAccess, pathOf, type Refuse, type WebContext, type WebEnv } from './access.js';
import { Actions, type InTurn } from './actions.js';
import { completions } from './ask.js';
import { type Asker, type Asking, askWith, parseAsked, rangeOf } from './asked.js';
import { openFrame } from './frame.js';
import { metrics, renderedReport } from './health.js';
import { askerOf, attach, csvOf, formOf, HEADERS } from './http.js';
import type { PublishedReader } from './history.js';
import { mcpHandler } from './mcp.js';
import { NAVIGATION, type Page, PAGES } from './pages.js';
import { FORMATS } from './questions.js';
import { openSources } from './sources.js';

export interface WebOptions {
  readonly workspace: Workspace;
  /** Those that the workspace was found with. */
  readonly options: WorkspaceOptions;
  readonly runtime: Runtime;
  readonly settings: ServeSettings;
  /** Takes turns with whatever else in this process holds the live database. */
  readonly inTurn?: InTurn;
  /** Called with errors that are bugs, or that only the owner can understand. */
  readonly onError: (words: string) => void;
}

const TITLES: Readonly<Record<number, string>> = {
  ...{ 400: 'Not understood', 403: 'Not allowed', 404: 'Not found', 405: 'Not possible', 413: 'Too large' },
};

/** What each address answers, and who is let in. `warm` works out every page once, for nobody. */
export async function openApp(given: WebOptions) {
  const { workspace, runtime, settings, onError } = given;
  const { projects } = workspace;
  const sources = openSources(workspace, given.options, runtime);
  const { history, questions, saved } = sources;
  const frame = await openFrame(workspace.directory);
  const oneByOne = pLimit(1);
  const inTurn: InTurn = given.inTurn ?? ((work) => oneByOne(work));
  const actions = new Actions(workspace, runtime, inTurn, { port: settings.port, onError });
  const mcp = mcpHandler(sources);

  const frameOf = (address: URL, title: string) => {
    const path = pathOf(address);
    const project = projects.find(({ id }) => id === address.searchParams.get('project')) ?? projects[0];
    return {
      ...{ title, address: path + address.search, projects },
      project: project === undefined ? null : { ...project, siteUrl: project.siteUrl ?? null },
      navigation: NAVIGATION.map((page) => ({
        ...{ path: page.path, name: page.title },
        isCurrent: page.path === '/' ? path === '/' : path.startsWith(page.path),
      })),
    };
  };
  const refuse: Refuse = (c, status, words, login = false) =>
    c.html(frame.fill('web/refused', { title: 'Readership', words, login }), status);
  const problem = (c: WebContext, status: ContentfulStatusCode, words: string) => {
    // The names of projects are for visitors.
    if ((c.var as Partial<WebEnv['Variables']>).visitor === undefined) return refuse(c, status, words);
    return c.html(
      frame.fill('web/problem', { ...frameOf(new URL(c.req.url), TITLES[status] ?? 'Not now'), words }),
      status,
    );
  };

  /** What a page is asked for. Throws a `ConfigurationError` or an `HTTPException` for what there is not. */
  const askingOf = async (reader: PublishedReader, { searchParams }: URL, by: Asker): Promise<Asking> => {
    const asked = parseAsked(searchParams);
    const project = projects.find(({ id }) => asked.project === '' || id === asked.project);
    if (project === undefined)
      throw new HTTPException(404, { message: `There is no project ${asked.project}.` });
    const range = await rangeOf(reader, project.id, asked);
    if (range === undefined)
      throw new HTTPException(404, {
        message: `Nothing is loaded for ${project.name} yet: readership export`,
      });
    const rows = askWith(reader, project, asked, range);
    return { ...sources, ...by, now: runtime.now(), actions, reader, asked, project, range, rows };
  };
  const render = async (page: Page, address: URL, asking: Asking): Promise<string> => {
    const { asked, range, visitor } = asking;
    return frame.fill(`web/${page.title.toLowerCase()}`, {
      ...frameOf(address, page.title),
      ...{ asked, range, actionToken: visitor.isEditor ? access.actionToken : '' },
      ...(await page.model(asking)),
    });
  };

  const access = openAccess(settings, refuse);
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
  for (const [kind, type] of [
    ['css', 'text/css'],
    ['js', 'text/javascript'],
  ] as const)
    app.get(`/app.${kind}`, (c) =>
      c.body(frame.assets[kind], 200, {
        'Content-Type': `${type}; charset=utf-8`,
        'Cache-Control': 'public, max-age=31536000, immutable',
      }),
    );
  app.get('/login', (c) => c.redirect('/', 303));
  app.post('/login', async (c) => access.login(c, (await formOf(c)).get('password') ?? ''));

  for (const page of PAGES) {
    const { path, csv } = page;
    app.get(path, (c) =>
      history.with(async (reader) => {
        const address = new URL(c.req.url);
        return c.html(await render(page, address, await askingOf(reader, address, askerOf(c))));
      }),
    );
    if (csv !== undefined)
      app.get(`${path}.csv`, (c) =>
        history.with(async (reader) => {
          const asking = await askingOf(reader, new URL(c.req.url), askerOf(c));
          const { first, last } = asking.range;
          attach(c, 'text/csv; charset=utf-8', `${path.slice(1)}-${first}-${last}.csv`);
          return c.body(await csvOf(await csv(asking)));
        }),
      );
  }

  for (const format of FORMATS)
    app.get(`/ask.${format.name}`, async (c) => {
      const sql = await saved.sqlOf(parseAsked(new URL(c.req.url).searchParams));
      const answered = await questions.file(sql, format.name, askerOf(c).signal);
      attach(c, format.type, `answer.${format.name}`);
      return c.body(Readable.toWeb(answered) as ReadableStream);
    });
  app.get('/complete', (c) =>
    history.with(async (reader) =>
      c.json(await completions(reader, c.req.query('sql')?.slice(-8_000) ?? '')),
    ),
  );
  app.get('/metrics', async (c) =>
    c.body(await history.with((reader) => metrics(reader, workspace, runtime.now())), 200, {
      'Content-Type': 'text/plain; version=0.0.4; charset=utf-8',
    }),
  );
  app.post('/mcp', (c) => mcp(c.req.raw));
  /** The fields of a form that changes something. Throws an `HTTPException` if its sender must not. */
  const changesOf = async (c: WebContext): Promise<URLSearchParams> => {
    const form = await formOf(c);
    if (!c.get('visitor').isEditor)
      throw new HTTPException(403, { message: 'You may look and ask, but change nothing here.' });
    if (access.isActionToken(form.get('token') ?? '')) return form;
    throw new HTTPException(403, {
      message:
        'This form is from before readership serve was started again. Nothing was done: load its page again.',
    });
  };
  const shownAt = (c: WebContext, path: string, form: URLSearchParams, query: Record<string, string> = {}) =>
    c.redirect(
      `${path}?${new URLSearchParams({ project: form.get('project') ?? '', ...query }).toString()}`,
      303,
    );
  app.post('/agents', async (c) => {
    const form = await changesOf(c);
    actions.add(form);
    return shownAt(c, '/agents', form);
  });
  app.post('/ask', async (c) => {
    const form = await changesOf(c);
    return shownAt(c, '/ask', form, await saved.change(form));
  });
  app.get('/reports/:project/:file', async (c) => {
    // As it is in the address, which is how the rendered pages are listed.
    const href = new URL(c.req.url).pathname.slice('/reports/'.length);
    const report = await renderedReport(workspace, href, (links) => frame.fill('web/report-bar', links));
    if (report === undefined) return problem(c, 404, 'There is no such report.');
    c.header('Content-Security-Policy', report.policy);
    return c.html(report.html);
  });

  app.notFound((c) =>
    ['GET', 'HEAD'].includes(c.req.method)
      ? problem(c, 404, 'There is no such page.')
      : problem(c, 405, 'This address answers GET and HEAD only.'),
  );
  app.onError((error, c) => {
    if (error instanceof HTTPException) return problem(c, error.status, error.message);
    if (error instanceof ConfigurationError) return problem(c, 400, error.message);
    if (error instanceof ReadershipError) return problem(c, 503, error.message);
    // Whoever asked has left, and nobody sees the answer.
    if (!c.env.outgoing.destroyed) onError(error.stack ?? messageOf(error));
    return problem(c, 503, 'This page failed. What went wrong is in the log of readership serve.');
  });

  const warm = () =>
    history.with(async (reader) => {
      const nobody = { visitor: { isEditor: false }, signal: runtime.signal };
      for (const page of PAGES) {
        runtime.signal.throwIfAborted();
        const address = new URL(page.path, 'http://page');
        await render(page, address, await askingOf(reader, address, nobody));
      }
    });
  const close = async () => {
    await actions.close();
    history.close();
  };
  return { app, access, warm, close };
}
