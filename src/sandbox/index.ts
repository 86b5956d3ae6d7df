import { Hono } from 'hono';
import { LIMITS } from '../api/schema.js';
import { addDays, type Day, dayOf, startOfDay } from '../day.js';
import { messageOf } from '../errors.js';
import { inUrl, listen } from '../http-server.js';
import { access, createRequestLog, ownHost, withBody } from './access.js';
import { createAgents, DEFAULT_OUTCOMES, pathOf, reviewAt } from './agents.js';
import { createSwitchboard, faults, faultSchema, type Operation, type SandboxEnv } from './faults.js';
import { type JobOutcome, SANDBOX, StateStore } from './state.js';
import { createTraffic } from './traffic/traffic.js';
import { getViews } from './views.js';

export interface SandboxOptions {
  /** The clock for traffic, late data, jobs and limits. */
  readonly now: () => Date;
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
  /** The first day with data. By default the Monday 26 weeks before this week's. */
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
  /** Called for each request as it arrives, with its path and query, before faults apply. */
  readonly onRequest?: (operation: Operation, url: string) => void;
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
  const state = new StateStore(options.stateFile, { version: 1, seed, firstDay, jobs: [] });
  // A page improves with its first merge: a later one must not change the days in between.
  const improvements = () =>
    new Map(
      state
        .read()
        .jobs.flatMap((job) => {
          const [path, { mergedAt }] = [pathOf(job), reviewAt(job)];
          return path === undefined || mergedAt === null ? [] : [[path, dayOf(mergedAt)] as const];
        })
        .reverse(),
    );
  const traffic = createTraffic({ ...state.read(), pages: settings.pages }, improvements);
  const agents = createAgents({ ...settings, state });
  const log = createRequestLog(options.onRequest ?? (() => undefined));
  const switchboard = createSwitchboard();
  const closing = new AbortController();
  const app = new Hono<SandboxEnv>();

  app.use(async (c, next) => {
    c.env.outgoing.setHeader('date', now().toUTCString());
    await next();
  });
  app.use(ownHost(host));
  // Faults apply before the key is checked, like those of a proxy.
  const guards = (operation: Operation, scope: 'read' | 'write') =>
    [
      log.logged(operation),
      faults(operation, switchboard, now, closing.signal),
      access(settings, scope),
    ] as const;
  const jobs = '/v2/agent/:projectId/job';
  app.post(jobs, ...guards('create', 'write'), agents.create);
  app.post(`${jobs}/:id/message`, ...guards('message', 'write'), agents.message);
  app.get(`${jobs}/:id`, ...guards('job', 'read'), agents.get);
  const views = getViews(traffic, now, settings.viewsPerHour);
  app.get('/v1/analytics/:projectId/views', ...guards('views', 'read'), views);

  // Outside the API, without a key: the requests, the jobs with their prompts, the pull requests as GitHub shows them,
  // and the active faults.
  app.get('/_sandbox/requests', (c) => c.json(log.summary()));
  app.get('/_sandbox/jobs', (c) => c.json({ jobs: agents.jobs() }));
  app.get('/_sandbox/code/repos/:owner/:name/pulls/:number', agents.pullRequest);
  app.get('/_sandbox/faults', (c) => c.json({ faults: switchboard.list() }));
  app.put('/_sandbox/faults', (c) =>
    withBody(c, faultSchema.array(), (given) => {
      switchboard.set(given);
      return c.json({ faults: switchboard.list() });
    }),
  );
  app.delete('/_sandbox/faults', (c) => {
    switchboard.set([]);
    return c.json({ faults: [] });
  });

  app.notFound((c) => c.json({ error: `No such route: ${c.req.method} ${c.req.path}` }, 404));
  app.onError((error, c) => c.json({ error: `Sandbox error: ${error.message}` }, 500));
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
    /** The requests so far, all jobs with their prompts, and the pages that merged jobs improved. */
    inspect: () => ({ requests: log.summary(), jobs: agents.jobs(), improvements: improvements() }),
    /** Replaces the active faults. Throws a `ZodError` for an invalid one. */
    setFaults: switchboard.set,
    /** Ends promptly, even with open connections. */
    close: async (): Promise<void> => {
      closing.abort();
      await server.close();
    },
  };
}

/** The Monday 26 weeks before the week of `now`: a new sandbox has half a year of full weeks. */
function defaultFirstDay(now: Date): Day {
  const today = dayOf(now);
  const sinceMonday = (startOfDay(today).getUTCDay() + 6) % 7;
  return addDays(today, -sinceMonday - 7 * 26);
}
