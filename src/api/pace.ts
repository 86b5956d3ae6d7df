import { addMilliseconds } from 'date-fns';
import { setImmediate } from 'node:timers/promises';
import { type Sleep, sleepFor } from '../sleep.js';
import { isRateLimited, PausedError, SERVER_PAUSE } from './errors.js';
import type { Refusals, requestsOf } from '../state/platform.js';
import { hourOf, type RollingHour } from './hour.js';
import { LONGEST_WAIT_MS } from './retry-after.js';

/** The pause after a refusal that names none. If the next request is refused as well, the next pause is twice as long. */
const FIRST_PAUSE_MS = 5_000;

/** Requests that ask at the same time, and whether they are counted, and may be sent. */
interface Claim {
  requests: number;
  readonly isCounted: Promise<boolean>;
}

/** Requests of so much time share a record, unless there is a limit: each waits for the disk. */
const RECORD_EVERY_MS = 1_000;

/** Refusals that follow each other by more than this are not one pause. */
const SAME_PAUSE_MS = LONGEST_WAIT_MS;

/** A shorter pause teaches nothing of the requests that the platform accepts in an hour. */
const TEACHING_PAUSE_MS = 10 * 60_000;

/** Where the requests of a key are counted, so that caps, limits and pauses outlive a process. */
type RequestCounts = ReturnType<typeof requestsOf>;

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
 * Decides when requests may be sent; all that use the same key share one. As fast as the platform answers, unless a cap is
 * set. After a refusal, everything pauses. Under a limit, each request is counted in the state before it is sent, so that no
 * other process exceeds it, and a crash can only overcount.
 */
export class RequestPace {
  #known: Promise<RollingHour> | undefined;
  /** The requests an hour that the platform accepts, if it taught that. */
  #learned: number | undefined;
  /** Refusals since the last accepted request. */
  #refusals: Refusals | undefined;
  #sent = 0;
  /** The last request that was sent before the latest refusal arrived. */
  #lastBeforeRefusal = 0;
  /** When requests were refused without an answer since: pauses that follow each other are one. */
  #refusedSince: Date | undefined;
  /** The request that asks whether a pause is over, until it has ended. */
  #asking: { readonly request: number; readonly ended: Promise<void>; readonly end: () => void } | undefined;
  #unrecorded = { sent: 0, refused: 0 };
  #recordedMs = 0;
  /** What is about to be counted under a limit. */
  #claim: Claim | undefined;

  constructor(private readonly options: PaceOptions) {}

  /** Sends a request once it may be sent, and takes note of the answer. Throws as `next` and `request` do. */
  async send<Answer>(
    request: () => Promise<Answer>,
    signal: AbortSignal | undefined,
    trial: boolean,
  ): Promise<Answer> {
    const number = await this.next(signal, trial);
    try {
      const answer = await request();
      await this.answered(number);
      return answer;
    } catch (error) {
      if (isRateLimited(error)) await this.refused(number, error.retryAfterMs);
      throw error;
    } finally {
      this.ended(number);
    }
  }

  /**
   * Resolves with the number of a request when it may be sent; throws a `PausedError` if that is later than the command
   * waits. After a pause, one request asks whether it is over, and the others wait for its answer. A `trial` is sent in
   * spite of a refusal.
   */
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
        await this.#waitUntil(pausedUntil, SERVER_PAUSE, this.#refusedSince ?? at, signal);
      else if (freeAt > at)
        await this.#waitUntil(
          freeAt,
          `${limit === cap ? 'history.requestsPerHour' : 'The hourly limit of the platform'} reached: ${hour.used(at)} of ${limit} used.`,
          at,
          signal,
        );
      else if (!trial && this.#refusals !== undefined && this.#asking !== undefined) await this.#asking.ended;
      else {
        const request = ++this.#sent;
        if (!trial && this.#refusals !== undefined) this.#ask(request);
        hour.add(1, at);
        const isCounted = await this.#count(limit, at).catch((error: unknown) => {
          this.ended(request);
          throw error;
        });
        if (isCounted) return request;
        this.ended(request);
      }
    }
  }

  /** Counts a request that is about to be sent; false if other processes have used what `limit` left. */
  async #count(limit: number, at: Date): Promise<boolean> {
    if (limit !== Infinity) {
      const claim = (this.#claim ??= this.#beginClaim(limit));
      claim.requests++;
      return claim.isCounted;
    }
    this.#unrecorded.sent++;
    if (Math.abs(at.getTime() - this.#recordedMs) >= RECORD_EVERY_MS) await this.record();
    return true;
  }

  /** All requests that ask in the same turn of the event loop are counted together, because each count waits for the disk. */
  #beginClaim(limit: number): Claim {
    const { counts, now } = this.options;
    const count = async () => {
      await setImmediate();
      this.#claim = undefined;
      const isCounted = (await counts.count({ sent: claim.requests, refused: 0 }, now(), limit)) > 0;
      // Other processes have used it: how much they left is read once, for all that have asked.
      if (!isCounted) this.#known = undefined;
      return isCounted;
    };
    const claim: Claim = { requests: 0, isCounted: count() };
    return claim;
  }

  #ask(request: number): void {
    let end = (): void => undefined;
    const ended = new Promise<void>((resolve) => (end = resolve));
    this.#asking = { request, ended, end };
  }

  /** The request has ended, with an answer or without. */
  ended(request: number): void {
    if (this.#asking?.request !== request) return;
    this.#asking.end();
    this.#asking = undefined;
  }

  /**
   * The server answered 429, with or without a wait: nothing is sent before that is over. Requests that were under way when
   * the pause began do not make it longer, unless they are refused for longer.
   */
  async refused(request: number, retryAfterMs: number | undefined): Promise<void> {
    const { counts, now } = this.options;
    this.#unrecorded.refused++;
    const namesWait = retryAfterMs !== undefined && retryAfterMs > 0;
    if (!namesWait && request <= this.#lastBeforeRefusal) return;
    this.#lastBeforeRefusal = this.#sent;
    const at = now();
    this.#refusedSince ??= at;
    const hour = await this.#readHour(at);
    const backoffMs = Math.min(LONGEST_WAIT_MS, Math.max(FIRST_PAUSE_MS, 2 * hour.pauseMs));
    const until = addMilliseconds(at, namesWait ? retryAfterMs : backoffMs);
    hour.pause(at, until);
    const earlier = this.#refusals;
    const isSame = earlier !== undefined && at.getTime() - earlier.until.getTime() < SAME_PAUSE_MS;
    const longest = isSame && earlier.until > until ? earlier.until : until;
    this.#refusals = { since: isSame ? earlier.since : at, at, until: longest };
    await this.record();
    await counts.recordRefusal(this.#refusals);
  }

  /**
   * The server answered otherwise. Ends what earlier refusals meant, and learns from a long pause: as many requests as were accepted in any hour before it
   * are accepted in each.
   */
  async answered(request: number): Promise<void> {
    const { counts, now } = this.options;
    if (request <= this.#lastBeforeRefusal) return;
    this.#refusedSince = undefined;
    const at = now();
    const hour = await this.#readHour(at);
    const refusals = this.#refusals;
    if (refusals === undefined) return;
    this.#refusals = undefined;
    hour.forgetPauses();
    await this.record();
    const most = pauseMs(refusals, at) < TEACHING_PAUSE_MS ? 0 : counts.mostAccepted(refusals.since);
    // If the platform accepted nothing, its limit is unknown.
    const limit = most > 0 ? most : undefined;
    this.#learned = limit ?? this.#learned;
    await counts.recordAccepted(limit, at);
  }

  /** Records the requests that were sent since the last record. */
  async record(): Promise<void> {
    const requests = this.#unrecorded;
    const at = this.options.now();
    this.#unrecorded = { sent: 0, refused: 0 };
    this.#recordedMs = at.getTime();
    if (requests.sent + requests.refused > 0) await this.options.counts.count(requests, at);
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
