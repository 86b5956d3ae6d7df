import { addHours } from 'date-fns';
import { z } from 'zod';
import { LONGEST_WAIT_MS } from './retry-after.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Leased requests must be sent within this time, so they count for that much longer than an hour. */
export const LEASE_LIFE_MS = 20_000;

/** A request may be on its way for this long before the server counts it. */
const ARRIVAL_MS = 10_000;

/**
 * When requests used at `usedAt` no longer count. Rounded up to the minute: requests that were sent together become
 * free together, so an export that resumes then can send them all.
 */
export const freeAt = (usedAt: Date): Date =>
  new Date(Math.ceil((usedAt.getTime() + HOUR_MS + LEASE_LIFE_MS + ARRIVAL_MS) / MINUTE_MS) * MINUTE_MS);

const time = z.iso.datetime().transform((text) => new Date(text));

/** Requests that were sent, or were going to be, and the end of the pause if one of them was refused. */
export const recordedUse = z.object({
  used_at: time,
  requests: z.int(),
  paused_until: time.nullable(),
  /** Whether the platform refused a request: `requests` are then those that others must have sent. */
  is_refusal: z.boolean(),
});
export type RecordedUse = z.infer<typeof recordedUse>;

/** The requests of the last hour, and the end of a pause requested by the server. */
export class RollingHour {
  /** Requests by the time, in milliseconds, at which they no longer count. */
  readonly #uses = new Map<number, number>();
  #pausedUntilMs = 0;
  /** When the latest refusal no longer counts. */
  #refusedUntilMs = 0;

  /**
   * Reads the ledger as of `now`. If the clock was set back since it was written, rows lie in the
   * future. Up to an hour ahead, they count as if they were sent now. Rows further ahead, and pauses
   * longer than any that is honored, come from a wrong clock and are ignored.
   */
  constructor(rows: readonly RecordedUse[], now: Date) {
    for (const { used_at: usedAt, requests, paused_until: pausedUntil, is_refusal: isRefusal } of rows) {
      const countsAt = usedAt < now ? usedAt : now;
      if (usedAt.getTime() <= now.getTime() + HOUR_MS) {
        this.add(requests, countsAt);
        if (isRefusal && requests > 0) this.refuse(countsAt);
      }
      if (pausedUntil !== null && pausedUntil.getTime() <= now.getTime() + LONGEST_WAIT_MS)
        this.pause(pausedUntil);
    }
  }

  /**
   * Counts requests sent at `usedAt`; a negative number takes requests back, unless the clock was set back since and
   * they count from then.
   */
  add(requests: number, usedAt: Date): void {
    const freeMs = freeAt(usedAt).getTime();
    this.#uses.set(freeMs, Math.max(0, (this.#uses.get(freeMs) ?? 0) + requests));
  }

  /** The platform refused a request sent at `usedAt`, so others have used the hour. */
  refuse(usedAt: Date): void {
    this.#refusedUntilMs = Math.max(this.#refusedUntilMs, freeAt(usedAt).getTime());
  }

  /** Whether the platform has refused a request, and what that means still counts. */
  isRefused(now: Date): boolean {
    return Math.max(this.#refusedUntilMs, this.#pausedUntilMs) > now.getTime();
  }

  pause(until: Date): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, until.getTime());
  }

  pausedUntil(now: Date): Date | undefined {
    return this.#pausedUntilMs > now.getTime() ? new Date(this.#pausedUntilMs) : undefined;
  }

  used(now: Date): number {
    return this.#current(now).reduce((sum, [, requests]) => sum + requests, 0);
  }

  /** When `wanted` more requests fit under `limit`: now, or as soon as enough earlier ones no longer count. */
  nextFreeAt(limit: number, wanted: number, now: Date): Date {
    let used = this.used(now);
    let atMs = now.getTime();
    for (const [freeMs, requests] of this.#current(now)) {
      if (used + wanted <= limit) break;
      used -= requests;
      atMs = freeMs;
    }
    return new Date(Math.max(atMs, this.#pausedUntilMs));
  }

  /** About when the last of some requests is sent: those that fit into this hour first, then `limit` an hour. */
  finishingAt(limit: number | 'unlimited', requests: number, now: Date): Date {
    if (limit === 'unlimited' || requests === 0) return this.pausedUntil(now) ?? now;
    const hours = Math.floor((requests - 1) / limit);
    return addHours(this.nextFreeAt(limit, requests - hours * limit, now), hours);
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
