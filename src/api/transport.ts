import { Agent, request } from 'undici';
import type { ResponseHeaders } from './clock.js';
import { messageOf } from '../errors.js';
import {
  type ApiError,
  type Operation,
  type RawResponse,
  TryLaterError,
  UnknownOutcomeError,
} from './errors.js';

/** Limits on one request. */
export interface TransportLimits {
  readonly connectTimeoutMs: number;
  /** From the request to its headers, and between two pieces of the body. */
  readonly responseTimeoutMs: number;
}

const DEFAULT_LIMITS: TransportLimits = { connectTimeoutMs: 10_000, responseTimeoutMs: 60_000 };

/** 250 rows of long paths fit many times over. */
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

/** Failures that come before a request has left this machine. */
const NOT_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** A certificate that is not believed: the server has seen nothing of the request either. */
const NOT_TRUSTED = /^ERR_TLS_|CERT|SELF_SIGNED|^UNABLE_TO_/;

/** Sends a request once, beside any others, and says what became of it; retries and meaning are decided by those who call it. */
export class Transport {
  readonly #reads: Agent;
  readonly #writes: Agent;

  constructor(
    limits: Partial<TransportLimits> = {},
    private readonly onHeaders: (headers: ResponseHeaders) => void = () => undefined,
  ) {
    const { connectTimeoutMs, responseTimeoutMs } = { ...DEFAULT_LIMITS, ...limits };
    const options = {
      connect: { timeout: connectTimeoutMs },
      headersTimeout: responseTimeoutMs,
      bodyTimeout: responseTimeoutMs,
      maxResponseSize: MAX_RESPONSE_BYTES,
    };
    this.#reads = new Agent(options);
    // A kept connection that the server is just closing would make the outcome of a POST unknown, so each has its own.
    this.#writes = new Agent({ ...options, pipelining: 0 });
  }

  /** Throws a `TryLaterError`, or for a POST that may have arrived an `UnknownOutcomeError`; or the signal's reason. */
  async send(
    operation: Operation,
    apiKey: string,
    body: unknown,
    signal: AbortSignal | undefined,
  ): Promise<RawResponse> {
    try {
      const response = await request(operation.url, {
        method: operation.method,
        headers: {
          authorization: `Bearer ${apiKey}`,
          accept: 'application/json',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        body: body === undefined ? null : JSON.stringify(body),
        dispatcher: operation.method === 'GET' ? this.#reads : this.#writes,
        signal: signal ?? null,
      });
      const retryAfter = response.headers['retry-after'];
      this.onHeaders(response.headers);
      return {
        status: response.statusCode,
        retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined,
        body: await response.body.text(),
      };
    } catch (cause) {
      throw transportError(operation, cause, signal);
    }
  }

  /** Ends idle connections, and those under way at once. */
  async close(): Promise<void> {
    await Promise.all([this.#reads.destroy(), this.#writes.destroy()]);
  }
}

function transportError(operation: Operation, cause: unknown, signal: AbortSignal | undefined): unknown {
  const code = codeOf(cause);
  const notSent = NOT_CONNECTED.has(code) || NOT_TRUSTED.test(code);
  if (signal?.aborted && (operation.method === 'GET' || notSent)) return signal.reason;
  return failureOf(operation, cause, notSent);
}

function failureOf(operation: Operation, cause: unknown, notSent: boolean): ApiError {
  const detail = messageOf(cause) || codeOf(cause);
  if (notSent) {
    const what = `no connection (${detail}). Check baseUrl in readership.yaml, and the network.`;
    return new TryLaterError(operation, 'unreachable', what, undefined, { cause });
  }
  const lost = `the connection was lost before the whole answer came (${detail}).`;
  return operation.method === 'POST'
    ? new UnknownOutcomeError(operation, `${lost} It may have been carried out all the same.`, { cause })
    : new TryLaterError(operation, 'connection-lost', lost, undefined, { cause });
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
}
