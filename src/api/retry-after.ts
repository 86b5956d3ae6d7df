/** The longest wait that we believe: a server that asks for more is asked again after this. */
export const LONGEST_WAIT_MS = 24 * 60 * 60 * 1000;

/**
 * The wait, in milliseconds, that a `Retry-After` header asks for: whole seconds or an HTTP date (RFC 9110, 10.2.3).
 * Undefined when the header is absent or says neither. A date in the past is no wait.
 */
export function parseRetryAfter(header: string | undefined, now: Date): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1000 : httpDate(text) - now.getTime();
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, waitMs), LONGEST_WAIT_MS);
}

/** Only the date forms of HTTP, all of which name a weekday first: `Date.parse` alone would take far more. */
const httpDate = (text: string): number => (/^[A-Z][a-z]+,? /.test(text) ? Date.parse(text) : NaN);
