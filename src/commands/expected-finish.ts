import { readHour } from '../budget/budget.js';
import { finishingAt } from '../budget/hour.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import type { ExportPlan } from '../export/plan.js';
import type { Reader } from '../warehouse/query.js';
import { nightlyReserve, projectsOfKey } from './budgets.js';

/** When the last request of a plan can be sent. */
export type FinishForecast = (project: ProjectSettings, plan: ExportPlan) => Promise<Date>;

/**
 * Urgent days may spend the whole budget, the backfill only what is not kept back for the next night of all projects
 * of its key; that is worked out once a key.
 */
export function finishForecast(reader: Reader, settings: Settings, now: Date): FinishForecast {
  const { requestsPerHour: limit } = settings.history;
  const reserves = new Map<string, number>();
  return async ({ apiKeyEnv }, plan) => {
    const hour = await readHour(reader, apiKeyEnv, now);
    if (limit === 'unlimited') return hour.pausedUntil ?? now;
    if (!plan.days.some(({ priority }) => priority === 'backfill'))
      return finishingAt(hour, limit, plan.requests, now);
    const reserve =
      reserves.get(apiKeyEnv) ??
      (await nightlyReserve(reader, projectsOfKey(settings, apiKeyEnv), settings, limit));
    reserves.set(apiKeyEnv, reserve);
    return finishingAt(hour, Math.max(1, limit - reserve), plan.requests, now);
  };
}
