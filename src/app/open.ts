import { EffectsJournal } from '../effects/journal.js';
import type { Effects, Observer, Parts } from '../steps/parts.js';
import { openWarehouse } from '../warehouse/open.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { mayBeginHere, openEffects, watchSending } from './effects.js';
import { putRight } from './janitor.js';
import { type Callbacks, connect } from './platform.js';
import { keepPrivate, type Runtime, type Workspace } from './workspace.js';

/** How long a command waits for another process to release the live database. */
export const MAX_LOCK_WAIT_MS = 30_000;

/** Called with events while the live database is held. */
export type Listener = Callbacks & Observer;

/** The holder of the live database, such as `export`, and how long it waits for another one. */
interface Hold {
  readonly command: string;
  readonly maxWaitMs: number;
  /** Called once with the current holder. */
  readonly onHeld?: (who: string) => void;
}

/**
 * Runs `work` with all parts, and releases them, however it ends. Throws a `LockedError` if another process holds the
 * live database, and a `StorageError` if that must be restored first.
 */
export async function withParts<Result>(
  workspace: Workspace,
  runtime: Runtime,
  { listener, ...hold }: Hold & { readonly listener: Listener },
  work: (parts: Parts) => Promise<Result>,
): Promise<Result> {
  const { now, signal } = runtime;
  await mayBeginHere(workspace);
  return withStored(workspace, runtime, hold, async ({ store, effects, putRight }) => {
    if (putRight !== undefined) listener.onNotice?.(putRight);
    const platform = await connect(workspace, runtime, listener, store);
    try {
      await watchSending(workspace, effects, platform.clock);
      return await work({
        workspace,
        platform,
        store,
        effects,
        session: { now, signal, observer: listener },
      });
    } finally {
      await platform.close();
    }
  });
}

/** As `withParts`, without the platform; `putRight` says what was wrong, if anything was. */
export async function withStored<Result>(
  workspace: Workspace,
  { now, signal }: Pick<Runtime, 'now' | 'signal'>,
  { command, ...hold }: Hold,
  work: (stored: { store: Warehouse; effects: Effects; putRight: string | undefined }) => Promise<Result>,
): Promise<Result> {
  keepPrivate();
  const { liveFile, historyFile, settings, dataDir } = workspace;
  const { maxMemory } = settings.database;
  const holder = { ...hold, command: `readership ${command}`, historyFile, maxMemory, now, signal };
  const store = await openWarehouse(liveFile, holder);
  let journal: EffectsJournal | undefined;
  try {
    journal = await EffectsJournal.open(dataDir);
    const opened = await openEffects(workspace, store, journal, now());
    const { words, unknownDeliveries } = await putRight(store, journal, now());
    const effects = { ...opened.effects, unknownDeliveries };
    return await work({ store, effects, putRight: opened.isNewSandbox ? undefined : words });
  } finally {
    await journal?.close();
    await store.close();
  }
}
