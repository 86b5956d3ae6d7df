import { z } from 'zod';
import type { RollingHour } from '../api/hour.js';
import { readHour, type SharedLimit } from '../budget/ledger.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { addDays, dayOf, daysBetween, lastEndedDay } from '../day.js';
import { type Reader, readSql } from '../warehouse/query.js';
import { readPageSize } from './facts.js';
import { type DayLedger, readDayLedger } from './ledger.js';
import { type ExportPlan, nightlyRequests, planExport, requestsFor, requestsLeft } from './plan.js';
import { type ExportBounds, readFirstDay } from './range.js';
import { runsOfNeighbors } from './totals.js';
import { readUnfinishedDays } from './pages.js';
import { readLastVerification, recentSince, recentTotals } from './verify.js';

const KNOWN_DAYS = readSql(import.meta.url, 'statements/known-days.sql');
const NEWEST_PAGES =
  'SELECT project, arg_max(pages, day) AS pages FROM day_loads WHERE pages IS NOT NULL GROUP BY project';

/** The maximum requests of an ordinary night of some projects, and those of their longest day. */
export async function readNightlyNeed(
  reader: Reader,
  projects: readonly Pick<ProjectSettings, 'id'>[],
  settleDays: number,
  now: Date,
): Promise<{ requests: number; longestDay: number }> {
  const newest = await reader.query(NEWEST_PAGES, z.object({ project: z.string(), pages: z.int() }));
  let [requests, longestDay] = [0, 1];
  for (const { id } of projects) {
    const pages = newest.find(({ project }) => project === id)?.pages ?? 0;
    const { rows: pageSize } = await readPageSize(reader, id, now);
    requests += nightlyRequests(pages, settleDays, pageSize);
    longestDay = Math.max(longestDay, requestsFor(pages, pageSize));
  }
  return { requests, longestDay };
}

export interface ForecastRequest extends ExportBounds {
  readonly projects: readonly ProjectSettings[];
}

/** What an export of a project would do. */
export interface ExportForecast {
  readonly project: ProjectSettings;
  readonly ledger: DayLedger;
  /** Undefined while the first day is not known. */
  readonly plan: ExportPlan | undefined;
  /** Requests of the plan, and of the nightly check if due. */
  readonly requests: number;
  /** The last hour of all projects that share its limit. */
  readonly hour: RollingHour;
  /** About when the last request of all projects that share its limit is sent; undefined as for the plan. */
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
    const isBackfilling = await hasHoles(reader, projects, history, now);
    const planned = [];
    for (const project of asked)
      planned.push(await planProject(reader, project, history, request, now, isBackfilling));
    const all = planned.reduce((sum, { requests }) => sum + requests, 0);
    const end = hour.finishingAt(history.requestsPerHour, all, now);
    const finishingAt = planned.every(({ plan }) => plan !== undefined) ? end : undefined;
    for (const one of planned) forecasts.push({ ...one, hour, finishingAt });
  }
  return request.projects.flatMap(({ id }) => forecasts.filter(({ project }) => project.id === id));
}

/** Whether some of the projects have days before yesterday that were never loaded. */
export async function hasHoles(
  reader: Reader,
  projects: readonly ProjectSettings[],
  { start }: Settings['history'],
  now: Date,
): Promise<boolean> {
  const last = addDays(lastEndedDay(now), -1);
  for (const { id: project } of projects) {
    const first = await readFirstDay(reader, project, start, now);
    if (first === undefined) return true;
    const [known] = await reader.query(KNOWN_DAYS, z.object({ days: z.int() }), { project, first, last });
    if ((known?.days ?? 0) <= daysBetween(first, last)) return true;
  }
  return false;
}

async function planProject(
  reader: Reader,
  project: ProjectSettings,
  { start, settleDays }: Settings['history'],
  { from, to, reload = false }: ForecastRequest,
  now: Date,
  isBackfilling: boolean,
): Promise<Omit<ExportForecast, 'hour' | 'finishingAt'>> {
  const { id } = project;
  const ledger = await readDayLedger(reader, id, reload ? null : recentSince(now));
  const first = from ?? (await readFirstDay(reader, id, start, now));
  if (first === undefined) return { project, ledger, plan: undefined, requests: 0 };
  const range = { first, last: to ?? lastEndedDay(now) };
  const { rows: pageSize } = await readPageSize(reader, id, now);
  const unfinished = await readUnfinishedDays(reader, id);
  const plan = planExport(ledger, range, now, { isBackfilling, settleDays, pageSize, reload });
  const ofDays = plan.days.map(({ day, requests }) => requestsLeft(requests, unfinished.get(day), pageSize));
  const verifiedAt = await readLastVerification(reader, id);
  const isChecked = reload || (verifiedAt !== undefined && dayOf(verifiedAt) === dayOf(now));
  const ofCheck = isChecked ? 0 : runsOfNeighbors(recentTotals(ledger, now)).length;
  return { project, ledger, plan, requests: ofDays.reduce((sum, one) => sum + one, ofCheck) };
}
