import { dirname } from 'node:path';
import { expect } from 'vitest';
import { acquireWorker } from '../src/state/lock.js';
import { createState, openState } from '../src/state/open.js';
import { placeOf } from '../src/state/workspace.js';
import { Sender } from '../src/state/sender.js';
import { afterFile, afterTest } from './cleanup.js';
import { tempDir } from './temp-dir.js';

export type OpenState = Awaited<ReturnType<typeof openTestState>>;

/**
 * The state of a data directory, a new one by default, with its worker and sender; released after the test, or after the
 * tests of the file if a hook opens it.
 */
export async function openTestState(
  directory?: string,
  {
    now = () => new Date('2026-11-18T05:00:00Z'),
    witness,
    isOfFile = false,
  }: { now?: () => Date; witness?: string; isOfFile?: boolean } = {},
) {
  const dataDir = directory ?? (await tempDir());
  const here = await placeOf(dataDir, 'test-machine');
  const state = (await openState(dataDir)) ?? (await createState(dataDir, here));
  const worker = await acquireWorker(dataDir, state, { command: 'readership test', now, maxWaitMs: 5_000 });
  const sender = new Sender({ state, worker, here, witness, whyNot: () => Promise.resolve(undefined) });
  let isOpen = true;
  /** Releases it before the end of the test. */
  const close = async () => {
    if (!isOpen) return;
    isOpen = false;
    await worker.release();
    state.close();
  };
  if (isOfFile) afterFile(close);
  else afterTest(close);
  return { dataDir, state, worker, sender, here, close };
}

const open = new Map<string, Promise<OpenState>>();

/** The state beside a history, opened once in each test. */
export const stateBeside = async ({ path }: { readonly path: string }): Promise<OpenState> => {
  const directory = dirname(path);
  const opened =
    open.get(directory) ??
    openTestState(directory).then((state) => ({
      ...state,
      close: () => {
        open.delete(directory);
        return state.close();
      },
    }));
  open.set(directory, opened);
  afterTest(() => void open.delete(directory));
  return opened;
};

/** Runs one statement in the state beside a history, whoever else has it open. */
export async function changeState(historyFile: string, sql: string): Promise<void> {
  const state = (await openState(dirname(historyFile))) ?? expect.fail('there is no state');
  await state.transaction(() => state.run(sql));
  state.close();
}
