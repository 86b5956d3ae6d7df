import { createReadStream } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import pLimit from 'p-limit';
import { z } from 'zod';
import { withoutSecrets } from '../app/secrets.js';
import { optionsOf, type Runtime, type Workspace, type WorkspaceOptions } from '../app/workspace.js';
import { problemOf } from '../config/problems.js';
import { ConfigurationError, messageOf, StorageError } from '../errors.js';
import { exists, ignoreMissing, writeWhole } from '../files.js';
import { askInProcess, type Cut, writeInProcess } from '../sql/process.js';

/** Concurrent queries: each is a process that may use `sql.maxMemory`. Others wait, or are refused. */
const AT_ONCE = 2;
const WAITING_AT_MOST = 8;
export const LONGEST_MS = 60_000;
/** The largest answer to download. */
const MAX_FILE_BYTES = 500_000_000;
const LOOK_EVERY_MS = 250;
/** The formats of downloads. */
export const FORMATS = [
  { name: 'csv', type: 'text/csv' },
  { name: 'json', type: 'application/json' },
  { name: 'parquet', type: 'application/vnd.apache.parquet' },
] as const;

/** Answers the SQL of visitors, each query in its own `readership sql` process. */
export class Questions {
  readonly #inTurn = pLimit(AT_ONCE);
  readonly #settings;

  constructor({ settings }: Workspace, options: WorkspaceOptions, runtime: Runtime) {
    this.#settings = {
      ...{ options: optionsOf(options), cwd: runtime.workingDirectory },
      environment: withoutSecrets(runtime.environment, settings),
      timeoutMs: Math.min(settings.sql.timeout, LONGEST_MS),
    };
  }

  /** The first rows of an answer. */
  answer(sql: string, signal: AbortSignal, limits: Cut) {
    return this.#turn(signal, () => askInProcess(sql, { ...this.#settings, ...limits, signal }));
  }

  /** The whole answer as a file that is deleted once it has been read, or when `signal` aborts. */
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
      const settings = { ...this.#settings, signal: AbortSignal.any([signal, tooLarge.signal]) };
      await this.#turn(signal, () => writeInProcess(sql, file, format, settings));
      tooLarge.signal.throwIfAborted();
    } catch (error) {
      await remove();
      if (!tooLarge.signal.aborted) throw error;
      throw new StorageError(
        `The answer is larger than ${MAX_FILE_BYTES / 1e6} MB. Narrow the query, or use readership sql --output.`,
      );
    } finally {
      clearInterval(look);
    }
    const answer = createReadStream(file).on('close', () => void remove());
    // The answer to a HEAD request is never read.
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

/** The total size of the files below a directory, which come and go. */
async function sizeOf(directory: string): Promise<number> {
  const names = await readdir(directory, { recursive: true }).catch(() => []);
  const files = await Promise.all(names.map((name) => stat(join(directory, name)).catch(() => undefined)));
  return files.reduce((sum, file) => sum + (file?.size ?? 0), 0);
}

/** More queries at once than this machine should answer. */
export class BusyError extends StorageError {}

/** In characters: the longest SQL in an address or a saved question. */
export const MAX_SQL = 8_000;

/** Such a name cannot lead out of the folder. */
const NAME = /^[\p{L}\p{N}](?:[\p{L}\p{N} ._-]{0,78}[\p{L}\p{N}])?$/u;

const form = z.object({
  action: z.enum(['save', 'delete']),
  name: z.string().trim().regex(NAME, 'use up to 80 letters, digits, spaces, hyphens, dots and underscores'),
  /** The question that was open. */
  opened: z.string().default(''),
  sql: z.string().max(MAX_SQL, 'too long').default(''),
});

/** Saved questions: files `questions/NAME.sql` next to the configuration. */
export class SavedQuestions {
  readonly #folder: string;

  constructor({ workspaceDir, dataDir }: Pick<Workspace, 'workspaceDir' | 'dataDir'>) {
    this.#folder = join(workspaceDir ?? dataDir, 'questions');
  }

  async names(): Promise<string[]> {
    const files = (await readdir(this.#folder).catch(ignoreMissing)) ?? [];
    const names = files.flatMap((file) => /^(.+)\.sql$/.exec(file)?.[1] ?? []);
    return names.filter((name) => NAME.test(name)).sort((one, other) => one.localeCompare(other));
  }

  /** The SQL in an address, or else of the saved question that it names. Throws a `ConfigurationError`. */
  async sqlOf({ sql, name }: { readonly sql: string; readonly name: string }): Promise<string> {
    if (sql.trim() !== '' || name === '') return sql;
    const text = NAME.test(name)
      ? await readFile(this.#fileOf(name), 'utf8').catch(ignoreMissing)
      : undefined;
    if (text === undefined) throw new ConfigurationError(`There is no saved question ${name}.`);
    if (text.length <= MAX_SQL) return text.trim();
    throw new ConfigurationError(
      `${name} is too long for this page. Run it at the terminal: readership sql --file "questions/${name}.sql"`,
    );
  }

  /**
   * Saves or deletes a question. Returns the parameters of the address that shows it. Throws a
   * `ConfigurationError`.
   */
  async change(fields: URLSearchParams): Promise<Record<string, string>> {
    const parsed = form.safeParse(Object.fromEntries(fields));
    if (!parsed.success)
      throw new ConfigurationError(`The question was not saved: ${problemOf(parsed.error)}`);
    const { action, name, opened, sql } = parsed.data;
    const file = this.#fileOf(name);
    if (action === 'delete') {
      if (opened === '') throw new ConfigurationError('Open the question to delete first.');
      const deleted = await this.sqlOf({ sql: '', name: opened });
      await rm(this.#fileOf(opened));
      return { sql: deleted };
    }
    if (sql.trim() === '') throw new ConfigurationError('The question is empty. It was not saved.');
    if (opened !== name && (await exists(file)))
      throw new ConfigurationError(`A question named ${name} already exists. Open it to replace it.`);
    try {
      writeWhole(file, `${sql.replaceAll('\r\n', '\n').trim()}\n`, 0o666);
    } catch (cause) {
      throw new StorageError(`Cannot save ${file}: ${messageOf(cause)}`, { cause });
    }
    return { name };
  }

  readonly #fileOf = (name: string): string => join(this.#folder, `${name}.sql`);
}
