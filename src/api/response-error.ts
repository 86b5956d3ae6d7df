import { errorBodySchema } from './schema.js';
import type { ApiError, Operation } from './errors/api-error.js';
import { RefusedError } from './errors/refused-error.js';
import { TryLaterError } from './errors/try-later-error.js';
import { UnknownOutcomeError } from './errors/unknown-outcome-error.js';
import { replaceUnsafe } from '../format/text.js';
import type { Redact } from '../redact.js';
import { parseRetryAfter } from './retry-after.js';

/** Server text is quoted up to this many characters. */
const QUOTE_LENGTH = 300;

/** A response as the transport hands it on. */
export interface RawResponse {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: string;
}

/** What is needed to explain a response. `keyName` is the environment variable that holds the key. */
interface Surroundings {
  readonly keyName: string;
  readonly now: Date;
  readonly redact: Redact;
}

/** The error that a response other than 2xx means. */
export function responseError(
  operation: Operation,
  response: RawResponse,
  { keyName, now, redact }: Surroundings,
): ApiError {
  const { status } = response;
  const retryAfterMs = parseRetryAfter(response.retryAfter, now);
  const said = `the server answered ${status}${quote(response.body, redact)}.`;
  if (status === 429) {
    const wait = retryAfterMs === undefined ? '' : ` It asks to wait ${Math.ceil(retryAfterMs / 1000)} s.`;
    return new TryLaterError(
      operation,
      'rate-limited',
      `the rate limit is reached; ${said}${wait}`,
      retryAfterMs,
    );
  }
  if (status === 503 && retryAfterMs !== undefined)
    return new TryLaterError(operation, 'not-taken', said, retryAfterMs);
  if (status >= 500)
    return operation.method === 'POST'
      ? new UnknownOutcomeError(operation, `${said} It may have been carried out all the same.`)
      : new TryLaterError(operation, 'server-fault', said, retryAfterMs);
  return new RefusedError(operation, status, `${said} ${adviceFor(status, keyName)}`);
}

/** What to do about a refusal. The interface documents no statuses; these are the ones seen in the field. */
function adviceFor(status: number, keyName: string): string {
  switch (status) {
    case 400:
      return 'Either the project id is unknown, or the request is bad: compare the id in readership.yaml with the API keys page of the dashboard.';
    case 401:
      return `The key in ${keyName} is wrong or has expired (keys may expire after 90 days): make a new one on the API keys page of the dashboard.`;
    case 402:
      return 'The account is out of credits.';
    case 403:
      return `The key in ${keyName} may be read-only, or this address is not allowed to use it: check the key's scope on the API keys page of the dashboard.`;
    case 404:
      return 'Nothing is there: check baseUrl in readership.yaml, and that the job still exists.';
    default:
      return 'Check baseUrl in readership.yaml.';
  }
}

function quote(body: string, redact: Redact): string {
  // Before tags are taken out, and after JSON's escapes are undone: either may hide the key. Half of one would pass
  // unnoticed, so both come before anything is cut to length.
  const words = plainWords(redact(serverWords(redact(body))));
  if (words === '') return '';
  return `: “${words.length > QUOTE_LENGTH ? `${words.slice(0, QUOTE_LENGTH)}…` : words}”`;
}

/** Untrusted text on one line, without characters that could steer a terminal. */
export const plainWords = (text: string): string =>
  replaceUnsafe(text, () => ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();

/** The words in an error body: JSON in the shape seen in the field, plain text, or an HTML page without its tags. */
function serverWords(body: string): string {
  try {
    const { error, details = [] } = errorBodySchema.parse(JSON.parse(body));
    return [error, ...details.map((detail) => detail.message)].join('; ');
  } catch {
    return body.replaceAll(/<(script|style)[\s\S]*?<\/\1>|<[^>]*>/gi, ' ');
  }
}
