import { createReadStream } from 'node:fs';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import pLimit from 'p-limit';
import { withoutSecrets } from '../app/secrets.js';
import { optionsOf, type Runtime, type Workspace, type WorkspaceOptions } from '../app/workspace.js';
import { StorageError } from '../errors.js';
import { askApart, type Cut, writeApart } from '../sql/apart.js';

/** Queries at the same time: each is a process that may take `sql.maxMemory`. Others wait, or are refused. */
const AT_ONCE = 2;
const WAITING_AT_MOST = 8;
export const LONGEST_MS = 60_000;
/** Of an answer to download. */
const MAX_FILE_BYTES = 500_000_000;
const LOOK_EVERY_MS = 250;
/** What an answer can be taken away as. */
export const FORMATS = [
  { name: 'csv', type: 'text/csv' },
  { name: 'json', type: 'application/json' },
  { name: 'parquet', type: 'application/vnd.apache.parquet' },
] as const;

/** Answers the SQL of visitors, each query in a process of its own, as `readership sql` does. */
export class Questions {
  readonly #inTurn = pLimit(AT_ONCE);
  readonly #apart;

  constructor(
    { settings }: Workspace,
    options: WorkspaceOptions,
    { workingDirectory: cwd, environment }: Runtime,
  ) {
    this.#apart = {
      ...{ cwd, environment: withoutSecrets(environment, settings), options: optionsOf(options) },
      timeoutMs: Math.min(settings.sql.timeout, LONGEST_MS),
    };
  }

  /** The first rows of an answer. */
  answer(sql: string, signal: AbortSignal, limits: Cut) {
    return this.#turn(signal, () => askApart(sql, { ...this.#apart, ...limits, signal }));
  }

  /** The whole answer as a file that is gone once it has been read, or `signal` aborts. */
  async file(sql: string, format: (typeof FORMATS)[number]['name'], signal: AbortSignal): Promise<Readable> {
    const directory = await mkdtemp(join(tmpdir(), 'readership-answer-'));
    const remove = () => rm(directory, { recursive: true, force: true });
    const file = join(directory, `answer.${format}`);
    const tooLarge = new AbortController();
    const look = setInterval(() => {
      void sizeOf(directory).then((size) => {
        if (size > MAX_FILE_BYTES) tooLarge.abort();
      });
    }, LOOK_EVERY_MS);
    try {
      const apart = { ...this.#apart, signal: AbortSignal.any([signal, tooLarge.signal]) };
      await this.#turn(signal, () => writeApart(sql, file, format, apart));
      tooLarge.signal.throwIfAborted();
    } catch (error) {
      await remove();
      if (!tooLarge.signal.aborted) throw error;
      throw new StorageError(
        `The answer is larger than ${MAX_FILE_BYTES / 1e6} MB. Ask for less, or use readership sql --output.`,
      );
    } finally {
      clearInterval(look);
    }
    const answer = createReadStream(file).on('close', () => void remove());
    // After HEAD, nobody reads it.
    const leave = () => answer.destroy();
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave);
    return answer;
  }

  #turn<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    if (this.#inTurn.pendingCount >= WAITING_AT_MOST)
      throw new BusyError('Too many queries are running. Try again in a minute.');
    return this.#inTurn(() => {
      signal.throwIfAborted();
      return work();
    });
  }
}

/** Bytes in the files below a directory, which come and go. */
async function sizeOf(directory: string): Promise<number> {
  const names = await readdir(directory, { recursive: true }).catch(() => []);
  const sizes = names.map((name) =>
    stat(join(directory, name)).then(
      ({ size }) => size,
      () => 0,
    ),
  );
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

/** More is asked at once than this machine should answer. */
export class BusyError extends StorageError {}
