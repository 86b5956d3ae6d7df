const HOUR_MS = 3_600_000;

/** The uses that a rolling hour ending at `now` still counts. */
export const withinHour = (uses: readonly Date[], now: Date): Date[] =>
  uses.filter((use) => now.getTime() - use.getTime() < HOUR_MS);

/**
 * Whether one more use fits into the rolling hour: undefined if so, else the whole seconds until it will
 * (at least 1), as a `Retry-After` tells them.
 */
export function secondsUntilFree(uses: readonly Date[], limit: number, now: Date): number | undefined {
  const counted = withinHour(uses, now).sort((a, b) => a.getTime() - b.getTime());
  if (counted.length < limit) return undefined;
  const leaves = counted[counted.length - limit];
  const waitMs = leaves === undefined ? HOUR_MS : leaves.getTime() + HOUR_MS - now.getTime();
  return Math.max(1, Math.ceil(waitMs / 1000));
}
