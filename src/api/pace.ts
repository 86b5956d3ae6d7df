import { addMilliseconds } from 'date-fns';
import { type Sleep, sleepFor } from '../sleep.js';
import { PausedError, SERVER_PAUSE } from './errors.js';
import type { RollingHour } from './hour.js';
import { LONGEST_WAIT_MS } from './retry-after.js';
import { READS_AT_ONCE } from './transport.js';

/** Decides when requests may be sent. One pace is shared by all that use the same key. */
export interface Pace {
  /** How often a request that is refused is sent again, besides its other retries: others may get their turn before it. */
  readonly mostRefusals: number;
  /**
   * Resolves with the number of a request when it may be sent; throws a `PausedError` if that is later than the command
   * waits. A `trial` is sent in spite of a refusal.
   */
  next(signal?: AbortSignal, trial?: boolean): Promise<number>;
  /** The server answered 429, with or without a wait: nothing is sent before that is over. */
  refused(request: number, retryAfterMs: number | undefined): Promise<void>;
  /** The server answered otherwise. */
  answered(request: number): Promise<void>;
}

/** The pause after a refusal that names none. If the next request is refused as well, the next pause is twice as long. */
const FIRST_PAUSE_MS = 5_000;

/** So many requests share a record, unless a cap is set. */
const RECORDED_TOGETHER = 100;

/** Where the requests of a key are counted, so that caps and pauses outlive a process. */
export interface RequestCounts {
  readonly read: (now: Date) => Promise<RollingHour>;
  readonly recordSent: (requests: number, at: Date) => Promise<void>;
  readonly recordPause: (at: Date, until: Date) => Promise<void>;
  readonly forgetPauses: () => Promise<void>;
}

export interface PaceOptions {
  readonly counts: RequestCounts;
  /** A cap by hand: requests in any rolling hour. */
  readonly cap: number | 'unlimited';
  /** How long a request may wait for its turn. */
  readonly maxWaitMs: number;
  readonly now: () => Date;
  readonly sleep?: Sleep | undefined;
  /** Called when requests wait: until when, and why. */
  readonly onWait?: ((until: Date, why: string) => void) | undefined;
}

/**
 * As fast as the platform answers, unless a cap is set. After a refusal, everything pauses. Under a cap, each request is
 * recorded before it is sent, so a crash can only overcount. The hour is read once and then kept in memory: whoever holds
 * the database is the only one to write to it.
 */
export class RequestPace implements Pace {
  readonly mostRefusals = READS_AT_ONCE;
  #hour: Promise<RollingHour> | undefined;
  #sent = 0;
  /** The last request that was sent before the latest refusal arrived. */
  #lastBeforeRefusal = 0;
  /** When requests were refused without an answer since: pauses that follow each other are one. */
  #refusedSince: Date | undefined;
  #unrecorded = 0;

  constructor(private readonly options: PaceOptions) {}

  async next(signal?: AbortSignal, trial = false): Promise<number> {
    const { cap, now } = this.options;
    for (;;) {
      signal?.throwIfAborted();
      const at = now();
      const hour = await this.#readHour(at);
      const freeAt = cap === 'unlimited' ? at : hour.nextFreeAt(cap, at);
      const pausedUntil = trial ? undefined : hour.pausedUntil(at);
      if (pausedUntil !== undefined && pausedUntil >= freeAt)
        await this.#waitUntil(pausedUntil, SERVER_PAUSE, this.#refusedSince ?? at, signal);
      else if (freeAt > at)
        await this.#waitUntil(
          freeAt,
          `history.requestsPerHour reached: ${hour.used(at)} of ${cap} used.`,
          at,
          signal,
        );
      else {
        hour.add(1, at);
        break;
      }
    }
    const request = ++this.#sent;
    this.#unrecorded++;
    if (cap !== 'unlimited' || this.#unrecorded >= RECORDED_TOGETHER) await this.record();
    return request;
  }

  /** Requests that were under way when the pause began do not make it longer, unless they are refused for longer. */
  async refused(request: number, retryAfterMs: number | undefined): Promise<void> {
    const { counts, now } = this.options;
    const namesWait = retryAfterMs !== undefined && retryAfterMs > 0;
    if (!namesWait && request <= this.#lastBeforeRefusal) return;
    this.#lastBeforeRefusal = this.#sent;
    const at = now();
    this.#refusedSince ??= at;
    const hour = await this.#readHour(at);
    const backoffMs = Math.min(LONGEST_WAIT_MS, Math.max(FIRST_PAUSE_MS, 2 * hour.pauseMs));
    const until = addMilliseconds(at, namesWait ? retryAfterMs : backoffMs);
    hour.pause(at, until);
    await counts.recordPause(at, until);
  }

  /** Ends what earlier refusals meant. */
  async answered(request: number): Promise<void> {
    if (request <= this.#lastBeforeRefusal) return;
    this.#refusedSince = undefined;
    const hour = await this.#readHour(this.options.now());
    if (hour.pauseMs === 0) return;
    hour.forgetPauses();
    await this.options.counts.forgetPauses();
  }

  /** Records the requests that were sent since the last record. */
  async record(): Promise<void> {
    const requests = this.#unrecorded;
    this.#unrecorded = 0;
    if (requests > 0) await this.options.counts.recordSent(requests, this.options.now());
  }

  async #waitUntil(until: Date, why: string, since: Date, signal: AbortSignal | undefined): Promise<void> {
    const { maxWaitMs, now, onWait, sleep = sleepFor } = this.options;
    if (until.getTime() - since.getTime() > maxWaitMs) throw new PausedError(why, until);
    onWait?.(until, why);
    await sleep(Math.max(0, until.getTime() - now().getTime()), signal);
  }

  #readHour(now: Date): Promise<RollingHour> {
    return (this.#hour ??= this.options.counts.read(now));
  }
}

/** A pace without counts. After a refusal it waits as long as the server requests, up to `maxWaitMs`. */
export function pauseWhenRefused(now: () => Date, maxWaitMs: number): Pace {
  let pausedUntil = new Date(0);
  return {
    mostRefusals: 0,
    next: async (signal) => {
      const waitMs = pausedUntil.getTime() - now().getTime();
      if (waitMs > maxWaitMs) throw new PausedError(SERVER_PAUSE, pausedUntil);
      if (waitMs > 0) await sleepFor(waitMs, signal);
      return 0;
    },
    refused: (_, retryAfterMs = 0) => {
      pausedUntil = addMilliseconds(now(), retryAfterMs);
      return Promise.resolve();
    },
    answered: () => Promise.resolve(),
  };
}
