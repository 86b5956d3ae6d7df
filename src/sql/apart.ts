import { spawn } from 'node:child_process';
import { StorageError } from '../errors.js';
import { packageFile } from '../files.js';

/** The command line of this package. */
const CLI = packageFile('dist/cli.js');

/** How to run `readership sql`. */
interface Apart {
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
const GRACE_MS = 6_000;

/**
 * Runs SQL in a separate `readership sql` process, so that no query can block, crash or outlive this one. Throws a
 * `StorageError` with the reason if it fails.
 */
export async function askApart(
  sql: string,
  { maxRows, maxCharacters, ...apart }: Apart & Cut,
): Promise<{ readonly rows: readonly unknown[]; readonly isCut: boolean; readonly note?: string }> {
  const cut = new AbortController();
  let text = '';
  const onText = (piece: string) => {
    if (cut.signal.aborted) return;
    text += piece;
    if (text.length > maxCharacters || text.split('\n', maxRows + 2).length > maxRows + 1) cut.abort();
  };
  const signal = AbortSignal.any([apart.signal, cut.signal]);
  const { code, said } = await runApart(sql, ['--format', 'ndjson'], { ...apart, signal }, onText);
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
export async function writeApart(sql: string, file: string, format: string, apart: Apart): Promise<void> {
  const { code, said } = await runApart(sql, ['--format', format, '--output', file], apart);
  if (code !== 0) throw new StorageError(said || STOPPED);
}

const STOPPED = 'The query was stopped.';

/** The exit code of `readership sql`, and its standard error. */
async function runApart(
  sql: string,
  args: readonly string[],
  { options, cwd, environment: env, timeoutMs, signal }: Apart,
  onText: (piece: string) => void = () => undefined,
): Promise<{ readonly code: number | null; readonly said: string }> {
  const all = [CLI, 'sql', ...args, '--timeout', `${timeoutMs}ms`, ...options];
  const child = spawn(process.execPath, all, { cwd, env });
  const stop = () => child.kill();
  const kill = setTimeout(() => child.kill('SIGKILL'), timeoutMs + GRACE_MS);
  signal.addEventListener('abort', stop);
  let said = '';
  child.stdout.setEncoding('utf8').on('data', onText);
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    said = (said + piece).slice(0, 4_000);
  });
  // A process that ends at once may not read the query.
  child.stdin.on('error', () => undefined).end(sql);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject).on('close', resolve);
  }).finally(() => {
    clearTimeout(kill);
    signal.removeEventListener('abort', stop);
  });
  return { code, said: said.trim() };
}
