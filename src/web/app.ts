import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { Readable } from 'node:stream';
import pLimit from 'p-limit';
import type { Runtime, Workspace, WorkspaceOptions } from '../app/workspace.js';
import type { ServeSettings } from '../config/serve.js';
import { ConfigurationError, messageOf, ReadershipError } from '../errors.js';
import { type Access, openAccess, pathOf, type Refuse, type WebContext, type WebEnv } from './access.js';
import { Actions, type InTurn } from './actions.js';
import { type Format, FORMATS, completions, Questions } from './ask.js';
import { type Asking, askWith, parseAsked, rangeOf, type Row } from './asked.js';
import { version } from '../files.js';
import { formatAnswer } from '../sql/formats.js';
import { colorsOf } from '../terminal/output.js';
import { openFrame } from './frame.js';
import type { WebHistory } from './history.js';
import { metrics, renderedReport } from './health.js';
import { mcpHandler } from './mcp.js';
import { type Page, PAGES } from './pages.js';

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

const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  // With none at all, browsers would not say where the forms of this site come from.
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};

const TITLES = {
  400: 'Not understood',
  403: 'Not allowed',
  404: 'Not found',
  405: 'Not possible',
  503: 'Not now',
} as const;
const MAX_BODY_BYTES = 256 * 1024;

/** What each address answers, and who is let in. */
export async function openApp(
  given: WebOptions,
  history: WebHistory,
): Promise<{ readonly app: Hono<WebEnv>; readonly access: Access }> {
  const { workspace, options, runtime, settings, onError } = given;
  const { projects, directory } = workspace;
  const frame = await openFrame(directory);
  const oneByOne = pLimit(1);
  const inTurn: InTurn = given.inTurn ?? ((work) => oneByOne(work));
  const actions = new Actions(workspace, runtime, inTurn);
  const mcp = mcpHandler({ workspace, options, runtime }, version);
  const questions = new Questions(workspace, runtime, options);

  const frameOf = (c: WebContext, title: string) => {
    const asked = new URL(c.req.url);
    const { search, searchParams } = asked;
    const pathname = pathOf(asked);
    const project = projects.find(({ id }) => id === searchParams.get('project')) ?? projects[0];
    return {
      ...{
        title,
        address: pathname + search,
        project: project === undefined ? null : { ...project, siteUrl: project.siteUrl ?? null },
        projects,
      },
      navigation: PAGES.filter(({ isInNavigation }) => isInNavigation).map(({ path, title: name }) => ({
        ...{ path, name, isCurrent: path === '/' ? pathname === path : pathname.startsWith(path) },
      })),
    };
  };
  const refuse: Refuse = (c, status, words, login = false) =>
    c.html(frame.fill('web/refused', { title: 'Readership', words, login }), status);
  const problem = (c: WebContext, status: keyof typeof TITLES, words: string) =>
    c.html(frame.fill('web/problem', { ...frameOf(c, TITLES[status]), words }), status);

  const access = openAccess(settings, refuse);
  const app = new Hono<WebEnv>();
  app.use(async (c, next) => {
    for (const [name, value] of Object.entries(HEADERS)) c.header(name, value);
    await next();
  });
  // Before the gate: a probe names the server by its address, and has no key.
  app.get('/healthz', (c) => c.text('ok\n'));
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
  app.post('/login', async (c) => {
    const form = await formOf(c);
    return access.login(c, form.get('password') ?? '');
  });

  const answer = (page: Page) => async (c: WebContext) => {
    const asked = parseAsked(c.req.query());
    if ('problem' in asked) return problem(c, 400, asked.problem);
    const project = asked.project === '' ? projects[0] : projects.find(({ id }) => id === asked.project);
    if (project === undefined) return problem(c, 404, `There is no project ${asked.project}.`);
    return history.with(async (reader) => {
      const range = await rangeOf(reader, project.id, asked);
      if (range === undefined)
        return problem(c, 404, `Nothing is loaded for ${project.name} yet: readership export`);
      const rows = askWith(reader, project, asked, range);
      const visitor = c.get('visitor');
      const about = { workspace, now: runtime.now(), visitor, actions, questions, signal: leaving(c) };
      const asking: Asking = { ...about, reader, asked, project, range, rows };
      if (c.req.path.endsWith('.csv') && page.csv !== undefined)
        return c.body(await csvOf(await page.csv(asking)), 200, {
          'Content-Type': 'text/csv; charset=utf-8',
          'Content-Disposition': `attachment; filename="${page.path.slice(1)}-${range.first}-${range.last}.csv"`,
        });
      const model = await page.model(asking);
      return c.html(
        frame.fill(page.template, {
          ...frameOf(c, page.title),
          actionToken: visitor.isEditor ? access.actionToken : '',
          asked,
          range,
          ...model,
        }),
      );
    });
  };
  for (const page of PAGES) {
    app.get(page.path, answer(page));
    if (page.csv !== undefined) app.get(`${page.path}.csv`, answer(page));
  }

  for (const format of Object.keys(FORMATS) as Format[])
    app.get(`/ask.${format}`, async (c) => {
      const asked = parseAsked(c.req.query());
      if ('problem' in asked) return problem(c, 400, asked.problem);
      const answered = await questions.file(asked.sql, format, leaving(c));
      c.header('Content-Type', FORMATS[format]);
      c.header('Content-Disposition', `attachment; filename="answer.${format}"`);
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
  app.post('/mcp', async (c) => {
    const { method, url } = c.req;
    const asked = new Request(url, { method, headers: c.req.header(), body: await bodyOf(c) });
    const answered = await mcp(asked);
    c.header('Content-Type', answered.headers.get('content-type') ?? 'application/json');
    return c.body(await answered.text(), answered.status as ContentfulStatusCode);
  });
  app.post('/agents', async (c) => {
    const form = await formOf(c);
    if (!c.get('visitor').isEditor) return problem(c, 403, 'You may look and ask, but change nothing here.');
    if (!access.isActionToken(form.get('token') ?? ''))
      return problem(
        c,
        403,
        'This form is from before readership serve was started again. Nothing was done: load its page again.',
      );
    const project = form.get('project') ?? '';
    actions.add(project, form);
    return c.redirect(`/agents?${new URLSearchParams({ project }).toString()}`, 303);
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
    if (error instanceof HTTPException) return c.text(error.message, error.status);
    if (error instanceof ConfigurationError) return problem(c, 400, error.message);
    if (error instanceof ReadershipError) return problem(c, 503, error.message);
    onError(error.stack ?? messageOf(error));
    return problem(c, 503, 'This page failed. What went wrong is in the log of readership serve.');
  });
  return { app, access };
}

/** Aborts when the browser no longer waits for the answer. */
function leaving({ env: { outgoing } }: WebContext): AbortSignal {
  const left = new AbortController();
  outgoing.once('close', () => {
    left.abort();
  });
  return left.signal;
}

const formOf = async (c: WebContext): Promise<URLSearchParams> => new URLSearchParams(await bodyOf(c));

/** The body of a request. Throws an `HTTPException` (413) if it is too large. */
async function bodyOf({ env: { incoming } }: WebContext): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming) {
    chunks.push(Buffer.from(chunk as Uint8Array));
    size += chunks.at(-1)?.length ?? 0;
    if (size > MAX_BODY_BYTES) throw new HTTPException(413, { message: 'The form is too large.' });
  }
  return Buffer.concat(chunks).toString();
}

/** Rows as CSV that no spreadsheet runs as formulas. */
async function csvOf(rows: readonly Row[]): Promise<string> {
  const columns = Object.keys(rows[0] ?? {}).map((name) => ({
    name,
    isNumeric: name !== 'path',
    isText: true,
  }));
  const batches = Readable.from([rows.map((row) => columns.map(({ name }) => row[name] ?? null))]);
  const style = { colors: colorsOf(), width: Infinity, maxRows: Infinity, isTerminal: false };
  let text = '';
  for await (const piece of formatAnswer({ columns, batches, unseen: 0 }, 'csv', style)) text += piece;
  return text;
}
