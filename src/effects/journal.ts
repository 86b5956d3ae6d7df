import pLimit from 'p-limit';
import { appendFile, type FileHandle, open, readdir, readFile, rename, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { StorageError } from '../errors.js';
import { exists, syncToDisk } from '../files.js';
import { storageFailure } from '../storage.js';
import {
  type Effect,
  type Entry,
  type EntryOf,
  type Intent,
  isOfKind,
  type Line,
  lineIn,
  type Outcome,
  parseLine,
} from './entries.js';

const CURRENT = 'effects.log';
const JOURNAL = /^effects(-\d{4})?\.log$/;
const NEWLINE = 0x0a;

/** Proof that an effect is in the journal. Only the journal creates one, and nothing is sent without it. */
class JournaledDeparture {
  readonly #outcome: (outcome: Outcome, now: Date) => Promise<void>;

  constructor(outcome: JournaledDeparture['ended']) {
    this.#outcome = outcome;
  }

  /** Records its outcome, before the database does. */
  ended(outcome: Outcome, now: Date): Promise<void> {
    return this.#outcome(outcome, now);
  }
}
export type Departure = JournaledDeparture;

/**
 * The journal of everything that may have been sent: `effects.log`, and the files of earlier years.
 * Each line is an entry, written to disk before the job, message or email is sent, and again when
 * its outcome is known. Only the holder of the live database, which is its index, may use it.
 */
export class EffectsJournal {
  readonly #effects = new Map<string, { last: Entry; attempts: Set<string> }>();
  readonly #inTurn = pLimit(1);
  readonly #owners = new Set<string>();
  /** The workspace line, if it still has to be written before the next entry. */
  #header = '';
  #file: FileHandle | undefined;
  #year: number | undefined;
  #failure: StorageError | undefined;

  /** `found`: whether there was a journal; `cutBytes`: how much of a torn last line was cut off. */
  private constructor(
    readonly directory: string,
    readonly found: boolean,
    readonly cutBytes: number,
  ) {}

  /** Reads the journal in a data directory. Throws a `StorageError` when a line is not an entry. */
  static async open(directory: string): Promise<EffectsJournal> {
    const names = (await readdir(directory)).filter((name) => JOURNAL.test(name)).sort();
    const files = [];
    for (const name of names) files.push(await readLines(join(directory, name)));
    const cutBytes = files.reduce((sum, file) => sum + file.cutBytes, 0);
    const journal = new EffectsJournal(directory, names.length > 0, cutBytes);
    for (const line of files.flatMap(({ lines }) => lines))
      if (line.effect === 'workspace') journal.#owners.add(line.id);
      else journal.#remember(line);
    return journal;
  }

  /** The workspace it belongs to; undefined for a new journal, or one of an earlier version. */
  get workspace(): string | undefined {
    return [...this.#owners][0];
  }

  /** Assigns it to a workspace. Throws a `StorageError` if it belongs to another one, or to several. */
  async claim(workspace: string): Promise<void> {
    expectOwners(this.#owners, workspace, this.path, 'the live database next to it', 'sent');
    if (this.#owners.size > 0) return;
    const line: Line = { effect: 'workspace', id: workspace };
    this.#header = `${JSON.stringify(line)}\n`;
    this.#owners.add(workspace);
    if (this.found) await this.#inTurn(() => this.#write(''));
  }

  get path(): string {
    return join(this.directory, CURRENT);
  }

  /** The effects of one kind, by reference, in the order of their first entries. */
  known<Kind extends Entry['effect']>(kind: Kind): Map<string, Effect<EntryOf<Kind>>> {
    const known = new Map<string, Effect<EntryOf<Kind>>>();
    for (const { last, attempts } of this.#effects.values())
      if (isOfKind(last, kind)) known.set(last.ref, { last, attempts });
    return known;
  }

  /**
   * Records that something is about to be sent, then lets `begin` commit it to the database. If
   * that fails, nothing was sent, and the journal records that if it still can.
   */
  async depart(intent: Intent, now: Date, begin: () => Promise<unknown>): Promise<Departure> {
    const at = now.toISOString();
    await this.append([{ ...intent, at, attempt: at, event: 'sending' }]);
    const ended = (outcome: Outcome, later: Date) =>
      this.append([{ ...intent, ...outcome, at: later.toISOString(), attempt: at }]);
    try {
      await begin();
    } catch (error) {
      await ended({ event: 'not-sent' }, now).catch(() => undefined);
      throw error;
    }
    return new JournaledDeparture(ended);
  }

  /** Writes entries with one fsync. After a failure nothing more is written, so nothing more is sent. */
  async append(entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return;
    await this.#inTurn(async () => {
      if (this.#failure !== undefined) throw this.#failure;
      try {
        for (const entry of entries) if (entry.event === 'sending') await this.#rotate(entry);
        await this.#write(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
        entries.forEach((entry) => {
          this.#remember(entry);
        });
      } catch (cause) {
        this.#failure = storageFailure(`write the effects journal ${this.path}`, cause);
        throw this.#failure;
      }
    });
  }

  async close(): Promise<void> {
    await this.#inTurn(() => this.#file?.close());
  }

  #remember(entry: Entry): void {
    const key = `${entry.effect} ${entry.ref}`;
    const known = this.#effects.get(key) ?? { last: entry, attempts: new Set() };
    known.last = entry;
    known.attempts.add(entry.attempt);
    this.#effects.set(key, known);
    this.#year = yearOf(entry);
  }

  /** Starts a new file each year. If a wrong clock has already used the name, the current file is kept. */
  async #rotate(entry: Entry): Promise<void> {
    if (this.#year === undefined || yearOf(entry) <= this.#year || !(await exists(this.path))) return;
    const archived = join(this.directory, `effects-${this.#year}.log`);
    if (await exists(archived)) return;
    await this.#file?.close();
    this.#file = undefined;
    await rename(this.path, archived);
    await syncToDisk(this.directory);
  }

  async #write(text: string): Promise<void> {
    if (this.#file === undefined) {
      this.#file = await open(this.path, 'a', 0o600);
      // A restored copy may be readable by others. The user may also not own it.
      await this.#file.chmod(0o600).catch(() => undefined);
      await syncToDisk(this.directory);
    }
    const { size } = await this.#file.stat();
    try {
      await this.#file.appendFile(this.#header + text);
      await this.#file.datasync();
      this.#header = '';
    } catch (error) {
      // A partial line would corrupt the next one.
      await this.#file.truncate(size).catch(() => undefined);
      throw error;
    }
  }
}

/**
 * Throws a `StorageError` if the journal in a directory does not belong to `workspace`, which is
 * restored from `source`. Does not change the journal, so the live database need not be held.
 */
export async function expectJournalOf(workspace: string, directory: string, source: string): Promise<void> {
  const names = (await readdir(directory)).filter((name) => JOURNAL.test(name));
  const texts = await Promise.all(names.map((name) => readFile(join(directory, name), 'utf8')));
  const lines = texts.flatMap((text) => text.split('\n')).flatMap((text) => lineIn(text) ?? []);
  const owners = lines.flatMap((line) => (line.effect === 'workspace' ? line.id : []));
  expectOwners(owners, workspace, join(directory, CURRENT), source, 'changed');
}

function expectOwners(
  owners: Iterable<string>,
  workspace: string,
  journal: string,
  database: string,
  done: string,
): void {
  if ([...owners].every((owner) => owner === workspace)) return;
  throw new StorageError(
    `The effects journal ${journal} and ${database} belong to different workspaces. Nothing was ${done}. ` +
      `They prevent jobs, messages and emails from being sent twice only if they match: restore two files that belong together (docs/backup.md).`,
  );
}

const yearOf = ({ at }: Entry): number => Number(at.slice(0, 4));

/**
 * The lines of one file. A last line without a line feed was being written when the process or
 * machine stopped, so nothing was sent for it. It is cut off unless it is complete.
 */
async function readLines(path: string): Promise<{ lines: Line[]; cutBytes: number }> {
  try {
    const bytes = await readFile(path);
    const end = bytes.lastIndexOf(NEWLINE) + 1;
    const texts = bytes.toString('utf8', 0, end).split('\n');
    const lines = texts.flatMap((text, index) => (text === '' ? [] : parseLine(text, path, index + 1)));
    if (end === bytes.length) return { lines, cutBytes: 0 };
    const last = lineIn(bytes.toString('utf8', end));
    if (last === undefined) await truncate(path, end);
    else await appendFile(path, '\n');
    return last === undefined
      ? { lines, cutBytes: bytes.length - end }
      : { lines: [...lines, last], cutBytes: 0 };
  } catch (cause) {
    throw storageFailure(`read the effects journal ${path}`, cause);
  }
}
