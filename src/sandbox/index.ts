import { getRequestListener } from '@hono/node-server';
import type { Day } from '../day.js';
import { messageOf } from '../errors.js';
import { LIMITS } from '../api/schema.js';
import { createApp } from './app.js';
import { SANDBOX } from './defaults.js';
import type { Fault, FaultInput, Operation } from './faults/schema.js';
import { createSwitchboard } from './faults/switchboard.js';
import { defaultFirstDay } from './first-day.js';
import { createAgency } from './jobs/agency.js';
import { DEFAULT_OUTCOMES, type JobOutcome, type StoredJob } from './jobs/lifecycle.js';
import { createRequestLog, type RequestSummary } from './request-log.js';
import { inUrl, listen } from './server.js';
import { fileState, memoryState } from './state.js';
import { createTraffic } from './traffic/traffic.js';

export { SANDBOX } from './defaults.js';

export interface SandboxOptions {
  /** The clock: traffic, late data, jobs and limits all follow it. */
  readonly now: () => Date;
  /** Remembers seed, first day and jobs between processes. Without it they end with this one. */
  readonly stateFile?: string | undefined;
  readonly host?: string | undefined;
  /** 0, the default, takes any free port. */
  readonly port?: number | undefined;
  readonly apiKey?: string | undefined;
  readonly readOnlyKey?: string | undefined;
  readonly projectId?: string | undefined;
  readonly projectName?: string | undefined;
  /** Decides the traffic, with `firstDay`. Both hold at the first start; after it what the state file says holds. */
  readonly seed?: number | undefined;
  /** Before it there is no data. The Monday 26 weeks before this one by default. */
  readonly firstDay?: Day | undefined;
  /** Pages the site has half a year after its first day, roughly. */
  readonly pages?: number | undefined;
  /** The longest an agent works on a prompt; the shortest is half of it. */
  readonly jobSeconds?: number | undefined;
  /** How jobs end, in turn. */
  readonly outcomes?: readonly JobOutcome[] | undefined;
  /** Prompts taken in a rolling hour, creates and messages together. */
  readonly usesPerHour?: number | undefined;
  readonly viewsPerHour?: number | 'unlimited' | undefined;
  /** Told of each request as it arrives, before a fault strikes it. */
  readonly onRequest?: ((operation: Operation) => void) | undefined;
}

/** A running sandbox: where it is, how to get in, and what tests may ask of it. */
export interface Sandbox {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly readOnlyKey: string;
  readonly projectId: string;
  readonly projectName: string;
  readonly firstDay: Day;
  /** What was asked of the sandbox so far, and all jobs with their prompts. Also served under `/_sandbox/`. */
  readonly inspect: () => { requests: RequestSummary; jobs: readonly StoredJob[] };
  /** Replaces the faults in force; none for an empty list. Throws a `ZodError` for a fault that is none. */
  readonly setFaults: (faults: readonly FaultInput[]) => void;
  readonly faults: () => readonly Fault[];
  /** Ends promptly, whatever is still open. */
  readonly close: () => Promise<void>;
}

/**
 * Serves the whole interface over HTTP on this machine, with realistic traffic and agents that finish within seconds.
 * Rejects if the port is taken or the state file cannot be used.
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { now } = options;
  const keys = {
    apiKey: options.apiKey ?? SANDBOX.apiKey,
    readOnlyKey: options.readOnlyKey ?? SANDBOX.readOnlyKey,
    projectId: options.projectId ?? SANDBOX.projectId,
  };
  const seed = options.seed ?? SANDBOX.seed;
  const initial = {
    version: 1 as const,
    seed,
    firstDay: options.firstDay ?? defaultFirstDay(now()),
    jobs: [],
  };
  const state =
    options.stateFile === undefined ? memoryState(initial) : fileState(options.stateFile, initial);
  const remembered = state.read();

  const traffic = createTraffic({ ...remembered, pages: options.pages ?? SANDBOX.pages });
  const agency = createAgency({
    state,
    now,
    outcomes: options.outcomes ?? DEFAULT_OUTCOMES,
    jobSeconds: options.jobSeconds ?? SANDBOX.jobSeconds,
    usesPerHour: options.usesPerHour ?? LIMITS.usesPerHour,
  });
  const log = createRequestLog(options.onRequest);
  const switchboard = createSwitchboard();
  const closing = new AbortController();
  const viewsPerHour = options.viewsPerHour ?? 'unlimited';
  const host = options.host ?? SANDBOX.host;
  const app = createApp({
    ...keys,
    host: inUrl(host),
    traffic,
    agency,
    log,
    switchboard,
    now,
    viewsPerHour,
    closing: closing.signal,
  });
  // The process's own Request and Response stay as they are: the sandbox is a guest in it.
  const listener = getRequestListener(app.fetch, {
    overrideGlobalObjects: false,
    hostname: host,
    errorHandler: (error) => Response.json({ error: messageOf(error) }, { status: 400 }),
  });
  const server = await listen(
    (incoming, outgoing) => void listener(incoming, outgoing),
    host,
    options.port ?? 0,
  );
  return {
    ...keys,
    baseUrl: server.baseUrl,
    projectName: options.projectName ?? SANDBOX.projectName,
    firstDay: remembered.firstDay,
    inspect: () => ({ requests: log.summary(), jobs: agency.jobs() }),
    setFaults: switchboard.set,
    faults: switchboard.list,
    close: async () => {
      closing.abort();
      await server.close();
    },
  };
}
