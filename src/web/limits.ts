import PQueue from 'p-queue';
import { StorageError } from '../errors.js';

/** More work at once than this machine should do. */
export class BusyError extends StorageError {}

/**
 * Does at most `atOnce` things at a time, and at most `ofOne` of them for one client. Clients take
 * turns, so one that asks for a lot delays only itself; of one with `mostWaiting` things waiting,
 * the next are refused, and of one with any, once `mostInAll` things of all clients wait.
 */
export class Turns {
  readonly #all: PQueue;
  readonly #clients = new Map<string, PQueue>();
  #waiting = 0;

  constructor(
    atOnce: number,
    private readonly ofOne: number,
    private readonly mostWaiting: number,
    private readonly mostInAll = Infinity,
  ) {
    this.#all = new PQueue({ concurrency: atOnce });
  }

  /** Does some work in its turn, unless `signal` has aborted by then. Throws a `BusyError`. */
  async run<Result>(client: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    const own = this.#clients.get(client) ?? new PQueue({ concurrency: this.ofOne });
    const isFull = own.size > 0 && this.#waiting >= this.mostInAll;
    if (isFull || own.size >= this.mostWaiting)
      throw new BusyError('You have too many requests waiting. Try again in a minute.');
    if (!this.#clients.has(client)) own.on('idle', () => this.#clients.delete(client));
    this.#clients.set(client, own);
    let begun: Promise<Result> | undefined;
    const begin = () => {
      signal.throwIfAborted();
      return work();
    };
    this.#waiting += 1;
    try {
      return await own.add(() => (begun = this.#all.add(begin)), { signal });
    } finally {
      // The queue rejects as soon as the signal aborts, when the work is still being stopped.
      await begun?.catch(() => undefined);
      this.#waiting -= 1;
    }
  }
}
