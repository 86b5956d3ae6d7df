import pLimit, { type LimitFunction } from 'p-limit';
import { StorageError } from '../errors.js';

/** More work at once than this machine should do. */
export class BusyError extends StorageError {}

/**
 * Does at most `atOnce` things at a time, and at most `ofOne` of them for one client. Clients take
 * turns, so one that asks for a lot delays only itself; of one with more than `mostWaiting` things
 * waiting, the next are refused.
 */
export class Turns {
  readonly #all: LimitFunction;
  readonly #clients = new Map<string, { readonly turn: LimitFunction; waiting: number; users: number }>();

  constructor(
    atOnce: number,
    private readonly ofOne: number,
    private readonly mostWaiting: number,
  ) {
    this.#all = pLimit(atOnce);
  }

  /** Does some work in its turn, unless `signal` has aborted by then. Throws a `BusyError`. */
  async run<Result>(client: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    const own = this.#clients.get(client) ?? { turn: pLimit(this.ofOne), waiting: 0, users: 0 };
    if (own.waiting >= this.mostWaiting)
      throw new BusyError('You have too many requests waiting. Try again in a minute.');
    this.#clients.set(client, own);
    own.users += 1;
    own.waiting += 1;
    // One that has left no longer waits, although its turn is still to come.
    let isWaiting = true;
    const stopWaiting = () => {
      if (isWaiting) own.waiting -= 1;
      isWaiting = false;
    };
    signal.addEventListener('abort', stopWaiting);
    try {
      return await own.turn(() =>
        this.#all(() => {
          stopWaiting();
          signal.throwIfAborted();
          return work();
        }),
      );
    } finally {
      signal.removeEventListener('abort', stopWaiting);
      own.users -= 1;
      if (own.users === 0) this.#clients.delete(client);
    }
  }
}

interface Kept<Result> {
  readonly result: Promise<Result>;
  /** Aborted when everyone who waits for the result has left. */
  readonly left: AbortController;
  waiting: number;
}

/** A cache of results. Failures are not kept, and beyond `most` the oldest result is dropped. */
export class ResultCache<Result> {
  readonly #results = new Map<string, Kept<Result>>();

  constructor(private readonly most: number) {}

  /**
   * The known result, or else that of `work`, which is kept if `worthKeeping`. Once all who wait for
   * it have left, as their signals say, the signal of `work` aborts.
   */
  get(
    key: string,
    work: (left: AbortSignal) => Promise<Result>,
    signal?: AbortSignal,
    worthKeeping: (result: Result) => boolean = () => true,
  ): Promise<Result> {
    const kept = this.#results.get(key) ?? this.#begin(key, work, worthKeeping);
    kept.waiting += 1;
    const leave = () => {
      kept.waiting -= 1;
      if (kept.waiting > 0) return;
      this.#forget(key, kept);
      kept.left.abort();
    };
    signal?.addEventListener('abort', leave);
    return kept.result.finally(() => signal?.removeEventListener('abort', leave));
  }

  #begin(
    key: string,
    work: (left: AbortSignal) => Promise<Result>,
    worthKeeping: (result: Result) => boolean,
  ) {
    const left = new AbortController();
    const kept: Kept<Result> = { result: work(left.signal), left, waiting: 0 };
    this.#results.set(key, kept);
    void kept.result
      .then(worthKeeping)
      .catch(() => false)
      .then((isKept) => {
        if (!isKept) this.#forget(key, kept);
      });
    const [oldest] = this.#results.size > this.most ? this.#results.keys() : [];
    if (oldest !== undefined) this.#results.delete(oldest);
    return kept;
  }

  /** Unless another result has replaced it. */
  #forget(key: string, kept: Kept<Result>): void {
    if (this.#results.get(key) === kept) this.#results.delete(key);
  }
}
