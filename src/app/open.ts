import { referenceOf } from '../agents/ledger.js';
import { reconcilePrompts } from '../agents/reconcile.js';
import { notesFileIn } from '../config/notes.js';
import { writeWhole } from '../files.js';
import { counted } from '../format/numbers.js';
import type { MailTransport } from '../mail/transport.js';
import { reconcileDeliveries } from '../mail/ledger.js';
import { type Observer, type StepContext } from '../steps/step.js';
import { tidyRuns } from '../steps/runs.js';
import { ClockError } from '../api/errors.js';
import { leaveMarker, refuseToStartOver } from '../effects/marker.js';
import { agreeOnPlace, isSamePlace, placeOf, sendsElsewhere } from '../effects/place.js';
import type { Reconciliation } from '../effects/settle.js';
import { EffectsJournal } from '../effects/journal.js';
import { logOf } from '../warehouse/live-file.js';
import { openWarehouse, refuseToForget } from '../warehouse/open.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { type Callbacks, channelsOf, connect, transportOf } from './connection.js';
import { keepPrivate, type Runtime, sharedLimits, type Workspace } from './workspace.js';

/** How long a command waits for another process to release the live database. */
export const MAX_LOCK_WAIT_MS = 30_000;

/** Called with events while the live database is held. */
export type Listener = Callbacks & Observer;

/** The holder of the live database, and how long it waits for another one. */
interface Hold {
  readonly command: string;
  readonly maxWaitMs: number;
  /** Called once with the current holder. */
  readonly onHeld?: (who: string) => void;
}

/** The live database and the effects journal, reconciled. */
interface LiveFiles extends Pick<
  StepContext,
  'warehouse' | 'journal' | 'unknownDeliveries' | 'here' | 'elsewhere'
> {
  /** A message about what was reconciled; undefined if both agreed. */
  readonly reconciled: string | undefined;
}

/**
 * Runs `work` with the live database and the effects journal. Throws a `LockedError` if another
 * process holds them.
 */
export async function withLiveFiles<Result>(
  { dataDir, liveFile, historyFile, settings, machine, configuration }: Workspace,
  { now, signal }: Pick<Runtime, 'now' | 'signal'>,
  hold: Hold,
  work: (live: LiveFiles) => Promise<Result>,
): Promise<Result> {
  keepPrivate();
  const { maxMemory } = settings.database;
  const warehouse = await openWarehouse(liveFile, { ...hold, historyFile, maxMemory, now, signal });
  let journal: EffectsJournal | undefined;
  try {
    await tidyRuns(warehouse);
    journal = await EffectsJournal.open(dataDir);
    const here = await placeOf(dataDir, machine);
    const place = await agreeOnPlace(journal, warehouse, here, now());
    const isNewSandbox = configuration === undefined && !journal.found;
    if (isNewSandbox) await enterPast(dataDir, journal, now());
    const { words: reconciled, unknownDeliveries } = await reconcileEffects(journal, warehouse, now());
    // The built-in sandbox has nobody to send to.
    const isHere = configuration === undefined || isSamePlace(place, here);
    const elsewhere = isHere ? undefined : sendsElsewhere(place, here, journal.lastSentAt);
    const words = isNewSandbox ? undefined : reconciled;
    return await work({ warehouse, journal, here, elsewhere, unknownDeliveries, reconciled: words });
  } finally {
    await journal?.close();
    await warehouse.close();
  }
}

/** Gives a new sandbox the earlier jobs and notes of its workspace. */
async function enterPast(dataDir: string, journal: EffectsJournal, now: Date): Promise<void> {
  const { pastEntries, pastNotes } = await import('../sandbox/past.js');
  const { defaultFirstDay } = await import('../sandbox/index.js');
  await journal.append(pastEntries(now, referenceOf));
  writeWhole(notesFileIn(dataDir), pastNotes(defaultFirstDay(now)), 0o644);
}

/**
 * Runs `work` with everything steps need. Throws a `StorageError` if the live database must be
 * restored first.
 */
export async function withLiveDatabase<Result>(
  workspace: Workspace,
  runtime: Runtime,
  { listener, ...hold }: Hold & { readonly listener: Listener },
  work: (context: StepContext) => Promise<Result>,
): Promise<Result> {
  const { liveFile, historyFile, dataDir, marker } = workspace;
  await refuseToForget(liveFile, historyFile);
  if (marker !== undefined) await refuseToStartOver(marker, dataDir, liveFile);
  const named = { ...hold, command: `readership ${hold.command}` };
  return withLiveFiles(workspace, runtime, named, async ({ reconciled, ...live }) => {
    if (reconciled !== undefined) listener.onNotice?.(reconciled);
    const connection = await connect(workspace, runtime, listener, live.warehouse);
    let transport: MailTransport | undefined;
    try {
      const context: StepContext = {
        ...workspace,
        ...live,
        ...connection,
        limits: sharedLimits(workspace),
        // One for the whole command, because it remembers that the server stopped answering.
        transport: () => (transport ??= transportOf(workspace)),
        channels: channelsOf(workspace),
        now: runtime.now,
        signal: runtime.signal,
        observer: listener,
      };
      const { journal } = context;
      const remember = async () => marker !== undefined && leaveMarker(marker, dataDir);
      journal.askFirst(() => whyNotToSend(context), remember);
      // Versions before 0.4 left none.
      if (journal.lastSentAt !== undefined) await remember();
      return await work(context);
    } finally {
      await connection.close();
    }
  });
}

const TOO_FAR_OFF =
  'Nothing is sent while the clocks of this machine and the platform are more than an hour apart. ' +
  'Set whichever is wrong: readership doctor';

/** Why nothing may be sent now: this is a copy, or one of the clocks is wrong. */
async function whyNotToSend({ elsewhere, clock }: StepContext): Promise<Error | undefined> {
  if (elsewhere !== undefined) return elsewhere;
  await clock.ask();
  return clock.isTooFarOff() ? new ClockError(TOO_FAR_OFF) : undefined;
}

/**
 * Reconciles the effects journal and the ledgers of the database in both directions. Runs whenever the live database is
 * opened, before anything else is decided. Sends nothing. `words` is undefined if both agreed; `unknownDeliveries` are the
 * emails whose outcome was newly found to be unknown.
 */
export async function reconcileEffects(journal: EffectsJournal, warehouse: Warehouse, now: Date) {
  const jobs = await reconcilePrompts('job', journal, warehouse, now);
  const messages = await reconcilePrompts('message', journal, warehouse, now);
  const { deliveries, ...emails } = await reconcileDeliveries({ journal, warehouse }, now);
  const words = [
    ...(journal.cutBytes > 0 ? [`the torn last line of ${journal.path} was cut off`] : []),
    ...reconciledWords({ job: jobs, message: messages, email: emails }, journal, warehouse),
  ];
  return {
    words: words.length === 0 ? undefined : `Effects journal: ${words.join('; ')}.`,
    unknownDeliveries: deliveries,
  };
}

function reconciledWords(
  kinds: Readonly<Record<'job' | 'message' | 'email', Reconciliation>>,
  { found }: EffectsJournal,
  { path }: Warehouse,
): string[] {
  const words = (what: keyof Reconciliation, write: (list: string) => string): string[] => {
    const list = Object.entries(kinds).flatMap(([kind, of]) => (of[what] > 0 ? counted(of[what], kind) : []));
    return list.length === 0 ? [] : [write(list.join(', '))];
  };
  return [
    ...words(
      'lost',
      (list) =>
        `the database has lost ${list}, because its log (${logOf(path)}) was cut short or an older copy replaced it; all of them are in the journal`,
    ),
    ...words('stored', (list) => `added the outcome of ${list} to the database`),
    ...words(
      'unknown',
      (list) =>
        `${list} may or may not have been sent and will not be sent again automatically: readership status`,
    ),
    ...words(
      'written',
      (list) => `${found ? 'added' : 'it was missing; wrote it again with'} ${list} from the database`,
    ),
  ];
}
