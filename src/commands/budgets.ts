import type { Pace } from '../api/retry.js';
import type { Sleep } from '../sleep.js';
import { RequestBudget } from '../budget/budget.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { readDayLedger } from '../export/ledger.js';
import { expectedPages, nightlyRequests, requestsFor } from '../export/plan.js';
import type { Warehouse } from '../warehouse/warehouse.js';

/** The budget of each key that the configuration names. */
export interface Budgets {
  readonly paceOf: (project: ProjectSettings) => Pace | undefined;
  /** Returns what was reserved and not spent. */
  readonly close: () => Promise<void>;
}

/** Opens the budgets; each keeps back what the next ordinary night of its projects will need. */
export async function openBudgets(
  warehouse: Warehouse,
  settings: Settings,
  now: () => Date,
  onWait: (until: Date, why: string) => void,
  sleep?: Sleep,
): Promise<Budgets> {
  const { requestsPerHour: limit, maxWait: maxWaitMs } = settings.history;
  const budgets = new Map<string, RequestBudget>();
  for (const bucket of new Set(settings.projects.map((project) => project.apiKeyEnv))) {
    const projects = projectsOfKey(settings, bucket);
    const reserve = limit === 'unlimited' ? 0 : await nightlyReserve(warehouse, projects, settings, limit);
    const common = { warehouse, bucket, limit, reserve, maxWaitMs, now, onWait };
    budgets.set(bucket, new RequestBudget(sleep ? { ...common, sleep } : common));
  }
  return {
    paceOf: (project) => budgets.get(project.apiKeyEnv),
    close: async () => {
      for (const budget of budgets.values()) await budget.close();
    },
  };
}

export const projectsOfKey = ({ projects }: Settings, apiKeyEnv: string): ProjectSettings[] =>
  projects.filter((project) => project.apiKeyEnv === apiKeyEnv);

/** Never more than half of the budget, and never so much that no day of the backfill fits into the rest. */
export async function nightlyReserve(
  reader: Pick<Warehouse, 'query'>,
  projects: readonly ProjectSettings[],
  { history }: Settings,
  limit: number,
): Promise<number> {
  const pages = await Promise.all(
    projects.map(async ({ id }) => expectedPages(await readDayLedger(reader, id))),
  );
  const requests = pages.reduce((sum, ofDay) => sum + nightlyRequests(ofDay, history.settleDays), 0);
  return Math.max(0, Math.min(requests, Math.floor(limit / 2), limit - requestsFor(Math.max(...pages))));
}
