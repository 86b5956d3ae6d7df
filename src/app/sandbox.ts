import { join } from 'node:path';
import { referenceOf } from '../agents/job.js';
import { notesFileIn } from '../config/notes.js';
import type { EffectsJournal } from '../effects/journal.js';
import { writeWhole } from '../files.js';

/** The built-in sandbox of a workspace. */
export interface OwnSandbox {
  /** Serves it until `close`: the platform, and the code host of its pull requests. */
  readonly start: () => Promise<{ baseUrl: string; codeHostUrl: string; close: () => Promise<void> }>;
  /** Gives a new workspace the earlier jobs of the sandbox, and its notes. */
  readonly enterPast: (journal: EffectsJournal) => Promise<void>;
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
  enterPast: async (journal) => {
    const { pastEntries, pastNotes } = await import('../sandbox/past.js');
    const { defaultFirstDay } = await import('../sandbox/index.js');
    await journal.append(pastEntries(now(), referenceOf));
    writeWhole(notesFileIn(dataDir), pastNotes(defaultFirstDay(now())), 0o644);
  },
});
