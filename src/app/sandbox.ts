import { join } from 'node:path';
import { notesFileIn } from '../config/notes.js';
import { writeWhole } from '../files.js';
import type { State } from '../state/state.js';

/** The built-in sandbox of a workspace. */
export interface OwnSandbox {
  /** Serves it until `close`: the platform, and the code host of its pull requests. */
  readonly start: () => Promise<{ baseUrl: string; codeHostUrl: string; close: () => Promise<void> }>;
  /** Gives a new workspace the earlier jobs of the sandbox, and its notes. */
  readonly enterPast: (state: State) => Promise<void>;
}

/** The sandbox is loaded only where it is used. */
export const ownSandbox = (dataDir: string, now: () => Date): OwnSandbox => ({
  start: async () => {
    const { startSandbox } = await import('../sandbox/index.js');
    const { pastJobs } = await import('../sandbox/past.js');
    const stateFile = join(dataDir, 'sandbox.json');
    const { baseUrl, close } = await startSandbox({ now, jobs: pastJobs(now()), stateFile });
    return { baseUrl, codeHostUrl: `${baseUrl}/_sandbox/code`, close };
  },
  enterPast: async (state) => {
    const { enterPastJobs, pastNotes } = await import('../sandbox/past.js');
    const { defaultFirstDay } = await import('../sandbox/index.js');
    await state.transaction(() => {
      enterPastJobs(state, now());
    });
    writeWhole(notesFileIn(dataDir), pastNotes(defaultFirstDay(now())), 0o644);
  },
});
