import { ClockError } from '../api/errors.js';
import { notesFileIn } from '../config/notes.js';
import { makeDirectory, nextOf, removeStarting, stampOf, writeWhole } from '../files.js';
import { inSequence } from '../format/days.js';
import { counted } from '../format/numbers.js';
import type { Reader } from '../history/duckdb.js';
import { HistoryStore, type StoreOptions } from '../history/store.js';
import type { MailTransport } from '../mail/transport.js';
import { forgetDayFailure, forgetPages } from '../state/days.js';
import { acquireWorker, expectLocks, type Worker } from '../state/lock.js';
import { createState, openState, stateFileIn } from '../state/open.js';
import { placeOf, type SendingPlace, setHistory } from '../state/workspace.js';
import { recover, type Recovered, Sender } from '../state/sender.js';
import { readTables, saveState } from '../state/copies.js';
import type { State } from '../state/state.js';
import { daysToStore } from '../steps/history.js';
import type { Observer, Parts } from '../steps/step.js';
import { storageFailure } from '../storage.js';
import { type Callbacks, connect, type Connection } from './platform.js';
import { expectHistory, expectNothingLost } from './state.js';
import { keepFilesPrivate, type Runtime, type Workspace } from './workspace.js';

/** How long a command waits for another process to end, unless it says otherwise. */
export const MAX_LOCK_WAIT_MS = 30_000;

/** Called with events while the worker's lock is held. */
export type Listener = Callbacks & Observer;

/** Who holds the lock, such as `export`, and how long it waits for another one. */
export interface Hold {
  readonly command: string;
  readonly maxWaitMs?: number;
  /** Called once with the current holder. */
  readonly onHeld?: (who: string) => void;
}

/** What a worker has without the history; `recovered` says what a killed one was sending, if anything. */
interface Working {
  readonly state: State;
  readonly worker: Worker;
  readonly here: SendingPlace;
  readonly recovered: string | undefined;
}

interface OpenOptions extends Hold {
  readonly listener: Listener;
  /** Whether everything may be loaded again if the history is missing. */
  readonly mayBeginAgain?: boolean;
}

const TOO_FAR_OFF =
  'Nothing is sent while the clocks of this machine and the platform are more than an hour apart. ' +
  'Correct the one that is wrong. To compare them: readership doctor';

/**
 * Runs `work` as the worker of a workspace, with everything that steps need, and releases all of it, however it ends.
 * Throws as `withWorker` does, and a `StorageError` if the history must be restored first.
 */
export const withParts = <Result>(
  workspace: Workspace,
  { now, signal }: Pick<Runtime, 'now' | 'signal'>,
  { listener, mayBeginAgain = false, ...hold }: OpenOptions,
  work: (parts: Parts) => Promise<Result>,
): Promise<Result> =>
  withWorker(workspace, { now, signal }, hold, async ({ state, worker, here, recovered }) => {
    if (recovered !== undefined) listener.onNotice?.(recovered);
    if (!mayBeginAgain) await expectHistory(workspace, state);
    const { witness, credentials } = workspace;
    const readDays = (next: Reader) => daysToStore(workspace, state, next, now());
    const store = openStore(workspace, state, worker, { ...listener, readDays });
    let platform: Connection | undefined;
    try {
      const { clock } = (platform = await connect(workspace, { now, signal }, listener, state));
      const whyNot = async () => {
        await clock.update();
        return clock.isTooFarOff() ? new ClockError(TOO_FAR_OFF) : undefined;
      };
      const sender = new Sender({ state, worker, here, witness, carried: () => store.carried(), whyNot });
      // Both for the whole command, because they remember what takes nothing more.
      let opened: MailTransport | undefined;
      const transport = () => (opened ??= credentials.openTransport());
      const outgoing = { transport, channels: credentials.channels, silentHosts: new Set<string>() };
      const session = { now, signal, observer: listener };
      return await work({ workspace, platform, state, sender, store, outgoing, session });
    } finally {
      try {
        await platform?.close();
      } finally {
        await store.close();
      }
    }
  });

/**
 * Runs `work` as the worker of a workspace, with its state alone, and releases both, however it ends. Throws a
 * `LockedError` if another process is the worker, and a `StorageError` if the state must be restored first.
 */
export async function withWorker<Result>(
  workspace: Workspace,
  { now, signal }: Pick<Runtime, 'now' | 'signal'>,
  { command, maxWaitMs = MAX_LOCK_WAIT_MS, ...hold }: Hold,
  work: (working: Working) => Promise<Result>,
): Promise<Result> {
  const { dataDir, configuration } = workspace;
  const { state, here, isNew } = await openOrCreateState(workspace);
  let worker: Worker | undefined;
  try {
    const held = { ...hold, command: `readership ${command}`, maxWaitMs, now, signal };
    worker = await acquireWorker(dataDir, state, held);
    await expectLocks(dataDir, state);
    await removeUnfinished(workspace);
    if (isNew && configuration === undefined) await enterPast(state, dataDir, now());
    const recovered = unknownWords(await recover(state, worker, now()));
    return await work({ state, worker, here, recovered });
  } finally {
    try {
      await worker?.release();
    } finally {
      state.close();
    }
  }
}

/** Removes what killed processes left of next versions. Only a worker writes them. */
async function removeUnfinished({ dataDir, historyFile }: Workspace): Promise<void> {
  try {
    for (const file of [historyFile, stateFileIn(dataDir)]) await removeStarting(nextOf(file));
  } catch (error) {
    throw storageFailure(`remove what a killed process left in ${dataDir}`, error);
  }
}

/**
 * Opens the state, or creates it for this place. Throws a `StorageError` if it is missing although the workspace has
 * sent something: it must not begin again.
 */
export async function openOrCreateState(workspace: Workspace) {
  const { dataDir, machine } = workspace;
  keepFilesPrivate();
  await makeDirectory(dataDir);
  const here = await placeOf(dataDir, machine);
  const known = await openState(dataDir);
  if (known !== undefined) return { state: known, here, isNew: false };
  await expectNothingLost(workspace);
  return { state: await createState(dataDir, here), here, isNew: true };
}

/** Gives a new workspace of the sandbox its earlier jobs, and its notes. The sandbox is loaded only where it is used. */
async function enterPast(state: State, dataDir: string, now: Date): Promise<void> {
  const { enterPastJobs, pastNotes } = await import('../sandbox/past.js');
  const { defaultFirstDay } = await import('../sandbox/index.js');
  await state.transaction(() => {
    enterPastJobs(state, now);
  });
  writeWhole(notesFileIn(dataDir), pastNotes(defaultFirstDay(now)), 0o644);
}

/** What a killed process was sending, if anything. */
function unknownWords({ jobs, messages, emails }: Recovered): string | undefined {
  const kinds = Object.entries({ job: jobs, message: messages, email: emails });
  const found = inSequence(kinds.flatMap(([kind, count]) => (count === 0 ? [] : counted(count, kind))));
  if (found === '') return undefined;
  return `A process was killed while sending: ${found} may or may not have been sent, and will not be sent again automatically: readership status`;
}

interface StoreHooks extends Pick<Listener, 'onNotice'>, Pick<StoreOptions, 'writeAfterMs'> {
  /** Reads what is known of the days of the next version, and returns what stores it, inside a transaction. */
  readonly readDays?: (next: Reader) => Promise<(stamp: string) => void>;
}

/** The history as its worker uses it, together with the state. */
export function openStore(
  { historyFile }: Pick<Workspace, 'historyFile'>,
  state: State,
  worker: Worker,
  { onNotice, writeAfterMs, readDays }: StoreHooks,
): HistoryStore {
  let storeDays: ((stamp: string) => void) | undefined;
  return new HistoryStore({
    path: historyFile,
    tables: () => readTables(state),
    state: () => saveState(state, historyFile),
    expectCurrent: () => {
      worker.expectCurrent();
    },
    onWriting: async (next) => {
      storeDays = await readDays?.(next);
    },
    onWritten: async (days) => {
      const stamp = await stampOf(historyFile);
      await state.transaction(() => {
        for (const { project, stored } of days) {
          forgetPages(state, { project, day: stored.day });
          forgetDayFailure(state, { project, day: stored.day });
        }
        setHistory(state, stamp);
        storeDays?.(stamp ?? '');
      });
    },
    onWarning: (words) => onNotice?.(words),
    writeAfterMs,
  });
}
