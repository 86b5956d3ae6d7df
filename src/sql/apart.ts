import { spawn } from 'node:child_process';
import { StorageError } from '../errors.js';
import { packageFile } from '../files.js';

/** The command line of this package. */
export const CLI = packageFile('dist/cli.js');

interface Apart {
  /** Options of `readership sql`, such as `--config FILE`. */
  readonly options: readonly string[];
  readonly cwd: string;
  /** Without secrets. */
  readonly environment: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  readonly maxRows: number;
  /** Of the answer as JSON. */
  readonly maxCharacters: number;
  readonly signal: AbortSignal;
}

/** How long a process may take to end by itself, and to remove its temporary files. */
const GRACE_MS = 6_000;

/**
 * Answers SQL in a process of its own, `readership sql`, so that no query can hold up, crash or outlive this one. Throws
 * a `StorageError` with the reason when it fails.
 */
export async function askApart(
  sql: string,
  { options, cwd, environment: env, timeoutMs, maxRows, maxCharacters, signal }: Apart,
): Promise<{ readonly rows: readonly unknown[]; readonly isCut: boolean; readonly note?: string }> {
  const args = [CLI, 'sql', '--format', 'ndjson', '--timeout', `${timeoutMs}ms`, ...options];
  const child = spawn(process.execPath, args, { cwd, env });
  const stop = () => child.kill();
  const kill = setTimeout(() => child.kill('SIGKILL'), timeoutMs + GRACE_MS);
  signal.addEventListener('abort', stop);
  let [text, said, isCut] = ['', '', false];
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    if (isCut) return;
    text += piece;
    isCut = text.length > maxCharacters || text.split('\n', maxRows + 2).length > maxRows + 1;
    if (isCut) stop();
  });
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    said = (said + piece).slice(0, 4_000);
  });
  // A process that ends at once reads no query.
  child.stdin.on('error', () => undefined).end(sql);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject).on('close', resolve);
  }).finally(() => {
    clearTimeout(kill);
    signal.removeEventListener('abort', stop);
  });
  if (!isCut && code !== 0) throw new StorageError(said.trim() || 'The query was stopped.');
  const rows = text
    .split('\n')
    .slice(0, -1)
    .slice(0, maxRows)
    .map((line): unknown => JSON.parse(line));
  return { rows, isCut, ...(said === '' || isCut ? {} : { note: said.trim() }) };
}
