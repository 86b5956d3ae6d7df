import { readHour } from '../budget/budget.js';
import { finishingAt } from '../budget/hour.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import type { ExportPlan } from '../history/plan.js';
import type { Reader } from '../warehouse/query.js';
import { nightlyReserve } from './budgets.js';

/**
 * When the last request of a plan can be sent. Urgent days may spend the whole budget, the backfill only what is not
 * kept back for the next night.
 */
export async function expectedFinish(
  reader: Reader,
  project: ProjectSettings,
  settings: Settings,
  plan: ExportPlan,
  now: Date,
): Promise<Date> {
  const hour = await readHour(reader, project.apiKeyEnv, now);
  const { requestsPerHour: limit } = settings.history;
  if (limit === 'unlimited') return hour.pausedUntil ?? now;
  const isBackfill = plan.days.some(({ priority }) => priority === 'backfill');
  const reserve = isBackfill ? await nightlyReserve(reader, [project], settings, limit) : 0;
  return finishingAt(hour, Math.max(1, limit - reserve), plan.requests, now);
}
