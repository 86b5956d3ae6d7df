import { spawn, type SpawnOptions } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ExitCode, StorageError } from '../errors.js';
import { maxMemory } from '../history/duckdb.js';

/** Resource limits of queries. Sizes are in bytes. */
export interface SqlLimits {
  readonly maxMemory: number;
  readonly maxTempSpace: number;
  readonly timeoutMs: number;
}

/** The limits of a query, which may need more memory than an export. */
export function queryLimits(timeoutMs = 5 * 60_000): SqlLimits {
  const ofQuery = 2 * maxMemory();
  return { maxMemory: ofQuery, maxTempSpace: 5 * ofQuery, timeoutMs };
}

/** DuckDB settings that limit queries, with a separate directory for temporary files and how to remove it. */
export async function settingsFor({ maxMemory, maxTempSpace }: SqlLimits) {
  // Without a directory, DuckDB keeps everything in memory.
  const directory = await mkdtemp(join(tmpdir(), 'readership-sql-')).catch(() => '');
  return {
    duckdb: {
      memory_limit: `${maxMemory}B`,
      max_temp_directory_size: `${maxTempSpace}B`,
      temp_directory: directory,
    },
    removeTempFiles: () => {
      if (directory !== '') rmSync(directory, { recursive: true, force: true });
    },
  };
}

const LOOK_EVERY_MS = 100;

/** How long DuckDB may take to stop; a few functions cannot be interrupted. */
const GRACE_MS = 5_000;

/** Limit of the whole process, because DuckDB does not count large strings. */
const processLimit = ({ maxMemory }: SqlLimits): number => 1.5 * maxMemory + 2 ** 29;

/**
 * Runs work and interrupts it with a reason when it exceeds its time or memory limit, or when `signal`
 * stops it. If it does not stop then, `onStuck` must end the process.
 */
export async function watched(
  work: () => Promise<void>,
  interrupt: () => void,
  limits: SqlLimits,
  onStuck: (reason: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const startMs = performance.now();
  let stopped: { reason: string; ms: number } | undefined;
  const timer = setInterval(() => {
    const ms = performance.now();
    if (stopped === undefined) {
      const reason = signal.aborted ? 'It was stopped.' : overLimit(limits, ms - startMs);
      if (reason === undefined) return;
      stopped = { reason, ms };
    } else if (ms - stopped.ms > GRACE_MS) onStuck(stopped.reason);
    // DuckDB ignores an interruption that comes before the query begins, so one is not enough.
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
  if (elapsedMs > limits.timeoutMs) return `It took longer than ${limits.timeoutMs / 1000} s (--timeout).`;
  if (process.memoryUsage.rss() > processLimit(limits)) return tooMuch(limits);
  return undefined;
}

const inGigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`;

export const tooMuch = ({ maxMemory, maxTempSpace }: SqlLimits): string =>
  `It needs more memory than ${inGigabytes(maxMemory)}, or more temporary files than ${inGigabytes(maxTempSpace)}. ` +
  `Query less data at a time, or open data/history.duckdb with DuckDB itself.`;

/**
 * Restarts this command without some environment variables, and returns its exit code. Deleting
 * them here would leave them in the memory of this process, and so in its core file.
 */
export async function runWithout(variables: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  const env = { ...process.env };
  for (const name of variables) Reflect.deleteProperty(env, name);
  const args = [...process.execArgv, ...process.argv.slice(1)];
  const { child, ended } = startNode(args, { env, stdio: 'inherit' });
  signal.addEventListener('abort', () => child.kill());
  const { code, killedBy } = await ended;
  if (code === null)
    throw new StorageError(`The query crashed its process (${killedBy ?? 'unknown signal'}).`);
  return ([0, 2, 75] as const).find((known) => known === code) ?? 1;
}

/** Starts Node.js. `ended` resolves once it has stopped and its output has been read. */
export function startNode(args: readonly string[], options: SpawnOptions) {
  const child = spawn(process.execPath, args, options);
  const ended = new Promise<{ code: number | null; killedBy: string | null }>((resolve, reject) => {
    child.on('error', reject).on('close', (code, killedBy) => resolve({ code, killedBy }));
  });
  return { child, ended };
}
