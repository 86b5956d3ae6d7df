import type { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { createHash, randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import { ReadershipError } from '../errors.js';
import { withoutDirectories, type Runtime, type Workspace } from '../app/workspace.js';
import type { ServeSettings } from '../config/serve.js';
import { Access, formOf, type WebContext, type WebEnv } from './access.js';
import { actionOf, draftOf, openAnswers, Sending } from './actions.js';
import { agents } from './agents.js';
import { hrefOf, openFrame } from './frame.js';
import { health } from './health.js';
import { reportPage, reports } from './reports.js';
import { openSources, type PageRequest, requestOf, type SiteRequest } from './request.js';

import { overview, page, pages, pagesCsv, section } from './site-pages.js';

/** What the template of a page shows. */
type Model = (request: SiteRequest) => Promise<{ readonly template?: string }>;

const NO_DAYS = {
  template: 'problem',
  words: 'This page shows the days that are loaded, and none is yet.',
};

/** A page about days, once some are loaded. */
const ofDays =
  (model: (request: PageRequest) => Promise<object>): Model =>
  ({ range, ...request }) =>
    range === undefined ? Promise.resolve(NO_DAYS) : model({ ...request, range });

const titled = (path: string, title: string, model: Model, under?: string) => ({ path, title, model, under });

/** The pages, by the title that also names their template, and the page under which the navigation shows them. */
export const PAGES = [
  titled('/', 'Overview', ofDays(overview)),
  titled('/pages', 'Pages', ofDays(pages)),
  titled('/section', 'Section', ofDays(section), '/pages'),
  titled('/page', 'Page', ofDays(page), '/pages'),
  titled('/agents', 'Agents', agents),
  titled('/reports', 'Reports', reports),
  titled('/health', 'Health', health),
];

export interface WebOptions {
  readonly workspace: Workspace;
  readonly runtime: Runtime;
  readonly settings: ServeSettings;
  /** Called with errors that are bugs, or that only the owner can understand. */
  readonly onError: (words: string) => void;
}

/** What the routes answer with. */
export type App = Awaited<ReturnType<typeof openApp>>;

export async function openApp(options: WebOptions) {
  const { workspace, runtime, settings, onError } = options;
  const frame = await openFrame(workspace, PAGES, { signOut: settings.auth === 'password' });
  const sources = openSources(workspace, runtime);
  const access = new Access(settings, frame.fill, workspace.dataDir);
  return {
    sources,
    frame,
    access,
    sending: new Sending(workspace, runtime, onError),
    answers: openAnswers(),
    /** A page that says why there is no other. */
    problem: async (c: WebContext, status: ContentfulStatusCode, words: string): Promise<Response> => {
      // Only visitors may see the names of projects.
      if ((c.var as Partial<WebEnv['Variables']>).visitor === undefined)
        return access.refuse(c, status, words);
      const shown = { words: withoutDirectories(workspace, words) };
      return c.html(frame.page('problem', STATUS_CODES[status] ?? '', addressOf(c), shown), status);
    },
  };
}

export function addRoutes(hono: Hono<WebEnv>, app: App): void {
  const { access, frame } = app;
  for (const { path } of PAGES) hono.get(path, (c) => shown(c, app, addressOf(c), answerIn(c, app)));
  hono.get('/app.css', (c) => asset(c, frame.assets.css, 'text/css'));
  hono.get('/app.js', (c) => asset(c, frame.assets.js, 'text/javascript'));
  hono.get('/login', (c) => c.redirect('/', 303));
  hono.post('/login', async (c) => access.login(c, (await formOf(c)).get('password') ?? ''));
  hono.post('/logout', (c) => access.logout(c));
  hono.get('/pages.csv', (c) => csvOfPages(c, app));
  hono.get('/reports/:project/:file', (c) => report(c, app));
  hono.post('/agents', (c) => onAgents(c, app));
}

const addressOf = (c: WebContext): URL => new URL(c.req.url);

/** Who requests a page, with a signal that aborts when they no longer wait for the response. */
function visitOf(c: WebContext) {
  const left = new AbortController();
  c.env.outgoing.once('close', () => left.abort());
  return { ...c.get('visitor'), signal: left.signal };
}

/** What was done when the form was sent whose answer this page is. */
const answerIn = (c: WebContext, { answers }: App) => ({
  answer: answers.get(c.req.query('done') ?? '') ?? null,
});

const asset = (c: WebContext, text: string, type: string): Response => {
  c.header('Cache-Control', 'public, max-age=31536000, immutable');
  return c.body(text, 200, { 'Content-Type': `${type}; charset=utf-8` });
};

/** The HTML of a page; `extra` overrides what its template shows. */
export async function pageOf({ access, frame }: App, address: URL, request: SiteRequest, extra: object = {}) {
  const found = PAGES.find(({ path }) => path === address.pathname);
  if (found === undefined) throw new HTTPException(404, { message: 'There is no such page.' });
  const { query: parameters, range = null, isEditor } = request;
  const { template = found.title.toLowerCase(), ...model } = await found.model(request);
  return frame.page(template, found.title, address, {
    parameters,
    range,
    nothingLoaded: range === null,
    sortsByGain: false,
    isEditor,
    actionToken: isEditor ? access.actionToken : '',
    formId: randomUUID(),
    ...model,
    ...extra,
  });
}

type Handler = (request: SiteRequest) => Promise<Response>;

/** Answers a request about a project from its history. */
function answered(c: WebContext, app: App, address: URL, answer: Handler): Promise<Response> {
  const visit = visitOf(c);
  return app.sources.history.with(visit, async (reader) =>
    answer(await requestOf(address, visit, reader, app)),
  );
}

const shown = (c: WebContext, app: App, address: URL, extra?: object, status: 200 | 409 = 200) =>
  answered(c, app, address, async (request) => c.html(await pageOf(app, address, request, extra), status));

function csvOfPages(c: WebContext, app: App): Promise<Response> {
  return answered(c, app, addressOf(c), async ({ range, ...request }) => {
    if (range === undefined)
      throw new HTTPException(404, { message: `Nothing is loaded for ${request.project.name} yet.` });
    return c.body(await pagesCsv({ ...request, range }), 200, {
      'Content-Type': 'text/csv; charset=utf-8',
      'Content-Disposition': `attachment; filename="pages-${range.first}-${range.last}.csv"`,
    });
  });
}

async function report(c: WebContext, { sources, frame, problem }: App): Promise<Response> {
  // Still encoded, as in the list of reports. Folders are named by encoded ids.
  const href = addressOf(c).pathname.slice('/reports/'.length);
  const found = await reportPage(sources, visitOf(c), href, (links) => frame.fill('report-bar', links));
  if (found === undefined) return problem(c, 404, 'There is no such report.');
  return c.html(found.html, 200, { 'Content-Security-Policy': found.policy });
}

/** What a decision about a page is told apart by: where it was shown, and the page. */
const DECISION = ['form', 'project', 'path'];

/** The same if the same form is sent again. A page that was shown once is approved or skipped once: the first click counts. */
function formDigest(form: URLSearchParams): string {
  const isDecision = form.has('form') && ['approve', 'skip'].includes(form.get('action') ?? '');
  const counts = (name: string) => (isDecision ? DECISION.includes(name) : name !== 'token');
  const fields = new URLSearchParams([...form].filter(([name]) => counts(name)));
  return createHash('sha256').update(fields.toString()).digest('hex').slice(0, 16);
}

/** The page that a form was on, which shows what was done. */
function pageWith(form: URLSearchParams, { req }: WebContext): URL {
  const project = form.get('project') ?? '';
  const isPage = form.get('from') === 'page';
  const parameters = isPage ? { project, path: form.get('path') ?? '' } : { project };
  return new URL(`${isPage ? '/page' : '/agents'}?${new URLSearchParams(parameters).toString()}`, req.url);
}

/**
 * Carries out an action, and shows its result. A form from before a restart, or one that was refused, is shown again,
 * with what was typed in it.
 */
async function onAgents(c: WebContext, app: App): Promise<Response> {
  if (!c.get('visitor').isEditor)
    throw new HTTPException(403, { message: 'You have read-only access. Nothing was changed.' });
  const form = await formOf(c);
  const page = pageWith(form, c);
  const again = (why: string) => {
    const agentsPage = new URL(`/agents${page.search}`, page);
    return shown(c, app, agentsPage, { draft: draftOf(form, why) }, 409);
  };
  if (!app.access.isActionToken(form.get('token') ?? ''))
    return again(
      'This form is out of date, because readership serve was restarted. Nothing was done or sent yet.',
    );
  const { words, work } = actionOf(form);
  const id = formDigest(form);
  try {
    await answered(c, app, page, async (request) => {
      const context = async () => {
        const { answer, sends = false } = await work(request);
        if (sends) app.sending.begin(request.project);
        return { words, answer: withoutDirectories(request.workspace, answer) };
      };
      await app.answers.fetch(id, { context });
      return c.body(null);
    });
  } catch (error) {
    if (!(error instanceof ReadershipError)) throw error;
    return again(withoutDirectories(app.sources.workspace, error.message));
  }
  page.searchParams.set('done', id);
  return c.redirect(hrefOf(page), 303);
}
