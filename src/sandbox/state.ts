import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { type Day, parseDay } from '../day.js';
import { messageOf, StorageError } from '../errors.js';
import { storedJobSchema } from './jobs/lifecycle.js';

const stateSchema = z.object({
  version: z.literal(1),
  seed: z.int(),
  firstDay: z.string().transform((text, context): Day => {
    const parsed = parseDay(text);
    if (parsed !== undefined) return parsed;
    context.addIssue({ code: 'custom', message: 'not a day' });
    return z.NEVER;
  }),
  jobs: z.array(storedJobSchema),
});
/** What a sandbox remembers. Traffic is not in it: it follows from `seed` and `firstDay`. */
export type SandboxState = z.infer<typeof stateSchema>;

/** Where the state lives. `read` is always current: another process may have written since. */
export interface StateStore {
  readonly read: () => SandboxState;
  readonly write: (state: SandboxState) => void;
}

/** State that ends with the process. */
export function memoryState(initial: SandboxState): StateStore {
  let state = initial;
  return {
    read: () => state,
    write: (next) => {
      state = next;
    },
  };
}

function load(file: string): SandboxState | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new StorageError(`Cannot read the sandbox's state: ${messageOf(error)}`, { cause: error });
  }
  try {
    return stateSchema.parse(JSON.parse(text));
  } catch (error) {
    const advice = 'Delete it to start a new sandbox.';
    throw new StorageError(`${file} does not hold the state of a sandbox of this version. ${advice}`, {
      cause: error,
    });
  }
}

/** Written beside and renamed over, so that a reader finds the old state or the new one, never half of one. */
function save(file: string, state: SandboxState): void {
  const beside = `${file}.${process.pid}.tmp`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(beside, JSON.stringify(state, null, 1), { mode: 0o600 });
    renameSync(beside, file);
  } catch (error) {
    throw new StorageError(`Cannot write the sandbox's state: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * State in a JSON file, begun with `initial` if there is none yet. Reading, changing and writing in one synchronous
 * go keeps requests of one process apart; two processes that create jobs in the same millisecond are not.
 */
export function fileState(file: string, initial: SandboxState): StateStore {
  if (load(file) === undefined) save(file, initial);
  return {
    read: () => load(file) ?? initial,
    write: (state) => {
      save(file, state);
    },
  };
}
