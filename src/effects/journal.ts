import pLimit from 'p-limit';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { StorageError } from '../errors.js';
import { exists, syncToDisk } from '../files.js';
import { storageFailure } from '../storage.js';
import {
  type Effect,
  type JournalEntry,
  type EntryOf,
  type Intent,
  isOfKind,
  type JournalLine,
  type Outcome,
  type SendingPlace,
} from './entries.js';
import { CURRENT, JournalFile, journalFiles, LineReader, readLines, seal } from './file.js';

/** Proof that an effect is in the journal. Only the journal creates one, and nothing is sent without it. */
class JournaledDeparture {
  constructor(private readonly outcome: (outcome: Outcome, now: Date) => Promise<void>) {}

  /** Records its outcome, before the database does. */
  ended(outcome: Outcome, now: Date): Promise<void> {
    return this.outcome(outcome, now);
  }
}
export type Departure = JournaledDeparture;

/** What an outcome adds to the line of its departure at most: a note and what the platform returned. */
const OUTCOME_BYTES = 4_096;
const MAX_NOTE = 500;

/**
 * The journal of everything that may have been sent: `effects.log`, and the files of earlier years.
 * Each line is an entry, written to disk before the job, message or email is sent, and again when
 * its outcome is known. Only the holder of the live database, which is its index, may use it.
 */
export class EffectsJournal {
  readonly #effects = new Map<string, { last: JournalEntry; attempts: Set<string> }>();
  readonly #inTurn = pLimit(1);
  readonly #owners = new Set<string>();
  readonly #lines = new LineReader();
  #lastSentAt = '';
  #file: JournalFile | undefined;
  #year: string | undefined;
  #failure: StorageError | undefined;
  #mayNotSend: () => Promise<Error | undefined> = () => Promise.resolve(undefined);
  #rememberSending: () => Promise<unknown> = () => Promise.resolve();

  /** `found`: whether there was a journal. */
  private constructor(
    readonly directory: string,
    readonly found: boolean,
  ) {}

  /** How much of a torn last line was cut off. */
  cutBytes = 0;
  /** Where the workspace sends from; undefined if that was never recorded. */
  place: SendingPlace | undefined;

  /**
   * Reads the journal in a data directory. Throws a `StorageError` when a line is not an entry. Only
   * the holder of the live database may cut off a torn last line.
   */
  static async open(directory: string, as: 'holder' | 'reader' = 'holder'): Promise<EffectsJournal> {
    const paths = await journalFiles(directory);
    const journal = new EffectsJournal(directory, paths.length > 0);
    for (const path of paths) {
      const { lines, cutBytes, end } = await readLines(path, journal.#lines, as);
      for (const line of lines) journal.#remember(line);
      journal.cutBytes += cutBytes;
      if (path === journal.path) journal.#file = new JournalFile(path, end);
    }
    return journal;
  }

  /** The workspace it belongs to; undefined for a new journal. */
  get workspace(): string | undefined {
    return [...this.#owners][0];
  }

  /** When the latest attempt to send something began; undefined if there was none. */
  get lastSentAt(): Date | undefined {
    return this.#lastSentAt === '' ? undefined : new Date(this.#lastSentAt);
  }

  get path(): string {
    return join(this.directory, CURRENT);
  }

  /** Assigns it to a workspace. Throws a `StorageError` if it belongs to another one, or to several. */
  async assignTo(workspace: string): Promise<void> {
    this.expectOwner(workspace, 'the live database next to it', 'sent');
    if (this.#owners.size === 0) await this.append([{ effect: 'workspace', id: workspace }]);
  }

  /** Throws a `StorageError` if it belongs to another workspace than a database, or to several. */
  expectOwner(workspace: string, database: string, done: 'sent' | 'changed'): void {
    if ([...this.#owners].every((owner) => owner === workspace)) return;
    throw new StorageError(
      `The effects journal ${this.path} and ${database} belong to different workspaces. Nothing was ${done}. ` +
        `They prevent jobs, messages and emails from being sent twice only if they match: restore a matching pair (docs/backup.md).`,
    );
  }

  /** Records where the workspace sends from, from now on. */
  settleAt(place: SendingPlace, now: Date): Promise<void> {
    return this.append([{ effect: 'place', at: now.toISOString(), ...place }]);
  }

  /**
   * Sets what is asked before anything is sent: why nothing may be sent, or undefined if it may; and what remembers
   * outside the data directory that something was.
   */
  askFirst(
    mayNotSend: () => Promise<Error | undefined>,
    remember: () => Promise<unknown> = () => Promise.resolve(),
  ): void {
    this.#mayNotSend = mayNotSend;
    this.#rememberSending = remember;
  }

  /** Why nothing may be sent now; undefined if it may. */
  refusal(): Promise<Error | undefined> {
    return this.#mayNotSend();
  }

  /** Throws if nothing may be sent. */
  async expectMaySend(): Promise<void> {
    const refusal = await this.refusal();
    if (refusal !== undefined) throw refusal;
  }

  /** The effects of one kind, by reference, in the order of their first entries. */
  known<Kind extends JournalEntry['effect']>(kind: Kind): Map<string, Effect<EntryOf<Kind>>> {
    const known = new Map<string, Effect<EntryOf<Kind>>>();
    for (const { last, attempts } of this.#effects.values())
      if (isOfKind(last, kind)) known.set(last.ref, { last, attempts });
    return known;
  }

  /**
   * Records that something is about to be sent, with room for its outcome, then lets `begin` commit
   * it to the database. If that fails, nothing was sent, and the journal records that.
   */
  async depart(intent: Intent, now: Date, begin: () => Promise<unknown>): Promise<Departure> {
    await this.expectMaySend();
    await this.#rememberSending();
    const at = now.toISOString();
    const sending: JournalEntry = { ...intent, at, attempt: at, event: 'sending' };
    const room = Buffer.byteLength(JSON.stringify(sending)) + OUTCOME_BYTES;
    await this.#inTurn(async () => {
      await this.#rotate(sending);
      await this.#write([sending], room);
    });
    const ended = (outcome: Outcome, later: Date) => {
      const note = outcome.note?.slice(0, MAX_NOTE);
      const entry: JournalEntry = { ...intent, ...outcome, note, at: later.toISOString(), attempt: at };
      return this.#inTurn(() => this.#write([entry], -room));
    };
    try {
      await begin();
    } catch (error) {
      await ended({ event: 'not-sent' }, now).catch(() => undefined);
      throw error;
    }
    return new JournaledDeparture(ended);
  }

  /** Writes entries with one fsync. After a failure nothing more is sent. */
  async append(entries: readonly JournalLine[]): Promise<void> {
    if (entries.length > 0) await this.#inTurn(() => this.#write(entries));
  }

  async close(): Promise<void> {
    await this.#inTurn(() => this.#file?.close());
  }

  #remember(line: JournalLine): void {
    if (line.effect === 'workspace') this.#owners.add(line.id);
    else if (line.effect === 'place') {
      const { machine, host, path } = line;
      this.place = { machine, host, path };
    } else {
      const key = `${line.effect} ${line.ref}`;
      const known = this.#effects.get(key) ?? { last: line, attempts: new Set() };
      known.last = line;
      known.attempts.add(line.attempt);
      this.#effects.set(key, known);
      this.#year = line.at.slice(0, 4);
      if (line.attempt > this.#lastSentAt) this.#lastSentAt = line.attempt;
    }
  }

  /** Starts a new file each year. If a wrong clock has already used the name, the current file is kept. */
  async #rotate(entry: JournalEntry): Promise<void> {
    const isNextYear = this.#year !== undefined && entry.at.slice(0, 4) > this.#year;
    if (!isNextYear || this.#file?.reserved !== 0) return;
    const archived = join(this.directory, `effects-${this.#year}.log`);
    if (await exists(archived)) return;
    await this.#file.close();
    this.#file = undefined;
    await rename(this.path, archived);
    await syncToDisk(this.directory);
  }

  /** Writes lines over the room reserved so far, and changes that room by `room` bytes. */
  async #write(lines: readonly JournalLine[], room = 0): Promise<void> {
    // An outcome has its room, so it is written even then.
    if (this.#failure !== undefined && room >= 0) throw this.#failure;
    const text = lines.map((line, index) => seal(line, this.#lines.count + index + 1)).join('');
    try {
      this.#file ??= new JournalFile(this.path, 0);
      await this.#file.write(text, room);
    } catch (cause) {
      this.#failure = storageFailure(`write the effects journal ${this.path}`, cause);
      throw this.#failure;
    }
    this.#lines.count += lines.length;
    for (const line of lines) this.#remember(line);
  }
}
