/** The longest `Retry-After` that is honored. A server that wants more refuses again then. */
export const LONGEST_WAIT_MS = 60 * 60_000;

/** Limits are for an hour, so a larger number of seconds is rather one of milliseconds. */
const MOST_SECONDS = 2 * 60 * 60;
/** Larger numbers are times: seconds, or milliseconds, since 1970. */
const FIRST_TIME_SECONDS = 1e9;
const FIRST_TIME_MS = 1e11;

/**
 * The wait in a `Retry-After` header, in milliseconds: seconds or an HTTP date (RFC 9110, 10.2.3), and what servers send
 * instead: fractions of seconds, milliseconds, a Unix time, or a list, of which the first value counts. Undefined when the
 * header is absent or unreadable. A time in the past means no wait.
 */
export function parseRetryAfter(header: string | undefined, now: Date): number | undefined {
  const text = header?.trim() ?? '';
  const [, date, number] = /^(?:([A-Z][a-z]{2}, [^,]*)|(\d+(?:\.\d+)?)\s*)(?:,.*)?$/s.exec(text) ?? [];
  const waitMs =
    number === undefined ? httpDate((date ?? '').trim()) - now.getTime() : waitOf(Number(number), now);
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, Math.ceil(waitMs)), LONGEST_WAIT_MS);
}

function waitOf(number: number, now: Date): number {
  if (number >= FIRST_TIME_MS) return number - now.getTime();
  if (number >= FIRST_TIME_SECONDS) return number * 1_000 - now.getTime();
  return number > MOST_SECONDS ? number : number * 1_000;
}

/** The time of an HTTP date in the only form that servers may send (RFC 9110, 5.6.7); NaN for any other text. */
export function httpDate(text: string): number {
  const at = new Date(text);
  return at.toUTCString() === text ? at.getTime() : NaN;
}
