import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StorageError } from '../errors.js';

/** What queries may use. Sizes are bytes. */
export interface SqlLimits {
  readonly maxMemory: number;
  readonly maxTempSpace: number;
  readonly timeoutMs: number;
}

/** The settings of DuckDB that limit queries, with a directory of their own for temporary files. */
export async function settingsFor({ maxMemory, maxTempSpace }: SqlLimits) {
  return {
    memory_limit: `${maxMemory}B`,
    max_temp_directory_size: `${maxTempSpace}B`,
    // Without a directory, DuckDB keeps everything in memory.
    temp_directory: await mkdtemp(join(tmpdir(), 'readership-sql-')).catch(() => ''),
  };
}

/** Removes the temporary files of a database that was opened with these settings. */
export function removeTempFiles({
  temp_directory: directory,
}: Awaited<ReturnType<typeof settingsFor>>): void {
  if (directory !== '') rmSync(directory, { recursive: true, force: true });
}

const LOOK_EVERY_MS = 100;

/** How long DuckDB may take to stop: a few functions cannot be interrupted while they run. */
const GRACE_MS = 5_000;

/** Large texts are not counted by DuckDB: the whole process may take this much, and what Node.js needs. */
const processLimit = ({ maxMemory }: SqlLimits): number => 1.5 * maxMemory + 2 ** 29;

/**
 * Does some work, interrupted with a reason when its time or the memory of the process is over. Work
 * that does not stop then is given up: `onStuck` is to end the process.
 */
export async function watched(
  work: () => Promise<void>,
  interrupt: () => void,
  limits: SqlLimits,
  onStuck: (reason: string) => void,
): Promise<void> {
  const startMs = performance.now();
  let stopped: { reason: string; ms: number } | undefined;
  const timer = setInterval(() => {
    const ms = performance.now();
    if (stopped === undefined) {
      const reason = overLimit(limits, ms - startMs);
      if (reason === undefined) return;
      stopped = { reason, ms };
    } else if (ms - stopped.ms > GRACE_MS) onStuck(stopped.reason);
    // DuckDB forgets an interruption that comes before the query begins, so once is not enough.
    interrupt();
  }, LOOK_EVERY_MS);
  try {
    await work();
  } catch (cause) {
    throw stopped === undefined ? cause : new StorageError(`The query failed. ${stopped.reason}`, { cause });
  } finally {
    clearInterval(timer);
  }
}

function overLimit(limits: SqlLimits, elapsedMs: number): string | undefined {
  if (elapsedMs > limits.timeoutMs)
    return `It took longer than ${limits.timeoutMs / 1000} s (--timeout, or sql.timeout).`;
  if (process.memoryUsage.rss() > processLimit(limits)) return tooMuch(limits);
  return undefined;
}

export const tooMuch = ({ maxMemory, maxTempSpace }: SqlLimits): string =>
  `It needs more memory than ${maxMemory / 1e9} GB (sql.maxMemory), or more temporary files than ` +
  `${maxTempSpace / 1e9} GB (sql.maxTempSpace). Query less at a time, or raise these settings.`;

/**
 * Runs this command again without some variables of its environment, and returns its exit code. To
 * delete them here would leave them in the memory of this process, and so in a core file of it.
 */
export async function runWithout(variables: readonly string[], signal: AbortSignal): Promise<number> {
  const env = { ...process.env };
  for (const name of variables) Reflect.deleteProperty(env, name);
  const args = [...process.execArgv, ...process.argv.slice(1)];
  const child = spawn(process.execPath, args, { env, stdio: 'inherit' });
  const stop = () => child.kill();
  signal.addEventListener('abort', stop);
  return new Promise<number>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, killedBy) => {
      if (code !== null) resolve(code);
      else reject(new StorageError(`The query ended its process (${killedBy ?? 'unknown signal'}).`));
    });
  }).finally(() => {
    signal.removeEventListener('abort', stop);
  });
}
