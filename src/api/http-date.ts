/** The longest `Retry-After` that is honored. */
export const LONGEST_WAIT_MS = 24 * 60 * 60 * 1000;

/**
 * The wait in a `Retry-After` header, in milliseconds: whole seconds or an HTTP date (RFC 9110, 10.2.3).
 * Undefined when the header is absent or unreadable. A date in the past means no wait.
 */
export function parseRetryAfter(header: string | undefined, now: Date): number | undefined {
  const text = header?.trim() ?? '';
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1000 : httpDate(text) - now.getTime();
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, waitMs), LONGEST_WAIT_MS);
}

/** The time of an HTTP date in the only form that servers may send (RFC 9110, 5.6.7); NaN for any other text. */
export function httpDate(text: string): number {
  const at = new Date(text);
  return at.toUTCString() === text ? at.getTime() : NaN;
}
