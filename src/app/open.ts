import { ClockError } from '../api/errors.js';
import { stampOf } from '../files.js';
import { HistoryStore, type StoreOptions } from '../history/store.js';
import type { MailTransport } from '../mail/transport.js';
import { forgetDayFailure } from '../state/day-failures.js';
import { forgetPages } from '../state/kept-pages.js';
import type { Worker } from '../state/lock.js';
import { saveState } from '../state/saved.js';
import { Sender } from '../state/sender.js';
import type { State } from '../state/state.js';
import { readTables } from '../state/tables.js';
import { setHistory } from '../state/workspace.js';
import type { Observer, Parts } from '../steps/parts.js';
import { type Callbacks, connect } from './platform.js';
import { expectHistory } from './state.js';
import { type Hold, withWorker } from './worker.js';
import type { Runtime, Workspace } from './workspace.js';

/** Called with events while the worker's lock is held. */
export type Listener = Callbacks & Observer;

const TOO_FAR_OFF =
  'Nothing is sent while the clocks of this machine and the platform are more than an hour apart. ' +
  'Set whichever is wrong: readership doctor';

interface OpenOptions extends Hold {
  readonly listener: Listener;
  /** Whether everything may be loaded again if the history is missing. */
  readonly mayBeginAgain?: boolean | undefined;
}

/**
 * Opens a workspace that was read, as its worker, runs `work` with its parts, and releases them, however it ends. Throws
 * a `LockedError` if another process is the worker, and a `StorageError` if something must be restored first.
 */
export async function withParts<Result>(
  workspace: Workspace,
  { now, signal }: Pick<Runtime, 'now' | 'signal'>,
  { listener, mayBeginAgain = false, ...hold }: OpenOptions,
  work: (parts: Parts) => Promise<Result>,
): Promise<Result> {
  const { witness, credentials } = workspace;
  return withWorker(workspace, { now, signal }, hold, async ({ state, worker, here, recovered }) => {
    if (recovered !== undefined) listener.onNotice?.(recovered);
    if (!mayBeginAgain) await expectHistory(workspace, state);
    const store = openStore(workspace, state, worker, listener);
    try {
      const platform = await connect(workspace, { now, signal }, listener, state);
      try {
        const whyNot = async () => {
          await platform.clock.ask();
          return platform.clock.isTooFarOff() ? new ClockError(TOO_FAR_OFF) : undefined;
        };
        const carried = () => store.carried();
        const sender = new Sender({ state, worker, here, witness, carried, whyNot });
        // One for the whole command, because it remembers that the server stopped answering.
        let opened: MailTransport | undefined;
        const outgoing = {
          transport: () => (opened ??= credentials.openTransport()),
          channels: credentials.channels,
        };
        const session = { now, signal, observer: listener };
        return await work({ workspace, platform, state, sender, store, outgoing, session });
      } finally {
        await platform.close();
      }
    } finally {
      await store.close();
    }
  });
}

/** The history as its worker uses it, together with the state. */
export function openStore(
  { historyFile }: Pick<Workspace, 'historyFile'>,
  state: State,
  worker: Worker,
  { onNotice, writeAfterMs }: Pick<Listener, 'onNotice'> & Pick<StoreOptions, 'writeAfterMs'>,
): HistoryStore {
  return new HistoryStore({
    path: historyFile,
    tables: () => readTables(state),
    state: () => saveState(state, historyFile),
    expectCurrent: () => {
      worker.expectCurrent();
    },
    onWritten: async (days) => {
      const stamp = await stampOf(historyFile);
      await state.transaction(() => {
        for (const { project, stored } of days) {
          forgetPages(state, { project, day: stored.day });
          forgetDayFailure(state, { project, day: stored.day });
        }
        setHistory(state, stamp);
      });
    },
    onWarning: (words) => onNotice?.(words),
    writeAfterMs,
  });
}
