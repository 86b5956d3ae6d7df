import type { Day } from '../day.js';
import { countChangedPages, equalCounts } from './counts.js';
import { readDayLedger, readStoredDay, recordFailedDay } from './ledger.js';
import { loadDays, type LoadOutcome, type LoadTask } from './load.js';
import {
  DIFFERS,
  findDamagedDays,
  listDifferingDays,
  planAgain,
  recordVerification,
  settledTotals,
} from './verification.js';
import { type DifferingDay, findDifferingDays, isForgotten, type StoredTotals } from './verify.js';
import { walkDay } from './walk.js';

/** What an audit found in the final days of a project. Nothing is changed unless `repaired` says so. */
export interface Audit {
  readonly days: number;
  /** Days whose totals, or with `deep` whose pages, are not those of the platform. */
  readonly differing: readonly Day[];
  /** Days of which the platform no longer has anything; what is stored of them stays. */
  readonly forgotten: readonly DifferingDay[];
  /** Days whose stored rows do not add up to their ledger, whatever the platform says. */
  readonly damaged: readonly Day[];
  readonly repaired?: LoadOutcome;
}

export interface AuditOptions {
  /** Read every day whole, page by page, instead of comparing totals. */
  readonly deep: boolean;
  readonly repair: boolean;
}

/** Holds the whole settled history against the platform. Throws what the client throws; nothing is lost by that. */
export async function auditHistory(task: LoadTask, options: AuditOptions): Promise<Audit> {
  const { warehouse, client, project, signal } = task;
  const ledger = await readDayLedger(warehouse, project);
  const settled = settledTotals(ledger);
  const damaged = await findDamagedDays(warehouse, project);
  const found: DifferingDay[] = [];
  for await (const day of options.repair
    ? listDifferingDays(task, settled, 'backfill')
    : findDifferingDays(client, settled, { signal, priority: 'backfill' }))
    found.push(day);
  const forgotten = found.filter(isForgotten);
  const byTotals = found.filter((day) => !isForgotten(day)).map(({ day }) => day);
  const byPages = options.deep
    ? await findDifferingPages(task, settled, new Set(found.map(({ day }) => day)), options.repair)
    : [];
  await recordVerification(task, settled, found.length + byPages.length);
  const audit = { days: settled.length, differing: [...byTotals, ...byPages].sort(), forgotten, damaged };
  if (!options.repair) return audit;
  const kept = new Set(forgotten.map(({ day }) => day));
  const toLoad = [...new Set([...audit.differing, ...damaged])].filter((day) => !kept.has(day)).sort();
  return { ...audit, repaired: await loadDays(task, planAgain(ledger, toLoad, 'backfill')) };
}

/**
 * Days that keep their totals and yet differ in a page: seen only by reading them whole. To be repaired, each is listed as
 * failed at once.
 */
async function findDifferingPages(
  { warehouse, client, project, now, signal }: LoadTask,
  settled: readonly StoredTotals[],
  known: ReadonlySet<Day>,
  isToBeRepaired: boolean,
): Promise<Day[]> {
  const differing: Day[] = [];
  for (const { day } of settled) {
    if (known.has(day)) continue;
    const walked = await walkDay(client, day, { isSettled: () => true, signal, priority: 'backfill' });
    const stored = await readStoredDay(warehouse, { project, day });
    if (walked === 'unchanged' || stored === undefined) continue;
    if (equalCounts(walked.totals, stored.totals) && countChangedPages(stored.rows, walked.rows) === 0)
      continue;
    differing.push(day);
    if (isToBeRepaired) await recordFailedDay(warehouse, { project, day, now: now() }, DIFFERS);
  }
  return differing;
}
