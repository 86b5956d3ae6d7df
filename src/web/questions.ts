import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { z } from 'zod';
import { withoutSecrets } from '../app/secrets.js';
import { optionsOf, type Runtime, type Workspace, type WorkspaceOptions } from '../app/workspace.js';
import { problemOf } from '../config/problems.js';
import { ConfigurationError, messageOf, StorageError } from '../errors.js';
import { exists, ignoreMissing, writeWhole } from '../files.js';
import { timeLimit } from '../sleep.js';
import { type Cut, QueryError, QueryProcesses, type Rows } from '../sql/children.js';
import { Turns } from './limits.js';

/** Concurrent queries: each is a process that may use much memory. */
const AT_ONCE = 2;
const WAITING_OF_ONE = 8;
export const LONGEST_MS = 60_000;
/** The largest answer to download. */
const MAX_FILE_BYTES = 500_000_000;
const LOOK_EVERY_MS = 250;
/** Downloads that are being read. */
const DOWNLOADS = 6;
const DOWNLOADS_OF_ONE = 2;
const LONGEST_DOWNLOAD_MS = 10 * 60_000;
/** The formats of downloads. */
export const FORMATS = {
  csv: 'text/csv; charset=utf-8',
  json: 'application/json',
  parquet: 'application/vnd.apache.parquet',
};
export type DownloadFormat = keyof typeof FORMATS;

/** Who asks: `signal` aborts when they no longer wait, and clients take turns. */
export interface Asker {
  readonly client: string;
  readonly signal: AbortSignal;
}

/** Answers the SQL of visitors and assistants, in processes of their own. */
export class Questions {
  readonly #turns = new Turns(AT_ONCE, AT_ONCE - 1, WAITING_OF_ONE);
  readonly #downloads = new Turns(DOWNLOADS, DOWNLOADS_OF_ONE, WAITING_OF_ONE);
  readonly processes: QueryProcesses;

  constructor({ settings, dataDir }: Workspace, options: WorkspaceOptions, runtime: Runtime) {
    this.processes = new QueryProcesses({
      options: optionsOf(options),
      cwd: runtime.workingDirectory,
      environment: withoutSecrets(runtime.environment, settings),
      timeoutMs: LONGEST_MS,
      dataDir,
    });
  }

  /** The first rows of an answer. */
  answer(sql: string, { client, signal }: Asker, limits: Cut): Promise<Rows> {
    return this.#turns.run(client, signal, () => this.processes.ask(sql, limits, signal));
  }

  /** The whole answer as a file that is deleted once it has been read, or when its reader leaves or is too slow. */
  file(sql: string, format: DownloadFormat, { client, signal }: Asker): Promise<Readable> {
    return new Promise((resolve, reject) => {
      const write = async () => {
        const directory = await mkdtemp(join(tmpdir(), 'readership-answer-'));
        try {
          const file = join(directory, `answer.${format}`);
          await this.#turns.run(client, signal, () => this.#write(sql, file, format, signal));
          const answer = addAbortSignal(timeLimit(LONGEST_DOWNLOAD_MS, signal), createReadStream(file));
          resolve(answer);
          await once(answer, 'close').catch(() => undefined);
        } finally {
          await rm(directory, { recursive: true, force: true });
        }
      };
      this.#downloads.run(client, signal, write).catch(reject);
    });
  }

  /** Writes an answer to a file, which must not become too large. */
  async #write(sql: string, file: string, format: DownloadFormat, signal: AbortSignal): Promise<void> {
    const tooLarge = new AbortController();
    const look = setInterval(() => {
      void sizeOf(dirname(file)).then((size) => {
        if (size > MAX_FILE_BYTES) tooLarge.abort();
      });
    }, LOOK_EVERY_MS);
    try {
      await this.processes.write(sql, file, format, AbortSignal.any([signal, tooLarge.signal]));
    } catch (error) {
      if (!tooLarge.signal.aborted) throw error;
      throw new QueryError(
        `The answer is larger than ${MAX_FILE_BYTES / 1e6} MB. Narrow the query, or use readership sql --output.`,
      );
    } finally {
      clearInterval(look);
    }
  }
}

/** The total size of the files below a directory, which come and go. */
async function sizeOf(directory: string): Promise<number> {
  const names = await readdir(directory, { recursive: true }).catch(() => []);
  const files = await Promise.all(names.map((name) => stat(join(directory, name)).catch(() => undefined)));
  return files.reduce((sum, file) => sum + (file?.size ?? 0), 0);
}

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
      writeWhole(file, `${sql.trim()}\n`, 0o666);
    } catch (cause) {
      throw new StorageError(`Cannot save ${file}: ${messageOf(cause)}`, { cause });
    }
    return { name };
  }

  readonly #fileOf = (name: string): string => join(this.#folder, `${name}.sql`);
}
