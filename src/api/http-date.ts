/** The longest `Retry-After` that is honored. */
export const LONGEST_WAIT_MS = 24 * 60 * 60 * 1000;

/**
 * The wait in a `Retry-After` header, in milliseconds: whole seconds or an HTTP date (RFC 9110, 10.2.3).
 * Undefined when the header is absent or unreadable. A date in the past means no wait.
 */
export function parseRetryAfter(header: string | undefined, now: Date): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1000 : httpDate(text) - now.getTime();
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, waitMs), LONGEST_WAIT_MS);
}

const WEEKDAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const DAY = '(?<day>0[1-9]|[12]\\d|3[01])';
const MONTH = '(?<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const YEAR = '(?<year>[1-9]\\d{3})';
const TIME = '(?<time>(?:[01]\\d|2[0-3])(?::[0-5]\\d){2})';

/** The three forms of an HTTP date (RFC 9110, 5.6.7). `Date.parse` alone takes many more, and the last as local time. */
const FORMS = [
  `${WEEKDAY}, ${DAY} ${MONTH} ${YEAR} ${TIME} GMT`,
  `(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, ${DAY}-${MONTH}-(?<year>\\d\\d) ${TIME} GMT`,
  `${WEEKDAY} ${MONTH} (?<day> [1-9]|[12]\\d|3[01]) ${TIME} ${YEAR}`,
].map((form) => new RegExp(`^${form}$`));

/** NaN for anything that is not an HTTP date. */
export function httpDate(text: string): number {
  const form = FORMS.find((candidate) => candidate.test(text));
  return form === undefined ? NaN : Date.parse(text.replace(form, '$<day> $<month> $<year> $<time> GMT'));
}
