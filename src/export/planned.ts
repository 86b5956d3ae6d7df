import type { ProjectSettings, Settings } from '../config/schema.js';
import { dayOf, lastEndedDay } from '../day.js';
import { readLastVerification, readUnfinishedDays } from '../state/days.js';
import type { State } from '../state/state.js';
import { readFirstDay, readPageSize } from './facts.js';
import { type DayLedger, type DayStores, readDayLedger, recentTotals } from './ledger.js';
import { type ExportPlan, planExport, requestsLeft } from './plan.js';
import type { ExportBounds } from './range.js';
import { runsOfNeighbors } from './totals.js';

/** What an export of a project would do. */
export interface PlannedExport {
  readonly project: ProjectSettings;
  readonly ledger: DayLedger;
  /** Undefined while the first day is not known. */
  readonly plan: ExportPlan | undefined;
  /** Requests of the plan, and of the nightly check if due. */
  readonly requests: number;
}

/** Plans the export of a project, without a request. */
export async function planProject(
  stores: DayStores,
  project: ProjectSettings,
  settings: Pick<Settings, 'history'>,
  bounds: ExportBounds,
  now: Date,
): Promise<PlannedExport> {
  const ledger = await readDayLedger(stores, project.id);
  return planFor(project, ledger, stores.state, settings, bounds, now);
}

/** As `planProject`, for days that are known. */
export function planFor(
  project: ProjectSettings,
  ledger: DayLedger,
  state: State,
  { history: { start, settleDays } }: Pick<Settings, 'history'>,
  { from, to, reload = false }: ExportBounds,
  now: Date,
): PlannedExport {
  const { id } = project;
  const first = from ?? readFirstDay(state, id, start, now);
  if (first === undefined) return { project, ledger, plan: undefined, requests: 0 };
  const range = { first, last: to ?? lastEndedDay(now) };
  const { rows: pageSize } = readPageSize(state, id, now);
  const unfinished = readUnfinishedDays(state, id);
  const plan = planExport(ledger, range, now, { settleDays, pageSize, reload });
  const ofDays = plan.days.map(({ day, requests }) => requestsLeft(requests, unfinished.get(day), pageSize));
  const verifiedAt = readLastVerification(state, id);
  const isChecked = reload || (verifiedAt !== undefined && dayOf(verifiedAt) === dayOf(now));
  const ofCheck = isChecked ? 0 : runsOfNeighbors(recentTotals(ledger, now)).length;
  return { project, ledger, plan, requests: ofDays.reduce((sum, one) => sum + one, ofCheck) };
}
