import { HTTPException } from 'hono/http-exception';
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { Readable } from 'node:stream';
import { ConfigurationError } from '../errors.js';
import { bodyWithin } from '../http-server.js';
import type { WebContext } from './access.js';
import { actionOf, agents, draftOf } from './agents.js';
import { ask } from './ask.js';
import { health, metrics, renderedReport, reports } from './health.js';
import type { PublishedReader } from './history.js';
import { FORMATS } from './questions.js';
import { type PageRequest, parseQuery, requestOf, type SiteRequest, type Visit } from './request.js';
import type { App } from './serve.js';
import { ai, overview, page, pages, pagesCsv } from './views.js';

interface Page {
  readonly path: string;
  readonly title: string;
  readonly template: string;
  /** What the template shows. */
  readonly model: (request: SiteRequest) => Promise<object>;
}

const titled = (path: string, title: string, model: Page['model']): Page => ({
  path,
  title,
  template: title.toLowerCase(),
  model,
});

/** A page about days, which says what to do until some are loaded. */
const ofDays = (path: string, title: string, model: (request: PageRequest) => Promise<object>): Page =>
  titled(path, title, ({ range, ...request }) =>
    range === undefined ? Promise.resolve({ template: 'empty' }) : model({ ...request, range }),
  );

export const PAGES: readonly Page[] = [
  ofDays('/', 'Overview', overview),
  ofDays('/pages', 'Pages', pages),
  ofDays('/page', 'Page', page),
  ofDays('/ai', 'AI', ai),
  titled('/agents', 'Agents', agents),
  titled('/ask', 'Ask', ask),
  titled('/reports', 'Reports', reports),
  titled('/health', 'Health', health),
];

interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly answer: (c: WebContext, app: App) => Promise<Response> | Response;
}

const FOREVER = 'public, max-age=31536000, immutable';

export const ROUTES: readonly Route[] = [
  ...PAGES.map(({ path }): Route => ({
    method: 'GET',
    path,
    answer: (c, app) => shown(c, app, addressOf(c)),
  })),
  { method: 'GET', path: '/app.css', answer: (c, { frame }) => asset(c, frame.assets.css, 'text/css') },
  { method: 'GET', path: '/app.js', answer: (c, { frame }) => asset(c, frame.assets.js, 'text/javascript') },
  { method: 'GET', path: '/login', answer: (c) => c.redirect('/', 303) },
  {
    method: 'POST',
    path: '/login',
    answer: async (c, { access }) => access.login(c, (await formOf(c)).get('password') ?? ''),
  },
  { method: 'POST', path: '/logout', answer: (c, { access }) => access.logout(c) },
  { method: 'GET', path: '/pages.csv', answer: csvOfPages },
  ...FORMATS.flatMap(({ name, type }): Route[] => {
    const answer = (sql: string, c: WebContext, app: App) => download(c, app, sql, name, type);
    const path = `/ask.${name}`;
    return [
      {
        method: 'GET',
        path,
        answer: async (c, app) =>
          answer(await app.sources.saved.sqlOf(parseQuery(addressOf(c).searchParams)), c, app),
      },
      { method: 'POST', path, answer: async (c, app) => answer((await formOf(c)).get('sql') ?? '', c, app) },
    ];
  }),
  {
    method: 'GET',
    path: '/metrics',
    answer: async (c, { sources: { history, workspace, runtime } }) => {
      const text = await history.with((reader) => metrics(reader, workspace, runtime.now()));
      return c.body(text, 200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' });
    },
  },
  { method: 'GET', path: '/reports/:project/:file', answer: report },
  { method: 'POST', path: '/mcp', answer: (c, { mcp }) => mcp(c.req.raw, visitOf(c)) },
  { method: 'POST', path: '/agents', answer: onAgents },
  { method: 'POST', path: '/ask', answer: onAsk },
];

const addressOf = (c: WebContext): URL => new URL(c.req.url);

/** Who requests a page, with a signal that aborts when they no longer wait for the response. */
function visitOf(c: WebContext): Visit {
  const left = new AbortController();
  // A page asks several queries, which all end with it.
  setMaxListeners(0, left.signal);
  c.env.outgoing.once('close', () => {
    left.abort();
  });
  const visitor = c.get('visitor');
  return { visitor, client: visitor.client, signal: left.signal };
}

const MAX_FORM_BYTES = 256 * 1024;

/** The fields of a form. Throws an `HTTPException` (413) if it is too large. */
export async function formOf({ env }: WebContext): Promise<URLSearchParams> {
  const text = await bodyWithin(MAX_FORM_BYTES, env.incoming);
  if (text === undefined) throw new HTTPException(413, { message: 'The form is too large.' });
  return new URLSearchParams(text);
}

/** What a person typed in a form. */
export const typedIn = (form: URLSearchParams): string =>
  ['instruction', 'text', 'sql'].map((name) => form.get(name) ?? '').find((text) => text !== '') ?? '';

const asset = (c: WebContext, text: string, type: string): Response =>
  c.body(text, 200, { 'Cache-Control': FOREVER, 'Content-Type': `${type}; charset=utf-8` });

/** The HTML of a page; `extra` overrides what its template shows. */
export async function pageOf(
  app: App,
  address: URL,
  visit: Visit,
  reader: PublishedReader,
  extra: object = {},
) {
  const { access, frame, queue, sources } = app;
  const found = PAGES.find(({ path }) => path === address.pathname);
  if (found === undefined) throw new HTTPException(404, { message: 'There is no such page.' });
  const request = await requestOf(address, visit, reader, queue, sources);
  const { query: asked, range = null, visitor, project } = request;
  const { template = found.template, ...model } = (await found.model(request)) as { template?: string };
  return frame.page(template, found.title, address, {
    asked,
    range,
    project: { ...project, siteUrl: project.siteUrl ?? null },
    nothingLoaded: range === null,
    signOut: access.hasSessions,
    actionToken: visitor.isEditor ? access.actionToken : '',
    formId: randomUUID(),
    ...model,
    ...extra,
  });
}

function shown(
  c: WebContext,
  app: App,
  address: URL,
  extra?: object,
  status: 200 | 409 = 200,
): Promise<Response> {
  const visit = visitOf(c);
  return app.sources.history.with(
    async (reader) => c.html(await pageOf(app, address, visit, reader, extra), status),
    visit,
  );
}

function csvOfPages(c: WebContext, { sources, queue }: App): Promise<Response> {
  const visit = visitOf(c);
  return sources.history.with(async (reader) => {
    const { range, ...request } = await requestOf(addressOf(c), visit, reader, queue, sources);
    if (range === undefined)
      throw new HTTPException(404, { message: `Nothing is loaded for ${request.project.name} yet.` });
    return fileOf(
      c,
      await pagesCsv({ ...request, range }),
      'text/csv; charset=utf-8',
      `pages-${range.first}-${range.last}.csv`,
    );
  }, visit);
}

const fileOf = (c: WebContext, content: string | ReadableStream, type: string, name: string): Response =>
  c.body(content, 200, { 'Content-Type': type, 'Content-Disposition': `attachment; filename="${name}"` });

async function download(
  c: WebContext,
  { sources }: App,
  sql: string,
  name: (typeof FORMATS)[number]['name'],
  type: string,
) {
  const answer = await sources.questions.file(sql, name, visitOf(c));
  return fileOf(c, Readable.toWeb(answer) as ReadableStream, type, `answer.${name}`);
}

async function report(c: WebContext, { sources, frame, problem }: App): Promise<Response> {
  // Still encoded, as in the list of rendered pages.
  const href = addressOf(c).pathname.slice('/reports/'.length);
  const found = await renderedReport(sources.workspace, href, (links) => frame.fill('report-bar', links));
  if (found === undefined) return problem(c, 404, 'There is no such report.');
  return c.html(found.html, 200, { 'Content-Security-Policy': found.policy });
}

const OUTDATED =
  'This form is out of date, because readership serve was restarted. Nothing was done or sent yet.';

/** Whether a form may change something. Throws an `HTTPException` if its sender may not. */
function isCurrent(c: WebContext, { access }: App, form: URLSearchParams): boolean {
  if (!c.get('visitor').isEditor)
    throw new HTTPException(403, { message: 'You have read-only access. Nothing was changed.' });
  return access.isActionToken(form.get('token') ?? '');
}

/** The address of a page about the project of a form. */
const back = (c: WebContext, path: string, form: URLSearchParams, fields: Record<string, string> = {}): URL =>
  new URL(
    `${path}?${new URLSearchParams({ project: form.get('project') ?? '', ...fields }).toString()}`,
    c.req.url,
  );

/** Queues an action. A form from before a restart is shown again, with what was typed in it. */
async function onAgents(c: WebContext, app: App): Promise<Response> {
  const form = await formOf(c);
  const address = back(c, '/agents', form);
  if (!isCurrent(c, app, form)) return shown(c, app, address, { draft: draftOf(form, OUTDATED) }, 409);
  app.queue.add(actionOf(form), form);
  return c.redirect(address.pathname + address.search, 303);
}

/** In characters, percent-encoded: what every browser and proxy accepts as part of an address. */
const LONGEST_ADDRESS = 4_000;

/** Runs SQL, which has an address of its own unless it is long, or saves or deletes a question. */
async function onAsk(c: WebContext, app: App): Promise<Response> {
  const form = await formOf(c);
  const sql = form.get('sql') ?? '';
  const isRun = !form.has('action');
  if (!isRun && isCurrent(c, app, form)) {
    const { pathname, search } = back(c, '/ask', form, await app.sources.saved.change(form));
    return c.redirect(pathname + search, 303);
  }
  const address = back(c, '/ask', form, { sql });
  if (!isRun) return shown(c, app, address, { failure: OUTDATED.replace('done or sent', 'saved') }, 409);
  if (sql.trim() === '') throw new ConfigurationError('The query is empty.');
  return address.search.length <= LONGEST_ADDRESS
    ? c.redirect(address.pathname + address.search, 303)
    : shown(c, app, address);
}
