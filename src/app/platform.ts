import { CodeHost } from '../agents/code-host.js';
import { Client, type ClientOptions } from '../api/client.js';
import { askForDate, PlatformClock } from '../api/clock.js';
import type { Operation } from '../api/errors.js';
import type { Pace } from '../api/retry.js';
import { Transport } from '../api/transport.js';
import { RequestBudget } from '../budget/budget.js';
import type { SharedLimit } from '../budget/ledger.js';
import { nextScheduled } from '../config/cron.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { readNightlyNeed } from '../export/forecast.js';
import type { Sleep } from '../sleep.js';
import type { Platform } from '../steps/parts.js';
import type { Warehouse } from '../warehouse/warehouse.js';
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

/** The platform and the code host, until `close`. */
export interface Connection extends Platform {
  /** Ends connections, and the built-in sandbox if one was started. */
  readonly close: () => Promise<void>;
}

/**
 * Starts the built-in sandbox if the workspace uses it. Clients are created, and keys read, on
 * first use. With a database, requests count in the hourly limits.
 */
export async function connect(
  { settings, credentials, sandbox }: Workspace,
  { now, signal }: Pick<Runtime, 'now' | 'signal'>,
  { onNotice, onWait, onRequest, onRetry }: Callbacks,
  store: Warehouse | undefined,
): Promise<Connection> {
  const { limits } = credentials;
  const { pullRequests } = settings;
  const server = await sandbox?.start();
  const paceOf = store && openBudgets(store, limits, settings, { now, onWait });
  const baseUrl = server?.baseUrl ?? settings.baseUrl;
  const ask = () => askForDate(baseUrl, signal);
  const clock = new PlatformClock({ baseUrl, now, ask, onSkew: (words) => onNotice?.(words) });
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
      pace: paceOf?.(project),
      onRetry,
      onRequest: (operation) => onRequest?.(operation, project.id),
    });
  return {
    clock,
    codeHost,
    limits,
    clientOf: (project) => {
      const client = clients.get(project.id) ?? newClient(project);
      clients.set(project.id, client);
      return client;
    },
    close: async () => {
      await transport.close();
      await codeHost?.close();
      await server?.close();
    },
  };
}

/**
 * How long before a scheduled export its requests are reserved; requests sent earlier no longer
 * count when it begins.
 */
const KEPT_FREE_MS = 62 * 60_000;

/**
 * The budget of each project. Within the hour before a scheduled export, a backfill reserves the
 * requests the export needs: at most half of the limit, and never so many that no day fits into the
 * rest.
 */
export function openBudgets(
  warehouse: Warehouse,
  limits: readonly SharedLimit[],
  { history, schedule }: Settings,
  { now, onWait, sleep }: { now: () => Date; onWait?: Callbacks['onWait']; sleep?: Sleep },
): (project: ProjectSettings) => Pace | undefined {
  const { requestsPerHour: limit, maxWait: maxWaitMs, settleDays } = history;
  const paces = new Map<string, Pace>();
  for (const { bucket, projects } of limits) {
    let need: ReturnType<typeof readNightlyNeed> | undefined;
    let next: Date | undefined;
    const reserve = async (at: Date): Promise<number> => {
      // Computed once, because reading a schedule costs more than a small day.
      if (next === undefined || next <= at) next = nextScheduled(schedule.export, schedule.timezone, at);
      if (limit === 'unlimited' || next.getTime() - at.getTime() > KEPT_FREE_MS) return 0;
      need ??= readNightlyNeed(warehouse, projects, settleDays, at);
      const { requests, longestDay } = await need;
      return Math.max(0, Math.min(requests, Math.floor(limit / 2), limit - longestDay));
    };
    const budget = new RequestBudget({ warehouse, bucket, limit, reserve, maxWaitMs, now, onWait, sleep });
    for (const { id } of projects) paces.set(id, budget);
  }
  return ({ id }) => paces.get(id);
}
