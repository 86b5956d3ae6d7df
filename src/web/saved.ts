import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Workspace } from '../app/workspace.js';
import { problemOf } from '../config/problems.js';
import { ConfigurationError, messageOf, StorageError } from '../errors.js';
import { exists, ignoreMissing } from '../files.js';

const LONGEST = 8_000;

/** Such a name leads out of no folder. */
const NAME = /^[\p{L}\p{N}](?:[\p{L}\p{N} ._-]{0,78}[\p{L}\p{N}])?$/u;

const form = z.object({
  action: z.enum(['save', 'delete']),
  name: z.string().trim().regex(NAME, 'use up to 80 letters, digits, spaces, hyphens, dots and underscores'),
  /** The question that was open. */
  opened: z.string().default(''),
  sql: z.string().max(LONGEST, 'too long').default(''),
});

/** Saved questions: files `questions/NAME.sql` next to the configuration. */
export class SavedQuestions {
  readonly #folder: string;

  constructor({ directory, dataDir }: Pick<Workspace, 'directory' | 'dataDir'>) {
    this.#folder = join(directory ?? dataDir, 'questions');
  }

  async names(): Promise<string[]> {
    const files = (await readdir(this.#folder).catch(ignoreMissing)) ?? [];
    const names = files.flatMap((file) => /^(.+)\.sql$/.exec(file)?.[1] ?? []);
    return names.filter((name) => NAME.test(name)).sort((one, other) => one.localeCompare(other));
  }

  /** The SQL of an address, or else of the saved question that it names. Throws a `ConfigurationError`. */
  async sqlOf({ sql, name }: { readonly sql: string; readonly name: string }): Promise<string> {
    if (sql.trim() !== '' || name === '') return sql;
    const text = NAME.test(name)
      ? await readFile(this.#fileOf(name), 'utf8').catch(ignoreMissing)
      : undefined;
    if (text === undefined) throw new ConfigurationError(`There is no saved question ${name}.`);
    if (text.length <= LONGEST) return text.trim();
    throw new ConfigurationError(
      `${name} is too long for this page. Run it at the terminal: readership sql --file "questions/${name}.sql"`,
    );
  }

  /** Saves or deletes a question. Returns what of an address shows it. Throws a `ConfigurationError`. */
  async change(fields: URLSearchParams): Promise<Record<string, string>> {
    const parsed = form.safeParse(Object.fromEntries(fields));
    if (!parsed.success)
      throw new ConfigurationError(`The question was not saved. ${problemOf(parsed.error)}`);
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
      throw new ConfigurationError(`There is a question ${name} already. Open it to replace it.`);
    try {
      await mkdir(this.#folder, { recursive: true });
      await writeFile(`${file}.new`, `${sql.replaceAll('\r\n', '\n').trim()}\n`);
      await rename(`${file}.new`, file);
    } catch (cause) {
      throw new StorageError(`Cannot save ${file}: ${messageOf(cause)}`, { cause });
    }
    return { name };
  }

  readonly #fileOf = (name: string): string => join(this.#folder, `${name}.sql`);
}
