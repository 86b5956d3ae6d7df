import { addMilliseconds } from 'date-fns';
import { type Sleep, sleepFor } from '../sleep.js';
import { PausedError, SERVER_PAUSE } from './errors.js';
import type { Refusals, requestsOf } from '../state/requests.js';
import { hourOf, type RollingHour } from './hour.js';
import { LONGEST_WAIT_MS } from './retry-after.js';
import { READS_AT_ONCE } from './transport.js';

/** Decides when requests may be sent. One pace is shared by all that use the same key. */
export interface Pace {
  /** How often a request that is refused is sent again, besides its other retries: others may get their turn before it. */
  readonly mostRefusals: number;
  /**
   * Resolves when a request may be sent, with the number of pauses that began before; throws a `PausedError` if that is
   * later than the command waits. A `trial` is sent in spite of a refusal.
   */
  next(signal?: AbortSignal, trial?: boolean): Promise<number>;
  /** The server answered 429, with or without a wait: nothing is sent before that is over. */
  refused(pausesBefore: number, retryAfterMs: number | undefined): Promise<void>;
  /** The server answered otherwise. */
  answered(pausesBefore: number): Promise<void>;
}

/** The pause after a refusal that names none. If the next request is refused as well, the next pause is twice as long. */
const FIRST_PAUSE_MS = 5_000;

/** Pauses that name no wait, of 5, 10, 20 and 40 seconds, before a platform that counts by the minute accepts a request. */
const PAUSES_A_MINUTE = 4;

/** So many requests share a record, unless a cap is set. */
const RECORDED_TOGETHER = 100;

/** So much time passes between records, unless a cap is set. */
const RECORD_EVERY_MS = 1_000;

/** Refusals that follow each other by more than this are not one pause. */
const SAME_PAUSE_MS = LONGEST_WAIT_MS;

/** A shorter pause teaches nothing of the requests that the platform accepts in an hour. */
const TEACHING_PAUSE_MS = 10 * 60_000;

/** Where the requests of a key are counted, so that caps, limits and pauses outlive a process. */
export type RequestCounts = ReturnType<typeof requestsOf>;

/** A pause that a refusal began. */
interface Pause {
  readonly number: number;
  readonly at: Date;
  /** The end that the platform named. */
  namedEnd: Date | undefined;
  /** The refusals before it, if no request was accepted since. */
  earlier: Refusals | undefined;
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
 * recorded before it is sent, so a crash can only overcount. The hour is read once and then kept in memory: besides the
 * worker, only `doctor` sends requests for views, and only a few.
 */
export class RequestPace implements Pace {
  readonly mostRefusals = READS_AT_ONCE * PAUSES_A_MINUTE;
  #known: Promise<RollingHour> | undefined;
  /** The requests an hour that the platform accepts, if it taught that. */
  #learned: number | undefined;
  /** Refusals since the last accepted request. */
  #refusals: Refusals | undefined;
  #pausesBegun = 0;
  /** Pauses without an accepted request in between: for those who wait, they are one. */
  #pauses: Pause[] = [];
  #unrecorded = { sent: 0, refused: 0 };
  #recordedMs = 0;

  constructor(private readonly options: PaceOptions) {}

  async next(signal?: AbortSignal, trial = false): Promise<number> {
    const { cap, now } = this.options;
    for (;;) {
      signal?.throwIfAborted();
      const at = now();
      const hour = await this.#readHour(at);
      const limit = Math.min(cap === 'unlimited' ? Infinity : cap, this.#learned ?? Infinity);
      const freeAt = hour.nextFreeAt(limit, at);
      const pausedUntil = trial ? undefined : hour.pausedUntil(at);
      if (pausedUntil !== undefined && pausedUntil >= freeAt)
        await this.#waitUntil(pausedUntil, SERVER_PAUSE, this.#pauses[0]?.at ?? at, signal);
      else if (freeAt > at)
        await this.#waitUntil(
          freeAt,
          `${limit === cap ? 'history.requestsPerHour' : 'The hourly limit of the platform'} reached: ${hour.used(at)} of ${limit} used.`,
          at,
          signal,
        );
      else {
        hour.add(1, at);
        break;
      }
    }
    const pausesBefore = this.#pausesBegun;
    this.#unrecorded.sent++;
    const isLongAgo = Math.abs(now().getTime() - this.#recordedMs) >= RECORD_EVERY_MS;
    if (cap !== 'unlimited' || isLongAgo || this.#unrecorded.sent >= RECORDED_TOGETHER) await this.record();
    return pausesBefore;
  }

  /** Requests that were under way when the pause began do not make it longer, unless they are refused for longer. */
  async refused(pausesBefore: number, retryAfterMs: number | undefined): Promise<void> {
    const { now } = this.options;
    this.#unrecorded.refused++;
    const hour = await this.#readHour(now());
    const namesWait = retryAfterMs !== undefined && retryAfterMs > 0;
    const isUnderWay = pausesBefore < this.#pausesBegun;
    if (!namesWait && isUnderWay) return;
    const at = now();
    const backoffMs = Math.min(LONGEST_WAIT_MS, Math.max(FIRST_PAUSE_MS, 2 * hour.pauseMs));
    const until = addMilliseconds(at, namesWait ? retryAfterMs : backoffMs);
    const earlier = this.#refusals;
    let pause = this.#pauses.at(-1);
    if (!isUnderWay || pause === undefined) {
      pause = { number: this.#pausesBegun++, at, namedEnd: undefined, earlier };
      this.#pauses.push(pause);
    }
    if (namesWait && (pause.namedEnd === undefined || until > pause.namedEnd)) pause.namedEnd = until;
    hour.pause(at, until);
    const isSame = earlier !== undefined && at.getTime() - earlier.until.getTime() < SAME_PAUSE_MS;
    const longest = isSame && earlier.until > until ? earlier.until : until;
    this.#refusals = { since: isSame ? earlier.since : at, at, until: longest };
    await this.record();
    await this.#recordRefusals();
  }

  /**
   * Ends the pauses before the request, and learns from a long one: as many requests as were accepted in any hour before
   * it are accepted in each. The answer may arrive after the next refusal, whose pause goes on.
   */
  async answered(pausesBefore: number): Promise<void> {
    const { counts, now } = this.options;
    const at = now();
    const hour = await this.#readHour(at);
    const pauses = this.#pauses.filter(({ number }) => number >= pausesBefore);
    const [first, last] = [pauses[0], pauses.at(-1)];
    const ended = first === undefined ? this.#refusals : first.earlier;
    if (ended === undefined) return;
    hour.forgetPauses();
    this.#pauses = pauses;
    this.#refusals = undefined;
    if (first !== undefined && last !== undefined) {
      first.earlier = undefined;
      const backoffMs = Math.min(LONGEST_WAIT_MS, FIRST_PAUSE_MS * 2 ** (pauses.length - 1));
      const until = last.namedEnd ?? addMilliseconds(last.at, backoffMs);
      hour.pause(last.at, until);
      this.#refusals = { since: first.at, at: last.at, until };
    }
    await this.record();
    const most = pauseMs(ended, at) < TEACHING_PAUSE_MS ? 0 : counts.mostAccepted(ended.since);
    // If the platform accepted nothing, its limit is unknown.
    const limit = most > 0 ? most : undefined;
    this.#learned = limit ?? this.#learned;
    await counts.recordAccepted(limit, at);
    await this.#recordRefusals();
  }

  /** Records the requests that were sent since the last record. */
  async record(): Promise<void> {
    const requests = this.#unrecorded;
    const at = this.options.now();
    this.#unrecorded = { sent: 0, refused: 0 };
    this.#recordedMs = at.getTime();
    if (requests.sent + requests.refused > 0) await this.options.counts.count(requests, at);
  }

  async #recordRefusals(): Promise<void> {
    if (this.#refusals !== undefined) await this.options.counts.recordRefusal(this.#refusals);
  }

  async #waitUntil(until: Date, why: string, since: Date, signal: AbortSignal | undefined): Promise<void> {
    const { maxWaitMs, now, onWait, sleep = sleepFor } = this.options;
    if (until.getTime() - since.getTime() > maxWaitMs) throw new PausedError(why, until);
    onWait?.(until, why);
    await sleep(Math.max(0, until.getTime() - now().getTime()), signal);
  }

  #readHour(now: Date): Promise<RollingHour> {
    return (this.#known ??= this.options.counts.read(now).then((known) => {
      this.#learned = known.limit;
      this.#refusals = known.refusals;
      return hourOf(known, now);
    }));
  }
}

/** How long the platform refused requests, if it accepted one again at `acceptedAt`. */
const pauseMs = ({ since, until }: Refusals, acceptedAt: Date): number =>
  Math.min(until.getTime(), acceptedAt.getTime()) - since.getTime();

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
