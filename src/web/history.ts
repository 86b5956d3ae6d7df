import { stat } from 'node:fs/promises';
import pLimit from 'p-limit';
import { z } from 'zod';
import { StorageError } from '../errors.js';
import { type History, openOwnHistory } from '../warehouse/published.js';
import type { Parameters, Reader } from '../warehouse/query.js';

/** The published history as it is now: opened again when another one takes its place. */
interface Opened {
  readonly version: string;
  readonly history: History;
  /** A published file never changes. */
  readonly answers: Remembering<unknown[]>;
  users: number;
}

/** One version of the published history. */
export interface PublishedReader extends Reader {
  /** Tells this file from the one that replaces it. */
  readonly version: string;
}

const ANSWERS_KEPT = 300;
/** In rows. */
const LARGEST_KEPT = 2_000;
const AT_ONCE = 4;
const WAITING_AT_MOST = 64;
const LONGEST_MS = 20_000;

/** Answers the queries of pages. */
export class WebHistory {
  #opened: Opened | undefined;
  readonly #opening = pLimit(1);
  readonly #asking = pLimit(AT_ONCE);

  constructor(
    private readonly file: string,
    private readonly maxMemory: number,
  ) {}

  /** Does some work with one version of the history, which stays open until it is done. */
  async with<Result>(work: (reader: PublishedReader) => Promise<Result>): Promise<Result> {
    const opened = await this.#opening(() => this.#current());
    opened.users += 1;
    try {
      return await work({
        version: opened.version,
        query: (sql, row, parameters) => this.#ask(opened, sql, row, parameters),
      });
    } finally {
      opened.users -= 1;
      if (opened !== this.#opened && opened.users === 0) opened.history.close();
    }
  }

  close(): void {
    if (this.#opened?.users === 0) this.#opened.history.close();
    this.#opened = undefined;
  }

  async #current(): Promise<Opened> {
    const { ino, mtimeMs, size } = (await stat(this.file).catch(() => undefined)) ?? {};
    const version = `${ino}-${mtimeMs}-${size}`;
    if (this.#opened?.version === version) return this.#opened;
    const history = await openOwnHistory(this.file, { memory_limit: `${this.maxMemory}B` });
    const before = this.#opened;
    this.#opened = { version, history, answers: new Remembering(ANSWERS_KEPT), users: 0 };
    if (before?.users === 0) before.history.close();
    return this.#opened;
  }

  async #ask<Row>(
    { history, answers }: Opened,
    sql: string,
    row: z.ZodType<Row>,
    parameters: Parameters = {},
  ): Promise<Row[]> {
    const named = Object.entries(parameters).filter(([name]) => sql.includes(`$${name}`));
    const rows = await answers.get(
      JSON.stringify([sql, named]),
      () => {
        if (this.#asking.pendingCount >= WAITING_AT_MOST)
          throw new StorageError('Too much is asked at once. Try again in a moment.');
        return this.#asking(() => askWithin(history, sql, parameters));
      },
      ({ length }) => length <= LARGEST_KEPT,
    );
    return z.array(row).parse(rows);
  }
}

/** Answers by their questions. Failures are forgotten, and so are the oldest answers beyond `most`. */
export class Remembering<Answer> {
  readonly #answers = new Map<string, Promise<Answer>>();

  constructor(private readonly most: number) {}

  /** The answer that is known, or else what `work` finds out; kept unless it is not `worthKeeping`. */
  get(
    question: string,
    work: () => Promise<Answer>,
    worthKeeping: (answer: Answer) => boolean = () => true,
  ): Promise<Answer> {
    const known = this.#answers.get(question);
    if (known !== undefined) return known;
    const answer = work();
    this.#answers.set(question, answer);
    void answer
      .then(worthKeeping)
      .catch(() => false)
      .then((isKept) => isKept || this.#answers.delete(question));
    const [oldest] = this.#answers.size > this.most ? this.#answers.keys() : [];
    if (oldest !== undefined) this.#answers.delete(oldest);
    return answer;
  }
}

/** Asks on a connection of its own, and gives up after a while. */
async function askWithin(history: History, sql: string, parameters: Parameters): Promise<unknown[]> {
  const own = await history.beside();
  const late = new AbortController();
  const timer = setTimeout(() => {
    late.abort();
    own.connection.interrupt();
  }, LONGEST_MS);
  try {
    return await own.query(sql, z.unknown(), parameters);
  } catch (cause) {
    if (!late.signal.aborted) throw cause;
    throw new StorageError('This page takes too long to work out. Choose a shorter range.', { cause });
  } finally {
    clearTimeout(timer);
    own.close();
  }
}
