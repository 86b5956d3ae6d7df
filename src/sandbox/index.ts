import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { LIMITS } from '../api/schema.js';
import { addDays, type Day, dayOf, startOfDay } from '../day.js';
import { messageOf } from '../errors.js';
import { access, type Keys, ownHost, type SandboxEnv } from './access.js';
import { type Agents, createAgents } from './agents.js';
import type { Fault, FaultInput, Operation } from './faults/schema.js';
import { createSwitchboard, faults, type FaultOptions } from './faults/strike.js';
import { createRequestLog, inspection, type RequestLog, type RequestSummary } from './inspection.js';
import { SANDBOX } from './defaults.js';
import { DEFAULT_OUTCOMES, fileState, type JobOutcome, memoryState, type StoredJob } from './jobs.js';
import { createTraffic } from './traffic/traffic.js';
import { getViews, type ViewsOptions } from './views.js';

export interface SandboxOptions {
  /** The clock for traffic, late data, jobs and limits. */
  readonly now: () => Date;
  /** Stores the seed, first day and jobs between processes; without it, they are lost with this one. */
  readonly stateFile?: string | undefined;
  readonly host?: string | undefined;
  /** By default 0, any free port. */
  readonly port?: number | undefined;
  readonly apiKey?: string | undefined;
  readonly readOnlyKey?: string | undefined;
  readonly projectId?: string | undefined;
  readonly projectName?: string | undefined;
  /** Determines the traffic together with `firstDay`. If there is a state file, its values are used for both. */
  readonly seed?: number | undefined;
  /** The first day with data. By default the Monday 26 weeks before this week's. */
  readonly firstDay?: Day | undefined;
  /** Approximate number of pages half a year after the first day. */
  readonly pages?: number | undefined;
  /** The maximum time an agent works on a prompt; the minimum is half of it. */
  readonly jobSeconds?: number | undefined;
  /** How jobs end, in turn. */
  readonly outcomes?: readonly JobOutcome[] | undefined;
  /** Prompts accepted in a rolling hour, creates and messages together. */
  readonly usesPerHour?: number | undefined;
  readonly viewsPerHour?: number | 'unlimited' | undefined;
  /** Called for each request as it arrives, before faults apply. */
  readonly onRequest?: ((operation: Operation) => void) | undefined;
}

/** A running sandbox: its address and credentials, and what tests can do with it. */
export interface Sandbox extends Keys {
  readonly baseUrl: string;
  readonly projectName: string;
  readonly firstDay: Day;
  /** The requests so far, and all jobs with their prompts. Also served under `/_sandbox/`. */
  readonly inspect: () => { requests: RequestSummary; jobs: readonly StoredJob[] };
  /** Replaces the active faults. Throws a `ZodError` for an invalid one. */
  readonly setFaults: (faults: readonly FaultInput[]) => void;
  readonly faults: () => readonly Fault[];
  /** Ends promptly, even with open connections. */
  readonly close: () => Promise<void>;
}

/**
 * Serves the whole API over HTTP on this machine, with realistic traffic and agents that finish within
 * seconds. Rejects if the port is taken or the state file cannot be used.
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { now, apiKey = SANDBOX.apiKey, readOnlyKey = SANDBOX.readOnlyKey } = options;
  const { projectId = SANDBOX.projectId, host = SANDBOX.host, seed = SANDBOX.seed } = options;
  const keys = { apiKey, readOnlyKey, projectId };
  const initial = {
    version: 1 as const,
    seed,
    firstDay: options.firstDay ?? defaultFirstDay(now()),
    jobs: [],
  };
  const state =
    options.stateFile === undefined ? memoryState(initial) : fileState(options.stateFile, initial);
  const remembered = state.read();
  const { outcomes = DEFAULT_OUTCOMES, jobSeconds = SANDBOX.jobSeconds } = options;
  const agents = createAgents({
    state,
    now,
    outcomes,
    jobSeconds,
    usesPerHour: options.usesPerHour ?? LIMITS.usesPerHour,
  });
  const log = createRequestLog(options.onRequest);
  const switchboard = createSwitchboard();
  const closing = new AbortController();
  const app = createApp({
    ...keys,
    host: inUrl(host),
    traffic: createTraffic({ ...remembered, pages: options.pages ?? SANDBOX.pages }),
    agents,
    log,
    switchboard,
    now,
    viewsPerHour: options.viewsPerHour ?? 'unlimited',
    closing: closing.signal,
  });
  const server = await listen(app, { host, port: options.port ?? 0, now });
  return {
    ...keys,
    baseUrl: server.baseUrl,
    projectName: options.projectName ?? SANDBOX.projectName,
    firstDay: remembered.firstDay,
    inspect: () => ({ requests: log.summary(), jobs: agents.jobs() }),
    setFaults: switchboard.set,
    faults: switchboard.list,
    close: async () => {
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

interface AppOptions extends Keys, ViewsOptions, FaultOptions {
  /** The host name of its URL. */
  readonly host: string;
  readonly agents: Agents;
  readonly log: RequestLog;
}

function createApp(options: AppOptions): Hono<SandboxEnv> {
  const { agents, log } = options;
  // Faults apply before the key is checked, like those of a proxy.
  const guards = (operation: Operation, scope: 'read' | 'write') =>
    [log.logged(operation), faults(operation, options), access(options, scope)] as const;

  const app = new Hono<SandboxEnv>();
  const jobs = '/v2/agent/:projectId/job';
  app.use(ownHost(options.host));
  app.post(jobs, ...guards('create', 'write'), agents.create);
  app.post(`${jobs}/:id/message`, ...guards('message', 'write'), agents.message);
  app.get(`${jobs}/:id`, ...guards('job', 'read'), agents.get);
  app.get('/v1/analytics/:projectId/views', ...guards('views', 'read'), getViews(options));
  app.route('/_sandbox', inspection(log, agents, options.switchboard));

  app.notFound((c) => c.json({ error: `No such route: ${c.req.method} ${c.req.path}` }, 404));
  app.onError((error, c) =>
    error instanceof HTTPException
      ? error.getResponse()
      : c.json({ error: `Sandbox error: ${error.message}` }, 500),
  );
  return app;
}

const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** `close` stops at once: idle, open and hanging connections are cut. Rejects if the port is taken. */
async function listen(
  app: Hono<SandboxEnv>,
  { host, port, now }: { readonly host: string; readonly port: number; readonly now: () => Date },
) {
  const listener = getRequestListener(app.fetch, {
    // Does not replace the global Request and Response, because the sandbox also runs inside tests and commands.
    overrideGlobalObjects: false,
    hostname: host,
    errorHandler: (error) => Response.json({ error: messageOf(error) }, { status: 400 }),
  });
  const server = createServer((incoming, outgoing) => {
    outgoing.setHeader('date', now().toUTCString());
    void listener(incoming, outgoing);
  });
  server.listen(port, host);
  await once(server, 'listening');
  const address = server.address();
  const bound = typeof address === 'object' && address !== null ? address.port : port;
  return {
    baseUrl: `http://${inUrl(host)}:${bound}`,
    close: async (): Promise<void> => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
