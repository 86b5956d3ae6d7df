import { isUtf8 } from 'node:buffer';
import { gunzipSync } from 'node:zlib';
import pLimit, { type LimitFunction } from 'p-limit';
import type { Dispatcher } from 'undici';
import { codeOf, messageOf } from '../errors.js';
import {
  connectionFailure,
  connections,
  type ResponseHeaders,
  singleValues,
  USER_AGENT,
} from '../network.js';
import { machineAdvice } from '../storage.js';
import {
  type ApiError,
  type Operation,
  plainWords,
  type RawResponse,
  TryLaterError,
  UnknownOutcomeError,
  unusable,
} from './errors.js';

/** 250 rows of long paths fit many times over. */
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

/** Requests for reading at the same time: more of them load nothing faster. */
export const READS_AT_ONCE = 16;

export interface TransportOptions {
  /** From the request to the end of the response; a minute by default. */
  readonly responseTimeoutMs?: number;
  /** Maximum concurrent read requests; `READS_AT_ONCE` by default. */
  readonly concurrency?: number;
  readonly onHeaders?: (headers: ResponseHeaders) => void;
}

/** Calls `act` after a turn of the event loop in which `progress` stayed the same; not if it becomes undefined. */
function onceIdle(progress: () => string | undefined, act: () => void): void {
  const before = progress();
  // The first one may run before sockets are read.
  setImmediate(() =>
    setImmediate(() => {
      const after = progress();
      if (after === undefined) return;
      if (after === before) act();
      else onceIdle(progress, act);
    }),
  );
}

/** Sends a request once and returns its result. The caller decides what that means and whether to retry. */
export class Transport {
  readonly #reads: Dispatcher;
  readonly #writes: Dispatcher;
  readonly #inTurn: LimitFunction;

  constructor(private readonly options: TransportOptions = {}) {
    this.#inTurn = pLimit(options.concurrency ?? READS_AT_ONCE);
    const limits = {
      // One deadline for the whole answer replaces those for its parts.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxResponseSize: MAX_RESPONSE_BYTES,
    };
    this.#reads = connections(limits);
    // A kept connection that the server is just closing would make the outcome of a POST unknown,
    // so each has its own.
    this.#writes = connections({ ...limits, pipelining: 0 });
  }

  /**
   * Throws a `TryLaterError`, or for a POST that may have arrived an `UnknownOutcomeError`; or the
   * signal's reason.
   */
  async send(
    operation: Operation,
    apiKey: string | undefined,
    body: unknown,
    signal: AbortSignal | undefined,
  ): Promise<RawResponse> {
    const { method } = operation;
    const { origin, pathname, search } = new URL(operation.url);
    const request = {
      origin,
      method,
      path: pathname + search,
      headers: {
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
        // GitHub refuses requests without one.
        'user-agent': USER_AGENT,
        accept: 'application/json',
        'accept-encoding': 'gzip',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    };
    const send = () => this.#dispatch(operation, request, signal);
    const answer = await (method === 'GET' ? this.#inTurn(send) : send());
    this.options.onHeaders?.(answer.headers);
    return { ...answer, body: textOf(operation, answer) };
  }

  /** Closes all connections, idle or not. */
  async close(): Promise<void> {
    await Promise.all([this.#reads.destroy(), this.#writes.destroy()]);
  }

  /** Undici's lowest level: its streams cost more than everything else that happens to a page of views. */
  #dispatch(operation: Operation, request: Dispatcher.DispatchOptions, signal?: AbortSignal) {
    signal?.throwIfAborted();
    const { method } = operation;
    const { responseTimeoutMs = 60_000 } = this.options;
    return new Promise<RawResponse<Buffer>>((resolve, reject) => {
      const pieces: Buffer[] = [];
      let [status, headers]: [number, ResponseHeaders] = [0, {}];
      let controller: Dispatcher.DispatchController | undefined;
      let stopped: Error | undefined;
      const fail = (cause: Error) => {
        end();
        const isSent = controller !== undefined;
        // A read has no effect that could be unknown, nor has a request that was never sent.
        if (signal?.aborted === true && (method === 'GET' || !isSent)) reject(signal.reason as Error);
        // The status of a refusal is the answer: the text that is lost would only explain it.
        else if (status >= 300) resolve({ status, headers, body: Buffer.alloc(0) });
        else reject(failureOf(operation, cause, isSent));
      };
      const stop = (reason: Error) => {
        stopped = reason;
        if (controller === undefined) fail(reason);
        else controller.abort(reason);
      };
      const late = () => {
        stop(new Error(`it took more than ${responseTimeoutMs / 1_000} s`));
      };
      // If the process was suspended, the answer may be in the socket: what is there counts.
      const deadline = setTimeout(() => {
        onceIdle(() => (isOver ? undefined : `${status} ${pieces.length}`), late);
      }, responseTimeoutMs);
      const interrupt = () => {
        stop(new Error('interrupted'));
      };
      signal?.addEventListener('abort', interrupt);
      let isOver = false;
      const end = () => {
        isOver = true;
        clearTimeout(deadline);
        signal?.removeEventListener('abort', interrupt);
      };
      (method === 'GET' ? this.#reads : this.#writes).dispatch(request, {
        onRequestStart: (started) => {
          controller = started;
          // It was stopped while waiting for its connection, so nothing was sent.
          if (stopped !== undefined) started.abort(stopped);
        },
        onResponseStart: (_, statusCode, responseHeaders) => {
          [status, headers] = [statusCode, singleValues(responseHeaders)];
        },
        onResponseData: (_, piece) => {
          pieces.push(piece);
        },
        onResponseEnd: () => {
          end();
          resolve({ status, headers, body: Buffer.concat(pieces) });
        },
        onResponseError: (_, cause) => fail(cause),
      });
    });
  }
}

/** The text of an answer. That of a refusal only explains it, so an unreadable one counts as empty. */
function textOf(operation: Operation, { status, headers, body }: RawResponse<Buffer>): string {
  try {
    return decodeBody(body, headers['content-encoding'] ?? '');
  } catch (cause) {
    if (status < 200 || status >= 300) return '';
    throw unusable(operation, `its response cannot be decoded (${messageOf(cause)}).`, { cause });
  }
}

/** The text of a body in its `Content-Encoding`. Throws an error whose message says why it cannot be read. */
function decodeBody(body: Buffer, encoding: string): string {
  const bytes = decompress(body, encoding.trim().toLowerCase());
  const text = bytes.toString().replace(/^\uFEFF/, '');
  if (isUtf8(bytes)) return text;
  // Two paths that differ only in such bytes would become one.
  const [, path] = /"path"\s*:\s*"([^"]*\uFFFD[^"]*)"/.exec(text) ?? [];
  throw new Error(`it is not valid UTF-8${path === undefined ? '' : `, in the path “${plainWords(path)}”`}`);
}

function decompress(body: Buffer, encoding: string): Buffer {
  if (encoding === '' || encoding === 'identity') return body;
  if (encoding === 'gzip') return gunzipSync(body, { maxOutputLength: MAX_RESPONSE_BYTES });
  throw new Error(`the content encoding ${encoding} is unknown`);
}

function failureOf(operation: Operation, cause: Error, isSent: boolean): ApiError {
  const detail = connectionFailure(cause);
  if (!isSent) {
    const next = machineAdvice(cause) ?? 'Check the address and the network.';
    const what = `no connection (${detail}). ${next}`;
    return new TryLaterError(operation, 'unreachable', what, undefined, { cause });
  }
  const lost = `the connection was lost before the response was complete (${detail}).`;
  if (operation.method === 'POST')
    return new UnknownOutcomeError(operation, `${lost} It may have been carried out.`, { cause });
  if (codeOf(cause) === 'UND_ERR_RES_EXCEEDED_MAX_SIZE')
    return unusable(operation, `the response is larger than ${MAX_RESPONSE_BYTES / 2 ** 20} MB.`, { cause });
  return new TryLaterError(operation, 'connection-lost', lost, undefined, { cause });
}
