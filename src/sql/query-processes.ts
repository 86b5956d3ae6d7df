import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pLimit from 'p-limit';
import { z } from 'zod';
import { StorageError } from '../errors.js';
import { packageFile } from '../files.js';
import { timeLimit } from '../sleep.js';
import { type Row, rowSchema } from '../history/duckdb.js';
import { startNode } from './limits.js';

/** How to run `readership sql`. */
interface Command {
  /** Options of `readership sql`, such as `--config FILE`. */
  readonly options: readonly string[];
  readonly cwd: string;
  /** The environment, without secrets. */
  readonly environment: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  /** Messages show paths relative to it, because the assistant need not know where it is. */
  readonly dataDir: string;
}

/** Limits of a result; the rest is cut off. */
interface Cut {
  readonly maxRows: number;
  /** Length of the result as JSON. */
  readonly maxCharacters: number;
}

/** The rows of a result, and what `readership sql` said about it. */
export interface Rows {
  readonly rows: readonly Row[];
  readonly isCut: boolean;
  /** The number of all rows; null if there are too many to count. */
  readonly found: number | null;
  readonly note?: string;
}

/** How long a process may take to stop by itself after the time limit of its query. */
const END_MS = 6_000;

/** How far the rows of a result are counted that is cut. */
const MOST_COUNTED = 100_000;
const MOST_COUNTED_CHARACTERS = 20_000_000;

const own = fileURLToPath(new URL('../cli.js', import.meta.url));
/** The command line of the same build; where the sources themselves run, of the newest. */
const CLI = existsSync(own) ? own : packageFile('dist/cli.js');

/**
 * Runs SQL in `readership sql` processes, so that no query can block, crash or outlive this one. Each answers one query,
 * from the newest history. Queries wait for each other, because each may use much memory.
 */
export class QueryProcesses {
  readonly #oneAtATime = pLimit(1);
  /** Ends the process that runs, if one does. */
  readonly #closing = new AbortController();

  constructor(private readonly command: Command) {}

  /** The first rows of a result. Throws a `StorageError` with the reason if the query fails. */
  ask(sql: string, cut: Cut, signal: AbortSignal): Promise<Rows> {
    return this.#oneAtATime(() => this.#firstRows(sql, cut, AbortSignal.any([signal, this.#closing.signal])));
  }

  /** Ends the process that runs, and resolves when its files are removed. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#oneAtATime(() => undefined);
  }

  async #firstRows(sql: string, { maxRows, maxCharacters }: Cut, signal: AbortSignal): Promise<Rows> {
    let text = '';
    const seen = { rows: 0, characters: 0 };
    const isEndless = () => seen.rows > MOST_COUNTED || seen.characters > MOST_COUNTED_CHARACTERS;
    const said = await this.#answer(sql, signal, (piece) => {
      if (text.length <= maxCharacters) text += piece;
      seen.characters += piece.length;
      seen.rows += piece.split('\n').length - 1;
      return isEndless() ? 'enough' : 'more';
    });
    const whole = linesWithin(text, maxCharacters).slice(0, maxRows);
    const rows = z.array(rowSchema).parse(whole.map((line): unknown => JSON.parse(line)));
    const isCut = isEndless() || seen.rows > rows.length;
    return { rows, isCut, found: isEndless() ? null : seen.rows, ...(said !== '' && { note: said }) };
  }

  /** Runs a query until `onText` has enough, and returns its standard error. Throws if the query failed. */
  async #answer(
    sql: string,
    signal: AbortSignal,
    onText: (piece: string) => 'enough' | 'more',
  ): Promise<string> {
    const { options, cwd, environment, timeoutMs, dataDir } = this.command;
    const args = [CLI, 'sql', '--format', 'ndjson', '--timeout', `${timeoutMs}ms`, ...options];
    const directory = await mkdtemp(join(tmpdir(), 'readership-query-'));
    try {
      signal.throwIfAborted();
      const { child, ended } = startNode(args, { cwd, env: { ...environment, TMPDIR: directory } });
      let said = '';
      const enough = new AbortController();
      const limit = timeLimit(timeoutMs + END_MS, AbortSignal.any([signal, enough.signal]));
      // It has nothing to finish, and its temporary files are removed here.
      limit.addEventListener('abort', () => child.kill('SIGKILL'));
      child.stdout?.setEncoding('utf8').on('data', (piece: string) => {
        if (onText(piece) === 'enough') enough.abort();
      });
      child.stderr?.setEncoding('utf8').on('data', (piece: string) => {
        said = (said + piece).slice(0, 4_000);
      });
      // A process that ends at once may not read the query.
      child.stdin?.on('error', () => undefined).end(sql);
      const { code, killedBy } = await ended;
      signal.throwIfAborted();
      if (enough.signal.aborted) return '';
      const words = said.replaceAll(`${dataDir}/`, '');
      if (code === 0) return words.trim();
      if (limit.aborted)
        throw new StorageError(`The query failed. It took longer than ${timeoutMs / 1000} s.`);
      throw new StorageError(reasonOf(words, killedBy));
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }
}

/** The whole lines among the first characters of a text. */
const linesWithin = (text: string, characters: number): string[] =>
  text.slice(0, characters).split('\n').slice(0, -1);

const STOPPED = 'The query was stopped.';

/** Why a query failed. After a crash, standard error has a trace of Node.js, which helps no assistant. */
function reasonOf(said: string, killedBy: string | null): string {
  const own = killedBy === null ? said : (/The query failed[^]*/.exec(said)?.[0] ?? '');
  if (own.trim() !== '') return own.trim();
  if (killedBy === null) return STOPPED;
  return `The query failed. Its process crashed (${killedBy}), perhaps because the query is nested too deeply or needs too much memory. Simplify it.`;
}
