import { addMilliseconds } from 'date-fns';
import { LONGEST_WAIT_MS } from '../api/retry-after.js';

const HOUR_MS = 60 * 60 * 1000;

/** A reserved block must be spent within this time, so it counts for that much longer than an hour. */
export const BLOCK_LIFE_MS = 60_000;

/** Requests that count against the budget until `freeAt`. */
export interface Use {
  readonly requests: number;
  readonly freeAt: Date;
}

/** A row of the ledger, as far as the rolling hour is concerned. */
export interface LedgerRow {
  readonly used_at: Date;
  readonly requests: number;
  readonly paused_until: Date | null;
}

/** What the ledger says at a moment: what still counts, and until when nobody may ask at all. */
export interface HourState {
  readonly uses: readonly Use[];
  readonly pausedUntil: Date | undefined;
}

/**
 * Reads the ledger as of `now`. Where the clock was set back, rows lie in the future: by an hour they still count, as
 * if fresh; by more they, and pauses longer than any we believe, come from a clock that was wrong.
 */
export function hourState(rows: readonly LedgerRow[], now: Date): HourState {
  const uses = rows
    .filter(({ used_at }) => used_at <= addMilliseconds(now, HOUR_MS))
    .map(({ used_at, requests }) => ({ requests, freeAt: freeAt(used_at < now ? used_at : now) }))
    .filter((use) => use.requests > 0 && use.freeAt > now);
  const longest = addMilliseconds(now, LONGEST_WAIT_MS);
  const pauses = rows
    .flatMap(({ paused_until }) => paused_until ?? [])
    .filter((until) => until > now && until <= longest);
  return { uses, pausedUntil: latest(pauses) };
}

/** When requests used at `usedAt` no longer count. */
export const freeAt = (usedAt: Date): Date => addMilliseconds(usedAt, HOUR_MS + BLOCK_LIFE_MS);

export const usedRequests = ({ uses }: HourState): number => uses.reduce((sum, use) => sum + use.requests, 0);

/** When `wanted` more requests fit under `limit`: now, or as soon as enough of the earlier ones no longer count. */
export function nextFreeAt(state: HourState, limit: number, wanted: number, now: Date): Date {
  let used = usedRequests(state);
  let at = now;
  for (const use of [...state.uses].sort((left, right) => left.freeAt.getTime() - right.freeAt.getTime())) {
    if (used + wanted <= limit) break;
    used -= use.requests;
    at = use.freeAt;
  }
  return state.pausedUntil !== undefined && state.pausedUntil > at ? state.pausedUntil : at;
}

/** When the last of `requests` can be sent, if `limit` an hour are sent as early as they may be. */
export function finishingAt(state: HourState, limit: number, requests: number, now: Date): Date {
  const start = state.pausedUntil ?? now;
  const queue = [{ requests: Math.max(0, limit - usedRequests(state)), freeAt: start }, ...state.uses];
  let left = requests;
  let at = start;
  while (left > 0) {
    queue.sort((earlier, later) => earlier.freeAt.getTime() - later.freeAt.getTime());
    const next = queue.shift();
    if (next === undefined) break;
    if (next.freeAt > at) at = next.freeAt;
    left -= next.requests;
    queue.push({ requests: next.requests, freeAt: freeAt(at) });
  }
  return at;
}

const latest = (dates: readonly Date[]): Date | undefined =>
  dates.length === 0 ? undefined : new Date(Math.max(...dates.map((date) => date.getTime())));
