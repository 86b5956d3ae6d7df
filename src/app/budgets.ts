import type { Pace } from '../api/retry.js';
import { RequestBudget } from '../budget/budget.js';
import type { SharedLimit } from '../budget/ledger.js';
import { bucketNameOf } from '../config/load.js';
import { nextScheduled } from '../config/cron.js';
import type { ProjectSettings } from '../config/schema.js';
import { readNightlyNeed } from '../export/forecast.js';
import type { Sleep } from '../sleep.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import type { Workspace } from './workspace.js';

/** The hourly limits of all projects of a workspace. */
export function sharedLimits({
  settings,
  configuration,
}: Pick<Workspace, 'settings' | 'configuration'>): SharedLimit[] {
  const nameOf = (project: ProjectSettings) => bucketNameOf(project, configuration?.environment ?? {});
  return [...new Set(settings.projects.map(nameOf))].map((name) => {
    const projects = settings.projects.filter((project) => nameOf(project) === name);
    return { bucket: { name, variables: projects.map(({ apiKeyEnv }) => apiKeyEnv) }, projects };
  });
}

/**
 * How long before a scheduled export its requests are reserved; requests sent earlier no longer
 * count when it begins.
 */
const KEPT_FREE_MS = 62 * 60_000;

/**
 * The budget of each project. Within the hour before a scheduled export, a backfill reserves the requests the export
 * needs: at most half of the limit, and never so many that no day fits into the rest.
 */
export function openBudgets(
  warehouse: Warehouse,
  workspace: Pick<Workspace, 'settings' | 'configuration'>,
  now: () => Date,
  onWait: (until: Date, why: string) => void,
  sleep?: Sleep,
): (project: ProjectSettings) => Pace | undefined {
  const { history, schedule } = workspace.settings;
  const { requestsPerHour: limit, maxWait: maxWaitMs, settleDays } = history;
  const paces = new Map<string, Pace>();
  for (const { bucket, projects } of sharedLimits(workspace)) {
    let need: ReturnType<typeof readNightlyNeed> | undefined;
    let next: Date | undefined;
    const reserve = async (at: Date): Promise<number> => {
      // Computed once, because reading a schedule costs more than a small day.
      if (next === undefined || next <= at) next = nextScheduled(schedule.export, schedule.timezone, at);
      if (limit === 'unlimited' || next.getTime() - at.getTime() > KEPT_FREE_MS) return 0;
      const { requests, longestDay } = await (need ??= readNightlyNeed(warehouse, projects, settleDays));
      return Math.max(0, Math.min(requests, Math.floor(limit / 2), limit - longestDay));
    };
    const options = { warehouse, bucket, limit, reserve, maxWaitMs, now, onWait };
    const budget = new RequestBudget(sleep === undefined ? options : { ...options, sleep });
    for (const { id } of projects) paces.set(id, budget);
  }
  return ({ id }) => paces.get(id);
}
