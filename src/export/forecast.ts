import { z } from 'zod';
import { readHour, type SharedLimit } from '../budget/budget.js';
import type { RollingHour } from '../budget/hour.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { type Day, dayOf, daysBetween, lastEndedDay } from '../day.js';
import { type Reader, readSql } from '../warehouse/query.js';
import { readDayLedger } from './ledger.js';
import { type ExportPlan, nightlyRequests, planExport, planReload, requestsFor } from './plan.js';
import { readHistoryStart } from './range.js';
import { runsOfNeighbors } from './totals.js';
import { readUnfinishedDays } from './unfinished.js';
import { readLastVerification, recentTotals } from './verify.js';

const NEWEST_PAGES = readSql(import.meta.url, 'statements/newest-pages.sql');
const newestRow = z.object({ project: z.string(), pages: z.int() });

/** The requests of an ordinary night of some projects at their most, and those of their longest day. */
export async function readNightlyNeed(
  reader: Reader,
  projects: readonly ProjectSettings[],
  settleDays: number,
): Promise<{ requests: number; longestDay: number }> {
  const rows = await reader.query(NEWEST_PAGES, newestRow);
  const pages = projects.map(({ id }) => rows.find(({ project }) => project === id)?.pages ?? 0);
  return {
    requests: pages.reduce((sum, ofDay) => sum + nightlyRequests(ofDay, settleDays), 0),
    longestDay: requestsFor(Math.max(...pages)),
  };
}

/** What an export is limited to: projects, and bounds, both included. */
export interface ForecastRequest {
  readonly projects: readonly ProjectSettings[];
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
  readonly reload?: boolean | undefined;
}

/** What an export of a project would do. */
export interface ExportForecast {
  readonly project: ProjectSettings;
  /** Undefined while the first day is not known. */
  readonly plan: ExportPlan | undefined;
  /** Those of the plan and of the nightly check, where that is due. */
  readonly requests: number;
  /** The last hour of all projects that share its limit. */
  readonly hour: RollingHour;
  /** When the last request of all projects that share its limit can be sent; undefined as for the plan. */
  readonly finishingAt: Date | undefined;
}

/** Plans the export of projects, and when those that share an hourly limit are done. */
export async function forecastExport(
  reader: Reader,
  limits: readonly SharedLimit[],
  { history }: Pick<Settings, 'history'>,
  request: ForecastRequest,
  now: Date,
): Promise<ExportForecast[]> {
  const forecasts: ExportForecast[] = [];
  for (const { bucket, projects } of limits) {
    const hour = await readHour(reader, bucket, now);
    const asked = request.projects.filter(({ id }) => projects.some((project) => project.id === id));
    const planned = [];
    for (const project of asked)
      planned.push({ project, ...(await planProject(reader, project, history, request, now)) });
    const requests = planned.reduce((sum, one) => sum + one.requests, 0);
    const nightly = await readNightlyNeed(reader, projects, history.settleDays);
    const end = finishOf(hour, history.requestsPerHour, requests, nightly.requests, now);
    const finishingAt = planned.every(({ plan }) => plan !== undefined) ? end : undefined;
    forecasts.push(...planned.map((one) => ({ ...one, hour, finishingAt })));
  }
  return request.projects.flatMap(({ id }) => forecasts.filter(({ project }) => project.id === id));
}

async function planProject(
  reader: Reader,
  { id }: ProjectSettings,
  { start }: Settings['history'],
  { from, to, reload = false }: ForecastRequest,
  now: Date,
): Promise<{ plan: ExportPlan | undefined; requests: number }> {
  const first = from ?? (start === 'auto' ? await readHistoryStart(reader, id) : start);
  if (first === undefined) return { plan: undefined, requests: 0 };
  const range = { first, last: to ?? lastEndedDay(now) };
  const ledger = await readDayLedger(reader, id);
  if (reload) {
    const plan = planReload(ledger, range);
    return { plan, requests: plan.requests };
  }
  const plan = planExport(ledger, range, now);
  const verifiedAt = await readLastVerification(reader, id);
  const isChecked = verifiedAt !== undefined && dayOf(verifiedAt) === dayOf(now);
  const unfinished = await readUnfinishedDays(reader, id);
  const kept = plan.days.reduce((sum, { day }) => sum + (unfinished.get(day) ?? 0), 0);
  const check = isChecked ? 0 : runsOfNeighbors(recentTotals(ledger, now)).length;
  return { plan, requests: Math.max(1, plan.requests - kept) + check };
}

/** No forecast looks further than this. */
const MOST_NIGHTS = 3_650;

/** When the last of `requests` can be sent, if each night on the way takes `nightly` more. */
function finishOf(
  hour: RollingHour,
  limit: number | 'unlimited',
  requests: number,
  nightly: number,
  now: Date,
): Date {
  if (limit === 'unlimited') return hour.pausedUntil(now) ?? now;
  for (let nights = 0; ;) {
    const at = hour.finishingAt(limit, requests + nights * nightly, now);
    const onTheWay = Math.min(MOST_NIGHTS, daysBetween(dayOf(now), dayOf(at)));
    if (onTheWay <= nights) return at;
    nights = onTheWay;
  }
}
