import { nightlyReserve, projectsOfKey } from '../app/open.js';
import { readHour } from '../budget/budget.js';
import { finishingAt, usedRequests } from '../budget/hour.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { lastEndedDay } from '../day.js';
import { coverageOf, readSettling, recommendedSettleDays } from '../export/coverage.js';
import { readDayLedger } from '../export/ledger.js';
import { type ExportPlan, planExport } from '../export/plan.js';
import { readHistoryStart } from '../export/range.js';
import { readLastVerification } from '../export/verify.js';
import type { Reader } from '../warehouse/query.js';

/** The state of a project's history, as `status --json` writes it. */
export type ProjectStatus = Awaited<ReturnType<typeof readProjectStatus>>;

export async function readProjectStatus(
  reader: Reader,
  project: ProjectSettings,
  settings: Settings,
  forecast: FinishForecast,
  now: Date,
) {
  const { start, settleDays, requestsPerHour } = settings.history;
  const ledger = await readDayLedger(reader, project.id);
  const first = start === 'auto' ? await readHistoryStart(reader, project.id) : start;
  const range = first === undefined ? undefined : { first, last: lastEndedDay(now) };
  const { first: firstDay = null, last: lastDay = null, stored, gaps, days } = coverageOf(ledger, range);
  const settling = await readSettling(reader, project.id, now);
  const hour = await readHour(reader, project.apiKeyEnv, now);
  const plan = range === undefined ? undefined : planExport(ledger, range, now);
  const finish = plan === undefined ? undefined : await forecast(project, plan);
  return {
    project: project.id,
    name: project.name,
    /** Where the history begins, by the configuration or as it was found; null while nobody knows. */
    historyFrom: first ?? null,
    /** The first and the last day stored. */
    ...{ firstDay, lastDay, daysStored: stored, gaps },
    isYesterdayStored: ledger.get(lastEndedDay(now))?.is_stored ?? false,
    ...{ provisional: days.provisional, inconsistent: days.inconsistent, failed: days.failed },
    final: days.final.length,
    ...{ settling, settleDays },
    recommendedSettleDays: recommendedSettleDays(settling, settleDays) ?? null,
    verifiedAt: (await readLastVerification(reader, project.id)) ?? null,
    requests: {
      usedThisHour: usedRequests(hour),
      perHour: requestsPerHour,
      pausedUntil: hour.pausedUntil ?? null,
      left: plan?.requests ?? 0,
      finishingAt: finish ?? null,
    },
  };
}

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
