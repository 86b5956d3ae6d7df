import { spawn, type SpawnOptions } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ExitCode, StorageError } from '../errors.js';
import { packageFile } from '../files.js';

/** Resource limits of queries. Sizes are in bytes. */
export interface SqlLimits {
  readonly maxMemory: number;
  readonly maxTempSpace: number;
  readonly timeoutMs: number;
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
 * Runs work and interrupts it with a reason when it exceeds its time or memory limit. If it does
 * not stop then, `onStuck` must end the process.
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
  if (elapsedMs > limits.timeoutMs)
    return `It took longer than ${limits.timeoutMs / 1000} s (--timeout, or sql.timeout).`;
  if (process.memoryUsage.rss() > processLimit(limits)) return tooMuch(limits);
  return undefined;
}

export const tooMuch = ({ maxMemory, maxTempSpace }: SqlLimits): string =>
  `It needs more memory than ${maxMemory / 1e9} GB (sql.maxMemory), or more temporary files than ` +
  `${maxTempSpace / 1e9} GB (sql.maxTempSpace). Query less data at a time, or raise these settings.`;

/**
 * Restarts this command without some environment variables, and returns its exit code. Deleting
 * them here would leave them in the memory of this process, and so in its core file.
 */
export async function runWithout(variables: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  const env = { ...process.env };
  for (const name of variables) Reflect.deleteProperty(env, name);
  const args = [...process.execArgv, ...process.argv.slice(1)];
  const { ended } = startNode(args, { env, stdio: 'inherit' }, signal);
  const { code, killedBy } = await ended;
  if (code === null)
    throw new StorageError(`The query crashed its process (${killedBy ?? 'unknown signal'}).`);
  return ([0, 2, 75] as const).find((known) => known === code) ?? 1;
}

/** Starts Node.js, which ends when the signal aborts. */
function startNode(args: readonly string[], options: SpawnOptions, signal: AbortSignal) {
  const child = spawn(process.execPath, args, options);
  const stop = () => child.kill();
  signal.addEventListener('abort', stop);
  const ended = new Promise<{ code: number | null; killedBy: string | null }>((resolve, reject) => {
    child.on('error', reject).on('close', (code, killedBy) => resolve({ code, killedBy }));
  }).finally(() => signal.removeEventListener('abort', stop));
  return { child, ended };
}

/** The command line of this package. */
const CLI = packageFile('dist/cli.js');

/** How to run `readership sql`. */
interface Command {
  /** Options of `readership sql`, such as `--config FILE`. */
  readonly options: readonly string[];
  readonly cwd: string;
  /** The environment, without secrets. */
  readonly environment: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Limits of a result; the rest is cut off. */
export interface Cut {
  readonly maxRows: number;
  /** Length of the result as JSON. */
  readonly maxCharacters: number;
}

/** How long a process may take to stop and to remove its temporary files. */
const END_MS = 6_000;

/**
 * Runs SQL in a separate `readership sql` process, so that no query can block, crash or outlive
 * this one. Throws a `StorageError` with the reason if it fails.
 */
export async function askInProcess(
  sql: string,
  { maxRows, maxCharacters, ...command }: Command & Cut,
): Promise<{ readonly rows: readonly unknown[]; readonly isCut: boolean; readonly note?: string }> {
  const cut = new AbortController();
  let text = '';
  const onText = (piece: string) => {
    if (cut.signal.aborted) return;
    text += piece;
    if (text.length > maxCharacters || text.split('\n', maxRows + 2).length > maxRows + 1) cut.abort();
  };
  const signal = AbortSignal.any([command.signal, cut.signal]);
  const { code, said } = await runCommand(sql, ['--format', 'ndjson'], { ...command, signal }, onText);
  const isCut = cut.signal.aborted;
  if (!isCut && code !== 0) throw new StorageError(said || STOPPED);
  const rows = text
    .split('\n')
    .slice(0, -1)
    .slice(0, maxRows)
    .map((line): unknown => JSON.parse(line));
  return { rows, isCut, ...(said === '' || isCut ? {} : { note: said }) };
}

/** Writes the result of SQL to a file in the same way. */
export async function writeInProcess(
  sql: string,
  file: string,
  format: string,
  command: Command,
): Promise<void> {
  const { code, said } = await runCommand(sql, ['--format', format, '--output', file], command);
  if (code !== 0) throw new StorageError(said || STOPPED);
}

const STOPPED = 'The query was stopped.';

/** The exit code of `readership sql`, and its standard error. */
async function runCommand(
  sql: string,
  args: readonly string[],
  { options, cwd, environment: env, timeoutMs, signal }: Command,
  onText: (piece: string) => void = () => undefined,
): Promise<{ readonly code: number | null; readonly said: string }> {
  const all = [CLI, 'sql', ...args, '--timeout', `${timeoutMs}ms`, ...options];
  const { child, ended } = startNode(all, { cwd, env }, signal);
  const kill = setTimeout(() => child.kill('SIGKILL'), timeoutMs + END_MS);
  let said = '';
  child.stdout?.setEncoding('utf8').on('data', onText);
  child.stderr?.setEncoding('utf8').on('data', (piece: string) => {
    said = (said + piece).slice(0, 4_000);
  });
  // A process that ends at once may not read the query.
  child.stdin?.on('error', () => undefined).end(sql);
  const { code } = await ended.finally(() => clearTimeout(kill));
  return { code, said: said.trim() };
}
