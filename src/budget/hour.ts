import { addMilliseconds } from 'date-fns';
import { LONGEST_WAIT_MS } from '../api/http-date.js';

const HOUR_MS = 60 * 60 * 1000;

/** A reserved block must be spent within this time, so it counts for that much longer than an hour. */
export const BLOCK_LIFE_MS = 50_000;

/** A request may be on its way for this long before the server counts it. */
const ARRIVAL_MS = 10_000;

/** Requests that count against the budget until `freeAt`. */
interface Use {
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
 * Reads the ledger as of `now`. Where the clock was set back since it was written, rows lie in the future: by an hour
 * they still count, as if fresh. By more they, and pauses longer than any we believe, come from a clock that was wrong;
 * a budget brings its rows to its own clock before it begins.
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
export const freeAt = (usedAt: Date): Date => addMilliseconds(usedAt, HOUR_MS + BLOCK_LIFE_MS + ARRIVAL_MS);

export const usedRequests = ({ uses }: HourState): number => uses.reduce((sum, use) => sum + use.requests, 0);

/** When `wanted` more requests fit under `limit`: now, or as soon as enough of the earlier ones no longer count. */
export function nextFreeAt(state: HourState, limit: number, wanted: number, now: Date): Date {
  let used = usedRequests(state);
  let at = now;
  for (const use of [...state.uses].sort(byFreeAt)) {
    if (used + wanted <= limit) break;
    used -= use.requests;
    at = use.freeAt;
  }
  return state.pausedUntil !== undefined && state.pausedUntil > at ? state.pausedUntil : at;
}

/** When the last of `requests` can be sent, if `limit` an hour are sent as early as they may be. */
export function finishingAt(state: HourState, limit: number, requests: number, now: Date): Date {
  const start = state.pausedUntil ?? now;
  const queue = [
    { requests: Math.max(0, limit - usedRequests(state)), freeAt: start },
    ...usesWithin(limit, state),
  ];
  let left = requests;
  let at = start;
  const earliest = () => queue.sort(byFreeAt).shift();
  for (let next = earliest(); next !== undefined && left > 0; next = earliest()) {
    if (next.freeAt > at) at = next.freeAt;
    left -= next.requests;
    queue.push({ requests: next.requests, freeAt: freeAt(at) });
  }
  return at;
}

/** The uses that make room under `limit` when they are over: of those beyond it, the first make none. */
function usesWithin(limit: number, state: HourState): Use[] {
  let excess = Math.max(0, usedRequests(state) - limit);
  return [...state.uses].sort(byFreeAt).map((use) => {
    const beyond = Math.min(excess, use.requests);
    excess -= beyond;
    return { ...use, requests: use.requests - beyond };
  });
}

const byFreeAt = (left: Use, right: Use): number => left.freeAt.getTime() - right.freeAt.getTime();

const latest = (dates: readonly Date[]): Date | undefined =>
  dates.length === 0 ? undefined : new Date(Math.max(...dates.map((date) => date.getTime())));
