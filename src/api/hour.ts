import { endOfMinute } from 'date-fns';
import type { KnownRequests } from '../state/platform.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** A request may be on its way for this long before the server counts it. */
const ARRIVAL_MS = 30_000;

/**
 * When requests sent at `usedAt` no longer count. Rounded up to the minute: requests that were sent together become
 * free together, so an export that resumes then can send them all.
 */
export const freeAt = (usedAt: Date): Date =>
  new Date(Math.ceil((usedAt.getTime() + HOUR_MS + ARRIVAL_MS) / MINUTE_MS) * MINUTE_MS);

/** Requests that were sent together. */
interface SentRequests {
  readonly at: Date;
  readonly requests: number;
}

/** The requests of the last hour, and the end of a pause requested by the server. */
export class RollingHour {
  /** Requests by the time, in milliseconds, at which they no longer count. */
  readonly #uses = new Map<number, number>();
  #pausedUntilMs = 0;
  #pauseMs = 0;

  /**
   * The hour before `now`. If the clock was set back since requests were sent, they lie in the future. Up to an hour
   * ahead, they count as if they were sent now; those further ahead come from a wrong clock and are ignored.
   */
  constructor(sent: readonly SentRequests[], now: Date) {
    for (const { at, requests } of sent)
      if (at.getTime() <= now.getTime() + HOUR_MS) this.add(requests, at < now ? at : now);
  }

  /** Counts requests sent at `usedAt`. */
  add(requests: number, usedAt: Date): void {
    const freeMs = freeAt(usedAt).getTime();
    this.#uses.set(freeMs, (this.#uses.get(freeMs) ?? 0) + requests);
  }

  pause(from: Date, until: Date): void {
    if (until.getTime() <= this.#pausedUntilMs) return;
    this.#pausedUntilMs = until.getTime();
    this.#pauseMs = until.getTime() - from.getTime();
  }

  /** The server answers again. */
  forgetPauses(): void {
    this.#pausedUntilMs = 0;
    this.#pauseMs = 0;
  }

  /** The length of the last pause, also if it is over; 0 if the server has answered since. */
  get pauseMs(): number {
    return this.#pauseMs;
  }

  pausedUntil(now: Date): Date | undefined {
    return this.#pausedUntilMs > now.getTime() ? new Date(this.#pausedUntilMs) : undefined;
  }

  used(now: Date): number {
    return this.#current(now).reduce((sum, [, requests]) => sum + requests, 0);
  }

  /** When one more request fits under `limit`: now, or as soon as enough earlier ones no longer count. */
  nextFreeAt(limit: number, now: Date): Date {
    let used = this.used(now);
    let atMs = now.getTime();
    for (const [freeMs, requests] of this.#current(now)) {
      if (used < limit) break;
      used -= requests;
      atMs = freeMs;
    }
    return new Date(atMs);
  }

  /** What still counts, in the order in which it ends: after the clock was set back, for no longer than if sent now. */
  #current(now: Date): [freeMs: number, requests: number][] {
    const latestMs = freeAt(now).getTime();
    for (const [freeMs, requests] of this.#uses) {
      if (freeMs <= now.getTime()) this.#uses.delete(freeMs);
      if (freeMs <= latestMs) continue;
      this.#uses.delete(freeMs);
      this.#uses.set(latestMs, (this.#uses.get(latestMs) ?? 0) + requests);
    }
    return [...this.#uses].sort(([left], [right]) => left - right);
  }
}

/** The last hour of a key. */
export function hourOf({ sent, refusals }: KnownRequests, now: Date): RollingHour {
  // It is not known when in their minute they were sent.
  const uses = sent.map(({ minute, requests }) => ({ at: endOfMinute(minute), requests }));
  const hour = new RollingHour(uses, now);
  if (refusals !== undefined) hour.pause(refusals.at, refusals.until);
  return hour;
}
