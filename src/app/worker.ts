import { StorageError } from '../errors.js';
import { makeDirectory } from '../files.js';
import { inSequence } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { acquireWorker, type Worker } from '../state/lock.js';
import { createState, openState } from '../state/open.js';
import { placeOf, type SendingPlace } from '../state/place.js';
import { expectLocks } from '../state/probe.js';
import { recover, type Recovered } from '../state/recover.js';
import type { State } from '../state/state.js';
import { readWitness } from '../state/witness.js';
import { expectNoHistory } from './state.js';
import { keepPrivate, type Runtime, type Workspace } from './workspace.js';

/** How long a command waits for another process to end. */
export const MAX_LOCK_WAIT_MS = 30_000;

/** Who holds the lock, such as `export`, and how long it waits for another one. */
export interface Hold {
  readonly command: string;
  readonly maxWaitMs: number;
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

/**
 * Runs `work` as the worker of a workspace, with its state alone. Throws a `LockedError` if another process is the
 * worker, and a `StorageError` if the state must be restored first.
 */
export async function withWorker<Result>(
  workspace: Workspace,
  { now, signal }: Pick<Runtime, 'now' | 'signal'>,
  { command, ...hold }: Hold,
  work: (working: Working) => Promise<Result>,
): Promise<Result> {
  const { dataDir } = workspace;
  const { state, here, isNew } = await openOrCreateState(workspace);
  try {
    const holder = { ...hold, command: `readership ${command}`, now, signal };
    const worker = await acquireWorker(dataDir, state, holder);
    try {
      await expectLocks(dataDir, state);
      if (isNew) await workspace.sandbox?.enterPast(state);
      const recovered = unknownWords(await recover(state, worker, now()));
      return await work({ state, worker, here, recovered });
    } finally {
      await worker.release();
    }
  } finally {
    state.close();
  }
}

/** What a killed process was sending, if anything. */
function unknownWords({ jobs, messages, emails }: Recovered): string | undefined {
  const kinds = Object.entries({ job: jobs, message: messages, email: emails });
  const found = inSequence(kinds.flatMap(([kind, count]) => (count === 0 ? [] : counted(count, kind))));
  if (found === '') return undefined;
  return `A process was killed while sending: ${found} may or may not have been sent, and will not be sent again automatically: readership status`;
}

/**
 * Opens the state, or creates it for this place. Throws a `StorageError` if it is missing although the workspace has
 * sent something: it must not begin again.
 */
export async function openOrCreateState({ dataDir, historyFile, witness, machine }: Workspace) {
  keepPrivate();
  await makeDirectory(dataDir);
  const here = await placeOf(dataDir, machine);
  const known = await openState(dataDir);
  if (known !== undefined) return { state: known, here, isNew: false };
  await expectNoHistory({ dataDir, historyFile });
  if (witness !== undefined && readWitness(witness) !== undefined)
    throw new StorageError(
      `${dataDir} has no state, although this workspace has sent jobs or emails: they would be sent again. Nothing was changed.\n` +
        'If the directory was moved, or its disk is not mounted, correct that. To restore a backup: readership restore --from FILE\n' +
        `To start over: rm '${witness}'`,
    );
  return { state: await createState(dataDir, here), here, isNew: true };
}
