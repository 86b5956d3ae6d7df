import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import pLimit, { type LimitFunction } from 'p-limit';
import type { Runtime, Workspace, WorkspaceOptions } from '../app/workspace.js';
import type { ServeSettings } from '../config/serve.js';
import { bodyWithin } from '../http-server.js';
import { Access, type WebContext, type WebEnv } from './access.js';
import { openFrame, type Place } from './frame.js';
import { mcpHandler } from './mcp.js';
import { ActionQueue } from './queue.js';
import { openSources } from './sources.js';

export interface WebOptions {
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

/** What the routes answer with. */
export type App = Awaited<ReturnType<typeof openApp>>;

const TITLES: Readonly<Record<number, string>> = {
  400: 'Invalid request',
  403: 'Not allowed',
  404: 'Not found',
  405: 'Not possible',
  413: 'Too large',
};

export async function openApp(
  { workspace, options, runtime, settings, onError, inTurn = pLimit(1) }: WebOptions,
  places: readonly Place[],
) {
  const frame = await openFrame(workspace, places);
  const refuse = async (c: WebContext, status: ContentfulStatusCode, words: string, login = false) => {
    // What someone typed before a restart is not lost with their session.
    const typed = c.req.method === 'POST' && status === 401 ? typedIn(await formOf(c)) : '';
    return c.html(frame.fill('refused', { title: 'Readership', words, login, typed }), status);
  };
  const sources = openSources(workspace, options, runtime);
  const access = new Access(settings, refuse);
  return {
    sources,
    frame,
    access,
    queue: new ActionQueue(workspace, runtime, inTurn, onError),
    mcp: mcpHandler(sources),
    /** A page that says why there is no other. */
    problem: async (c: WebContext, status: ContentfulStatusCode, words: string): Promise<Response> => {
      // Only visitors may see the names of projects.
      if ((c.var as Partial<WebEnv['Variables']>).visitor === undefined) return refuse(c, status, words);
      const shown = words.replaceAll(`${workspace.dataDir}/`, '');
      const model = { words: shown, signOut: access.hasSessions, nothingLoaded: false };
      const title = TITLES[status] ?? 'Not available';
      return c.html(frame.page('problem', title, new URL(c.req.url), model), status);
    },
  };
}

const MAX_FORM_BYTES = 256 * 1024;

/** The fields of a form. Throws an `HTTPException` (413) if it is too large. */
export async function formOf({ env }: WebContext): Promise<URLSearchParams> {
  const text = await bodyWithin(MAX_FORM_BYTES, env.incoming);
  if (text === undefined) throw new HTTPException(413, { message: 'The form is too large.' });
  return new URLSearchParams(text);
}

/** What a person typed in a form. */
const typedIn = (form: URLSearchParams): string =>
  ['instruction', 'text', 'sql'].map((name) => form.get(name) ?? '').find((text) => text !== '') ?? '';
