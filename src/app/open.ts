import { ClockError } from '../api/errors.js';
import type { MailTransport } from '../mail/transport.js';
import { Sender } from '../state/sender.js';
import type { Observer, Parts } from '../steps/parts.js';
import { lazyWarehouse, refuseToForget } from '../warehouse/open.js';
import { publishedState } from '../warehouse/saved-state.js';
import { type Callbacks, connect } from './platform.js';
import { type Hold, withWorker } from './worker.js';
import type { Runtime, Workspace } from './workspace.js';

/** Called with events while the worker's lock is held. */
export type Listener = Callbacks & Observer;

const TOO_FAR_OFF =
  'Nothing is sent while the clocks of this machine and the platform are more than an hour apart. ' +
  'Set whichever is wrong: readership doctor';

/**
 * Opens a workspace that was read, as its worker, runs `work` with its parts, and releases them, however it ends. Throws
 * a `LockedError` if another process is the worker, and a `StorageError` if something must be restored first.
 */
export async function withParts<Result>(
  workspace: Workspace,
  { now, signal }: Pick<Runtime, 'now' | 'signal'>,
  { listener, ...hold }: Hold & { readonly listener: Listener },
  work: (parts: Parts) => Promise<Result>,
): Promise<Result> {
  const { liveFile, historyFile, witness, credentials } = workspace;
  // A workspace that has loaded something does not begin again because its files are missing.
  await refuseToForget(liveFile, historyFile);
  return withWorker(workspace, { now, signal }, hold, async ({ state, worker, here, recovered }) => {
    if (recovered !== undefined) listener.onNotice?.(recovered);
    const holder = { ...hold, command: `readership ${hold.command}`, historyFile, now, signal };
    const store = lazyWarehouse(liveFile, holder);
    try {
      const platform = await connect(workspace, { now, signal }, listener, state);
      try {
        const whyNot = async () => {
          await platform.clock.ask();
          return platform.clock.isTooFarOff() ? new ClockError(TOO_FAR_OFF) : undefined;
        };
        const published = () => publishedState(store, historyFile);
        const sender = new Sender({ state, worker, here, witness, published, whyNot });
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
