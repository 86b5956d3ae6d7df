import { JOBS, MESSAGES } from '../agents/reconcile.js';
import type { EffectsJournal } from '../effects/journal.js';
import { reconcile } from '../effects/reconcile.js';
import { countDifferences } from '../effects/settle.js';
import { counted } from '../format/numbers.js';
import type { Delivery } from '../mail/delivery.js';
import { deliveryAfter, EMAILS } from '../mail/reconcile.js';
import { tidyRuns } from '../steps/runs.js';
import { logOf } from '../warehouse/live-file.js';
import type { Warehouse } from '../warehouse/warehouse.js';

/** What was put right, for people, if anything was, and the emails that were newly found to be of unknown outcome. */
interface PutRight {
  readonly words: string | undefined;
  readonly unknownDeliveries: readonly Delivery[];
}

/**
 * Puts right what kills, lost files and restored backups leave behind. Runs whenever the live database is opened, before
 * anything else is decided. Sends nothing.
 */
export async function putRight(store: Warehouse, journal: EffectsJournal, now: Date): Promise<PutRight> {
  await tidyRuns(store);
  return reconcileEffects(journal, store, now);
}

/** Reconciles the effects journal and the ledgers of the database in both directions. */
export async function reconcileEffects(
  journal: EffectsJournal,
  store: Warehouse,
  now: Date,
): Promise<PutRight> {
  // Messages cannot be entered before their jobs.
  const jobs = await reconcile(JOBS, journal, store, now);
  const messages = await reconcile(MESSAGES, journal, store, now);
  const emails = await reconcile(EMAILS, journal, store, now);
  const unknownDeliveries = emails.flatMap((one) =>
    one.store === 'unknown' ? (deliveryAfter(one, now) ?? []) : [],
  );
  const words = [
    ...(journal.cutBytes > 0 ? [`the torn last line of ${journal.path} was cut off`] : []),
    ...reconciledWords({ job: jobs, message: messages, email: emails }, journal, store),
  ];
  return {
    words: words.length === 0 ? undefined : `Effects journal: ${words.join('; ')}.`,
    unknownDeliveries,
  };
}

function reconciledWords(
  found: Readonly<Record<'job' | 'message' | 'email', Parameters<typeof countDifferences>[0]>>,
  journal: EffectsJournal,
  { path }: Warehouse,
): string[] {
  const kinds = Object.entries(found).map(([kind, of]) => [kind, countDifferences(of)] as const);
  const listOf = (what: keyof ReturnType<typeof countDifferences>) =>
    kinds.flatMap(([kind, of]) => (of[what] > 0 ? counted(of[what], kind) : [])).join(', ');
  const [lost, stored, unknown, written] = [
    listOf('lost'),
    listOf('stored'),
    listOf('unknown'),
    listOf('written'),
  ];
  return [
    lost &&
      `the database has lost ${lost}, because its log (${logOf(path)}) was cut short or an older copy replaced it; all of them are in the journal`,
    stored && `added the outcome of ${stored} to the database`,
    unknown &&
      `${unknown} may or may not have been sent and will not be sent again automatically: readership status`,
    written &&
      `${journal.found ? 'added' : 'it was missing; wrote it again with'} ${written} from the database`,
  ].filter((words) => words !== '');
}
