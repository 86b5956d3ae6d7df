import type { ProjectSettings, Settings } from '../config/schema.js';
import { dayOf, lastEndedDay } from '../day.js';
import { readUnfinishedDays } from '../state/kept-pages.js';
import type { State } from '../state/state.js';
import { readLastVerification } from '../state/verifications.js';
import type { Reader } from '../warehouse/query.js';
import { readPageSize } from './facts.js';
import { type DayLedger, readDayLedger } from './ledger.js';
import { type ExportPlan, planExport, requestsLeft } from './plan.js';
import { type ExportBounds, readFirstDay } from './range.js';
import { runsOfNeighbors } from './totals.js';
import { recentSince, recentTotals } from './verify.js';

/** What an export of a project would do. */
export interface PlannedExport {
  readonly project: ProjectSettings;
  readonly ledger: DayLedger;
  /** Undefined while the first day is not known. */
  readonly plan: ExportPlan | undefined;
  /** Requests of the plan, and of the nightly check if due. */
  readonly requests: number;
}

/** The stored days, and what is known beside them. */
export interface ExportStores {
  readonly reader: Reader;
  readonly state: State;
}

/** Plans the export of a project, without a request. */
export async function planProject(
  { reader, state }: ExportStores,
  project: ProjectSettings,
  { history: { start, settleDays } }: Pick<Settings, 'history'>,
  { from, to, reload = false }: ExportBounds,
  now: Date,
): Promise<PlannedExport> {
  const { id } = project;
  const ledger = await readDayLedger(reader, id, reload ? null : recentSince(now));
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
