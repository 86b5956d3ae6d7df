import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { afterTest } from '../cleanup.js';
import { compiled } from '../compiled.js';
import { tempDir } from '../temp-dir.js';

const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url));

const answer = z.union([
  z.object({ value: z.unknown() }).strict(),
  z.object({ error: z.string(), message: z.string() }).strict(),
]);

async function compile(): Promise<string> {
  const directory = await tempDir();
  await symlink(MODULES, join(directory, 'node_modules'));
  // Other users run it, too.
  await chmod(directory, 0o755);
  return compiled(new URL('./state-process.ts', import.meta.url), directory);
}

interface ProcessOptions {
  readonly witness?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The id of the user that runs it. */
  readonly user?: number;
}

/** Another process with the state of a data directory: see state-process.ts. */
export async function otherProcess(dataDir: string, { witness, env, user }: ProcessOptions = {}) {
  const child = spawn(
    process.execPath,
    [await compile(), dataDir, ...(witness === undefined ? [] : [witness])],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
      ...(user === undefined ? {} : { uid: user, gid: user }),
    },
  );
  const ended = once(child, 'exit');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  afterTest(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const told = async (command: string, ...values: unknown[]) => {
    child.stdin.write(`${JSON.stringify([command, ...values])}\n`);
    const line = await lines.next();
    return line.done === true ? undefined : answer.parse(JSON.parse(line.value));
  };
  return {
    pid: child.pid ?? 0,
    /** Its answer, once it has done what it was told: a value, or an error. Undefined if it died. */
    told,
    /** As `told`, for what must succeed. */
    does: async (command: string, ...values: unknown[]): Promise<unknown> => {
      const found = await told(command, ...values);
      if (found !== undefined && 'value' in found) return found.value;
      throw new Error(found === undefined ? `it died on ${command}` : found.message);
    },
    signal: (signal: NodeJS.Signals) => child.kill(signal),
    /** Ends it as a crash would. */
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
    ended,
  };
}
