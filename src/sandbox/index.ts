import { Hono } from 'hono';
import { z } from 'zod';
import { LIMITS, type ViewsResponse } from '../api/schema.js';
import { addDays, type Day, dayOf, parseDay, startOfDay } from '../day.js';
import { messageOf } from '../errors.js';
import { inUrl, listen } from '../http-server.js';
import {
  access,
  invalid,
  type Middleware,
  type PageOfViews,
  type SandboxContext,
  type SandboxEnv,
  type ServedOperation,
  tooMany,
} from './access.js';
import { createAgents, DEFAULT_OUTCOMES, getPullRequest, pathOf, reviewAt } from './agents.js';
import { type JobOutcome, SANDBOX, StateStore, type StoredJob } from './state.js';
import { createTraffic, type Traffic } from './traffic/traffic.js';

export interface SandboxOptions {
  /** The clock for traffic, late data, jobs and limits. */
  readonly now: () => Date;
  /** What a new sandbox remembers of earlier jobs. */
  readonly jobs?: readonly StoredJob[];
  /** Stores the seed, first day and jobs between processes; without it, they are lost with this one. */
  readonly stateFile?: string;
  readonly host?: string;
  /** By default 0, any free port. */
  readonly port?: number;
  readonly apiKey?: string;
  readonly projectId?: string;
  /**
   * Determines the traffic together with `firstDay`. If there is a state file, its values are used
   * for both.
   */
  readonly seed?: number;
  /** The first day with data. By default the Monday 30 weeks before this week's. */
  readonly firstDay?: Day;
  /** Approximate number of pages half a year after the first day. */
  readonly pages?: number;
  /** The maximum time an agent works on a prompt; the minimum is half of it. */
  readonly jobSeconds?: number;
  /** How jobs end, in turn. */
  readonly outcomes?: readonly JobOutcome[];
  /** Prompts accepted in a rolling hour, creates and messages together. */
  readonly usesPerHour?: number;
  readonly viewsPerHour?: number | 'unlimited';
  /** What tests put around every operation, to watch it or to simulate failures. It applies before the key is checked, like a proxy. */
  readonly around?: (operation: ServedOperation) => Middleware;
}

/** A running sandbox: its address and credentials, and what tests can do with it. */
export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/**
 * Serves the whole API over HTTP on this machine, with realistic traffic and agents that finish
 * within seconds. Rejects if the port is taken or the state file cannot be used.
 */
export async function startSandbox(options: SandboxOptions) {
  const settings = {
    ...SANDBOX,
    port: 0,
    outcomes: DEFAULT_OUTCOMES,
    usesPerHour: LIMITS.usesPerHour,
    viewsPerHour: 'unlimited' as const,
    firstDay: defaultFirstDay(options.now()),
    ...options,
  };
  const { now, apiKey, projectId, host, port, seed, firstDay } = settings;
  const state = new StateStore(options.stateFile, {
    version: 1,
    seed,
    firstDay,
    jobs: [...(options.jobs ?? [])],
  });
  const improvements = () => improvementsBy(state.read().jobs);
  const traffic = createTraffic({ ...state.read(), pages: settings.pages }, improvements);
  const agents = createAgents({ ...settings, state });
  const app = withoutRoutes(now);
  const around = options.around ?? (() => (_, next) => next());
  const checks = (operation: ServedOperation, scope: 'read' | 'write') =>
    [around(operation), access(settings, scope)] as const;
  const jobs = '/v2/agent/:projectId/job';
  app.post(jobs, ...checks('create', 'write'), agents.create);
  app.post(`${jobs}/:id/message`, ...checks('message', 'write'), agents.message);
  app.get(`${jobs}/:id`, ...checks('job', 'read'), agents.get);
  const views = getViews(traffic, now, settings.viewsPerHour);
  app.get('/v1/analytics/:projectId/views', ...checks('views', 'read'), views);

  // Outside the API, without a key: the pull requests as GitHub shows them.
  app.get('/_sandbox/code/repos/:owner/:name/pulls/:number', getPullRequest(state, now));
  const server = await listen({
    host,
    port,
    fetch: app.fetch,
    errorHandler: (error) => Response.json({ error: messageOf(error) }, { status: 400 }),
  });
  return {
    apiKey,
    projectId,
    baseUrl: `http://${inUrl(host)}:${server.port}`,
    firstDay: state.read().firstDay,
    /** All jobs with their prompts, and the pages that merged jobs improved. */
    inspect: () => ({ jobs: agents.jobs(), improvements: improvements() }),
    /** Ends promptly, even with open connections. */
    close: () => server.close(),
  };
}

/** An app that answers with the time of the sandbox, and has no routes yet. */
function withoutRoutes(now: () => Date) {
  const app = new Hono<SandboxEnv>();
  app.use(async (c, next) => {
    c.env.outgoing.setHeader('date', now().toUTCString());
    await next();
  });
  app.notFound((c) => c.json({ error: `No such route: ${c.req.method} ${c.req.path}` }, 404));
  app.onError((error, c) => c.json({ error: `Sandbox error: ${error.message}` }, 500));
  return app;
}

/** The pages that merged jobs improved, and the days. A page improves with its first merge: a later one must not change the days in between. */
const improvementsBy = (jobs: readonly StoredJob[]): Map<string, Day> =>
  new Map(
    jobs
      .flatMap((job) => {
        const [path, { mergedAt }] = [pathOf(job), reviewAt(job)];
        return path === undefined || mergedAt === null ? [] : [[path, dayOf(mergedAt)] as const];
      })
      .sort(([, one], [, other]) => (one < other ? 1 : -1)),
  );

/** The Monday 30 weeks before the week of `now`: thirteen weeks and those before are after the change of counting. */
export function defaultFirstDay(now: Date): Day {
  const today = dayOf(now);
  const sinceMonday = (startOfDay(today).getUTCDay() + 6) % 7;
  return addDays(today, -sinceMonday - 7 * 30);
}

const dateTime = z.iso.datetime({ offset: true, local: true });
const ZONE = /(Z|[+-]\d{2}:\d{2})$/;

/** A day, or a date-time, which counts as its UTC day. */
const date = (name: string) =>
  z.string().transform((text, context): Day => {
    const day = parseDay(text);
    if (day !== undefined) return day;
    if (dateTime.safeParse(text).success) return dayOf(new Date(ZONE.test(text) ? text : `${text}Z`));
    context.addIssue({ code: 'custom', message: `${name} must be a date, YYYY-MM-DD or ISO 8601: ${text}` });
    return z.NEVER;
  });

const integer = (name: string, min: number, max: number) => {
  const error = `${name} must be an integer of at least ${min}${max < Infinity ? ` and at most ${max}` : ''}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, { error })
    .transform(Number)
    .refine((number) => number >= min && number <= max, { error });
};

const { min, max, default: defaultLimit } = LIMITS.viewsPage;

/** The query of the views export (4.4). `dateTo` is exclusive. A range may be empty but not reversed. */
const querySchema = z
  .object({
    dateFrom: date('dateFrom').optional(),
    dateTo: date('dateTo').optional(),
    limit: integer('limit', min, max).default(defaultLimit),
    offset: integer('offset', 0, Infinity).default(0),
  })
  .refine(({ dateFrom, dateTo }) => dateFrom === undefined || dateTo === undefined || dateFrom <= dateTo, {
    error: 'dateFrom must not be after dateTo',
  });

/** One page: the range's totals, and its rows from `offset` on. */
export const pageOfRange: PageOfViews = ({ totals, rows }, { limit, offset }) => ({
  totals,
  views: rows.slice(offset, offset + limit),
  hasMore: offset + limit < rows.length,
});

/** The route of the views export (4.4). Every request with a valid key counts, even an invalid one. */
function getViews(traffic: Traffic, now: () => Date, viewsPerHour: number | 'unlimited') {
  const uses: Date[] = [];
  return (c: SandboxContext): Response => {
    if (viewsPerHour !== 'unlimited') {
      const refusal = tooMany(c, uses, viewsPerHour, now());
      if (refusal !== undefined) return refusal;
      uses.push(now());
    }
    const parsed = querySchema.safeParse(c.req.query());
    if (!parsed.success) return invalid(c, parsed.error);
    const { dateFrom, dateTo, ...window } = parsed.data;
    const range = traffic.viewsIn({ from: dateFrom, to: dateTo }, now());
    return c.json<ViewsResponse>((c.get('pageOfRange') ?? pageOfRange)(range, window));
  };
}
