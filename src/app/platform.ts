import { join } from 'node:path';
import { CodeHost } from '../agents/code-host.js';
import { Client, type ClientOptions } from '../api/client.js';
import { requestDate, PlatformClock } from '../api/clock.js';
import type { Operation } from '../api/errors.js';
import { RequestPace } from '../api/pace.js';
import type { AgentJob } from '../api/schema.js';
import { Transport } from '../api/transport.js';
import type { ProjectSettings } from '../config/schema.js';
import { requestsOf } from '../state/platform.js';
import type { State } from '../state/state.js';
import type { Platform } from '../steps/step.js';
import type { Runtime, Workspace } from './workspace.js';

/** Called with what requests meet. */
export interface Callbacks extends Pick<ClientOptions, 'onRetry'> {
  /** Called before each request is sent, with the id of its project. */
  readonly onRequest?: (operation: Operation, project: string) => void;
  /** Called with what a person should know, such as that the clocks of this machine and the platform are far apart. */
  readonly onNotice?: (words: string) => void;
  /** Called when requests wait, with the end and the reason of the wait. */
  readonly onWait?: (until: Date, why: string) => void;
}

/** Looks up jobs by their ids on the platform, for people who settle them. */
export const jobLookUp =
  (workspace: Workspace, runtime: Pick<Runtime, 'now' | 'signal'>, state: State) =>
  async (project: ProjectSettings, remoteId: string): Promise<AgentJob> => {
    const platform = await connect(workspace, runtime, {}, state);
    return platform
      .clientOf(project)
      .job(remoteId, runtime.signal)
      .finally(() => platform.close());
  };

/** The platform and the code host, until `close`. */
export interface Connection extends Platform {
  /** Ends connections, and the built-in sandbox if one was started. */
  readonly close: () => Promise<void>;
}

/**
 * Starts the built-in sandbox if the workspace uses it. Clients are created, and keys read, on
 * first use. Requests are counted in the state.
 */
export async function connect(
  workspace: Workspace & Pick<ClientOptions, 'retries'>,
  { now, signal }: Pick<Runtime, 'now' | 'signal'>,
  { onNotice, onWait, onRequest, onRetry }: Callbacks,
  state: State,
): Promise<Connection> {
  const { settings, credentials, configuration, dataDir, maxWaitMs, retries } = workspace;
  const { pullRequests } = settings;
  const server = configuration === undefined ? await startSandbox(dataDir, now) : undefined;
  const paces = new Map<string, RequestPace>();
  /** The pace of a project: those with the same key share one. */
  const paceOf = (project: ProjectSettings): RequestPace => {
    const bucket = credentials.bucketOf(project);
    const cap = settings.history.requestsPerHour;
    const pace =
      paces.get(bucket) ??
      new RequestPace({ counts: requestsOf(state, bucket), cap, maxWaitMs, now, onWait });
    paces.set(bucket, pace);
    return pace;
  };
  /** A count that cannot be stored matters less than why a command ends. */
  const recordRequests = async (): Promise<void> => {
    for (const pace of paces.values()) await pace.record().catch(() => undefined);
  };
  const baseUrl = server?.baseUrl ?? settings.baseUrl;
  const request = () => requestDate(baseUrl, signal);
  const clock = new PlatformClock({ baseUrl, now, request, onSkew: (words) => onNotice?.(words) });
  const transport = new Transport({ onHeaders: clock.observe });
  const host = pullRequests && { url: pullRequests.url, apiUrl: server?.codeHostUrl };
  const codeHost = host && new CodeHost(host, credentials.codeHostToken, now);
  const clients = new Map<string, Client>();
  const newClient = (project: ProjectSettings): Client =>
    new Client({
      baseUrl,
      projectId: project.id,
      apiKey: credentials.apiKeyOf(project),
      keyName: project.apiKeyEnv,
      now,
      transport,
      retries,
      pace: paceOf(project),
      onRetry,
      onRequest: (operation) => onRequest?.(operation, project.id),
    });
  return {
    clock,
    codeHost,
    recordRequests,
    clientOf: (project) => {
      const client = clients.get(project.id) ?? newClient(project);
      clients.set(project.id, client);
      return client;
    },
    close: async () => {
      await transport.close();
      await codeHost?.close();
      await server?.close();
      await recordRequests();
    },
  };
}

/** Serves the platform and the code host of the built-in sandbox, which is loaded only where it is used. */
async function startSandbox(dataDir: string, now: () => Date) {
  const sandbox = await import('../sandbox/index.js');
  const { pastJobs } = await import('../sandbox/past.js');
  const stateFile = join(dataDir, 'sandbox.json');
  const { baseUrl, close } = await sandbox.startSandbox({ now, jobs: pastJobs(now()), stateFile });
  return { baseUrl, codeHostUrl: `${baseUrl}/_sandbox/code`, close };
}
