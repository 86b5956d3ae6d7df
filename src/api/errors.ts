import { addMilliseconds } from 'date-fns';
import { ReadershipError } from '../errors.js';
import { duration, nextMinute } from '../format/days.js';
import { replaceUnsafe } from '../format/text.js';
import type { ResponseHeaders } from '../network.js';
import type { Redact } from '../redact.js';
import { LONGEST_WAIT_MS, parseRetryAfter } from './retry-after.js';

/** The request, named in every message. The URL contains no secret; the key is sent in a header. */
export interface Operation {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  readonly url: string;
}

/** The name of the operation that reads page views. */
export const VIEWS_OPERATION = 'read page views';

/** A request to the server failed. */
export abstract class ApiError extends ReadershipError {
  constructor(
    readonly operation: Operation,
    what: string,
    options?: ErrorOptions,
  ) {
    super(`Could not ${operation.name}: ${what} [${operation.method} ${operation.url}]`, options);
  }
}

/** The server's response is not what the documented API allows. */
export class ContractError extends ApiError {}

/** The server refused, and will refuse again until something is changed: any status except 2xx, 408, 425, 429 and 5xx. */
export class RefusedError extends ApiError {
  constructor(
    operation: Operation,
    readonly status: number,
    what: string,
    /** The server's own words. */
    readonly words = '',
  ) {
    super(operation, what);
  }
}

/**
 * Why it may work later. `not-taken` is a 503 with a `Retry-After`: the server itself says that it did not start. A 503
 * without one may come from a proxy that lost the server halfway, so it is a `server-error`.
 */
export type TryLaterReason =
  'rate-limited' | 'not-taken' | 'server-error' | 'unreachable' | 'connection-lost';

const KNOWN_NOT_DONE: ReadonlySet<TryLaterReason> = new Set(['rate-limited', 'not-taken', 'unreachable']);

/** The server or the network cannot answer now: 429, 5xx, no connection or a lost one. */
export class TryLaterError extends ApiError {
  override readonly exitCode = 75;
  override readonly resumeAt: Date | undefined;

  constructor(
    operation: Operation,
    readonly reason: TryLaterReason,
    what: string,
    /** How long the server asked us to wait; undefined when it did not say. */
    readonly retryAfterMs?: number,
    { now, ...options }: ErrorOptions & { readonly now?: Date } = {},
  ) {
    super(operation, what, options);
    this.resumeAt =
      now === undefined || retryAfterMs === undefined ? undefined : addMilliseconds(now, retryAfterMs);
  }

  /** Whether the server cannot have acted on the request. */
  get isKnownNotDone(): boolean {
    return KNOWN_NOT_DONE.has(this.reason);
  }
}

/** Whether the server refused a request because of a limit. */
export const isRateLimited = (error: unknown): error is TryLaterError =>
  error instanceof TryLaterError && error.reason === 'rate-limited';

/**
 * A request that changes something was sent, and its response never came or cannot be read: it may
 * have been carried out.
 */
export class UnknownOutcomeError extends ApiError {}

/** What an answer means that cannot be used: one to a request that changes something leaves its outcome unknown. */
export const unusable = (operation: Operation, what: string, options?: ErrorOptions): ApiError =>
  operation.method === 'GET'
    ? new ContractError(operation, what, options)
    : new UnknownOutcomeError(operation, what, options);

/** Why nothing is sent after a refusal. */
export const SERVER_PAUSE = 'The platform refused a request, because of its own limit.';

/** The next request may be sent only at `resumeAt`, which is later than this command waits. */
export class PausedError extends ReadershipError {
  override readonly exitCode = 75;
  /** The message without advice, for `doctor`. */
  readonly words: string;

  constructor(
    why: string,
    override readonly resumeAt: Date,
  ) {
    const words = `${why} The next request can be sent on ${nextMinute(resumeAt)}.`;
    super(why === SERVER_PAUSE ? `${words} To ask it again now: readership doctor` : words);
    this.words = words;
  }
}

/** The clocks of this machine and the platform differ too much to load a day that has ended here, or to send anything. */
export class ClockError extends ReadershipError {
  override readonly exitCode = 75;
}

/** Pages that do not end, repeat or omit rows, or have impossible counts: the server does not follow the pagination rules of the API. */
export class PagingError extends ReadershipError {
  constructor(what: string) {
    super(`${what}. Nothing was stored for this day; it will be retried later.`);
  }
}

const MINUTE_MS = 60_000;

/** Server text is quoted up to this many characters. */
const QUOTE_LENGTH = 300;

/** A response as the transport hands it on. */
export interface RawResponse<Body = string> {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: Body;
}

/** What is needed to explain a response. `keyName` is the environment variable that holds the key. */
interface RequestContext {
  readonly keyName: string;
  readonly now: Date;
  readonly redact: Redact;
}

/** The error that a response other than 2xx means. */
export function responseError(
  operation: Operation,
  { status, headers, body }: RawResponse,
  { keyName, now, redact }: RequestContext,
): ApiError {
  const retryAfterMs = parseRetryAfter(headers['retry-after'], now);
  const words = quote(body, redact);
  const said = `the server answered ${status}${words}.`;
  const later = (reason: TryLaterReason, what: string) =>
    new TryLaterError(operation, reason, what, retryAfterMs, { now });
  const orMore = retryAfterMs === LONGEST_WAIT_MS ? ' or more' : '';
  // Jobs keep these words, and are looked at hours later.
  const until = (waitMs: number) =>
    waitMs < MINUTE_MS ? '' : `, until ${nextMinute(addMilliseconds(now, waitMs))}`;
  const asked =
    retryAfterMs === undefined
      ? said
      : `${said} It asks to wait ${duration(retryAfterMs)}${orMore}${until(retryAfterMs)}.`;
  if (status === 429) return later('rate-limited', `the rate limit has been reached; ${asked}`);
  // 425: the server did not want to risk acting on the request.
  if (status === 425 || (status === 503 && retryAfterMs !== undefined)) return later('not-taken', asked);
  const isRedirect = status >= 300 && status < 400;
  // These ask for the same request elsewhere; others, such as 303, may follow one that was carried out.
  const hasMoved = [301, 307, 308].includes(status);
  if (operation.method === 'POST' && (status >= 500 || status === 408 || (isRedirect && !hasMoved)))
    return new UnknownOutcomeError(operation, `${said} It may have been carried out.`);
  if (status >= 500 || status === 408) return later('server-error', said);
  const target = isRedirect ? headers['location'] : undefined;
  const advice =
    target === undefined
      ? adviceFor(status, keyName, operation)
      : `It redirects to ${plainWords(redact(target)).slice(0, QUOTE_LENGTH)}. Set baseUrl in readership.yaml to the address behind the redirect: the key is sent to no other server.`;
  return new RefusedError(operation, status, `${said} ${advice}`.trimEnd(), words);
}

/** What to do about a refusal. The API documents no statuses; these are the ones seen in the field. */
function adviceFor(status: number, keyName: string, { url }: Operation): string {
  const [, baseUrl = url, project = '', job] =
    /^(.*)\/v\d+\/(?:analytics|agent)\/([^/]+)\/(?:job\/([^/]+))?/.exec(url) ?? [];
  switch (status) {
    case 400:
      return `Either there is no project ${project}, or the request is invalid: compare the ID with the API keys page of the dashboard.`;
    case 401:
      return `The key in ${keyName} is wrong or has expired (keys may expire after 90 days): create a new one on the API keys page of the dashboard.`;
    case 402:
      return 'The account is out of credits.';
    case 403:
      return `The key in ${keyName} may be read-only, or this address is not allowed to use it: check the key's scope on the API keys page of the dashboard.`;
    case 404:
      return `Check the project ID (${project}) and the address (${baseUrl}), to which Readership adds /v1 or /v2${job === undefined ? '' : ', and whether the job still exists'}.`;
    case 405:
      return `Check the address (${baseUrl}).`;
    default:
      return '';
  }
}

function quote(body: string, redact: Redact): string {
  // Tags and JSON escapes may hide the key, so it is redacted before and after they are removed,
  // and before the text is cut: half a key would not be recognized.
  const words = plainWords(redact(serverWords(redact(body))));
  if (words === '') return '';
  return `: “${words.length > QUOTE_LENGTH ? `${words.slice(0, QUOTE_LENGTH)}…` : words}”`;
}

/** Untrusted text on one line, without control characters. */
export const plainWords = (text: string): string =>
  replaceUnsafe(text, () => ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();

/** The words in an error body: JSON of any shape, plain text, or an HTML page without its tags. */
function serverWords(body: string): string {
  try {
    const json: unknown = JSON.parse(body);
    if (typeof json === 'object' && json !== null) return wordsIn(json).join('; ');
  } catch {
    // Not JSON.
  }
  return body.replaceAll(/<(script|style)[\s\S]*?<\/\1>|<[^>]*>/gi, ' ');
}

/** Texts of fields that name a message are quoted alone, others after the name of their field. */
function wordsIn(value: unknown): string[] {
  if (value === null || value === '') return [];
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object') return [JSON.stringify(value)];
  if (Array.isArray(value)) return value.flatMap(wordsIn);
  return Object.entries(value).flatMap(([name, inner]) =>
    wordsIn(inner).map((words) => (TEXT_FIELDS.has(name) ? words : `${name}: ${words}`)),
  );
}

const TEXT_FIELDS: ReadonlySet<string> = new Set(['error', 'message', 'details', 'detail', 'errors']);
