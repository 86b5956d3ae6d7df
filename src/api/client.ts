import type { z } from 'zod';
import pRetry from 'p-retry';
import type { Day } from '../day.js';
import {
  isRateLimited,
  type Operation,
  plainWords,
  responseError,
  TryLaterError,
  type TryLaterReason,
  unusable,
  VIEWS_OPERATION,
} from './errors.js';
import { ConfigurationError } from '../errors.js';
import type { Attempt } from '../state/sender.js';
import { type Redact, redactor, unmistakable } from '../redact.js';
import type { RequestPace } from './pace.js';
import { type AgentJob, agentJobSchema, isJobId, LIMITS, pageOfViews, type ViewsResponse } from './schema.js';
import { READS_AT_ONCE, type Transport } from './transport.js';
import { isLasting } from '../network.js';
import { sleepFor } from '../sleep.js';

/** Checks an answer, as a schema does. */
type Checked<Answer> = Pick<z.ZodType<Answer>, 'safeParse'>;

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
  /** Whether it shows if the platform answers again after a refusal: the first attempt does not wait for the end of a pause. */
  readonly isTrial?: boolean;
}

/** What reads page views. */
export type ViewsClient = Pick<Client, 'views'>;

/** A page of views to request. Days are UTC; `dateTo` is exclusive. */
export interface ViewsQuery {
  readonly dateFrom: Day;
  readonly dateTo: Day;
  readonly limit: number;
  readonly offset: number;
}

export interface ClientOptions {
  readonly baseUrl: string;
  readonly projectId: string;
  readonly apiKey: string;
  /** The environment variable that holds the key, named in advice. */
  readonly keyName: string;
  readonly now: () => Date;
  readonly retries?: RetryPolicy | undefined;
  readonly onRetry?: OnRetry | undefined;
  /** When requests for views may be sent; shared by all that use the same key. */
  readonly pace?: RequestPace | undefined;
  /** Called before each request is sent, including retries. */
  readonly onRequest?: (operation: Operation) => void;
  /** May be shared with other clients, and is closed by its creator. */
  readonly transport: Transport;
}

/**
 * The documented API of one project. Requests that read are retried as `retrying` decides. Requests that create are
 * sent once, and throw an `UnknownOutcomeError` if their outcome is not known. No message ever contains the key.
 */
export class Client {
  readonly #redact: Redact;
  readonly #redactData: Redact;

  constructor(private readonly options: ClientOptions) {
    this.#redact = redactor([options.apiKey]);
    this.#redactData = redactor(unmistakable([options.apiKey]));
  }

  /** One page of views. */
  views(query: ViewsQuery, options: ReadOptions = {}): Promise<ViewsResponse> {
    const search = `dateFrom=${query.dateFrom}&dateTo=${query.dateTo}&limit=${query.limit}&offset=${query.offset}`;
    const operation = this.#operation(VIEWS_OPERATION, 'GET', `/v1/analytics/:project/views?${search}`);
    return this.#read(operation, pageOfViews, options, this.options.pace);
  }

  /** Creates an agent job. Sent once. Throws a `RangeError` for an empty prompt. */
  createJob(prompt: string, _: Attempt, signal?: AbortSignal): Promise<AgentJob> {
    const operation = this.#operation('create the agent job', 'POST', '/v2/agent/:project/job');
    return this.#write(operation, prompt, signal);
  }

  /** Sends a follow-up message to a job. Sent once. Throws a `RangeError` for an empty prompt. */
  async sendMessage(jobId: string, prompt: string, _: Attempt, signal?: AbortSignal): Promise<AgentJob> {
    const operation = this.#operation('send the follow-up message', 'POST', `${pathOf(jobId)}/message`);
    return expectJob(operation, jobId, await this.#write(operation, prompt, signal));
  }

  /** The current state of a job. The documented API names this operation but not its path. */
  async job(jobId: string, signal?: AbortSignal): Promise<AgentJob> {
    const operation = this.#operation('read the agent job', 'GET', pathOf(jobId));
    return expectJob(operation, jobId, await this.#read(operation, agentJobSchema, { signal }));
  }

  #operation(name: string, method: Operation['method'], path: string): Operation {
    const { baseUrl, projectId } = this.options;
    return { name, method, url: baseUrl + path.replace(':project', encodeURIComponent(projectId)) };
  }

  #read<Answer>(
    operation: Operation,
    schema: Checked<Answer>,
    { signal, isTrial = false }: ReadOptions,
    pace?: RequestPace,
  ): Promise<Answer> {
    const { retries = DEFAULT_RETRIES, onRetry = () => undefined } = this.options;
    const send = () => this.#send(operation, undefined, signal);
    let attempts = 0;
    const attempt = async () => {
      const isFirst = attempts++ === 0;
      const body = await (pace === undefined ? send() : pace.send(send, signal, isTrial && isFirst));
      return this.#parse(operation, body, schema);
    };
    return retrying(attempt, retries, pace !== undefined, signal, onRetry);
  }

  async #write(operation: Operation, prompt: string, signal?: AbortSignal): Promise<AgentJob> {
    if (prompt.length < LIMITS.promptMin) throw new RangeError('the prompt is empty; nothing was sent');
    return this.#parse(operation, await this.#send(operation, { prompt }, signal), agentJobSchema);
  }

  /** The body of a 2xx response; anything else throws. */
  async #send(operation: Operation, body: unknown, signal: AbortSignal | undefined): Promise<string> {
    const { apiKey, keyName, now, transport, onRequest } = this.options;
    onRequest?.(operation);
    const response = await transport.send(operation, apiKey, body, signal);
    if (response.status >= 200 && response.status < 300) return response.body;
    throw responseError(operation, response, { keyName, now: now(), redact: this.#redact });
  }

  /** The JSON of a body, without the key: a server that echoes it must not get it into the database or a report. */
  #withoutKey(body: string): unknown {
    // Few bodies need it, and it is slow: without escapes, the key would be seen in the body as it is.
    if (!body.includes('\\') && this.#redactData(body) === body) return JSON.parse(body);
    return JSON.parse(body, (_, value: unknown) =>
      typeof value === 'string' ? this.#redactData(value) : value,
    );
  }

  #parse<Answer>(operation: Operation, body: string, schema: Checked<Answer>): Answer {
    let json: unknown;
    try {
      json = this.#withoutKey(body);
    } catch (cause) {
      const start = plainWords(this.#redact(body)).slice(0, 60);
      const what = start === '' ? 'empty' : `not JSON; it begins “${start}”`;
      // Without the cause, it is not requested again: another address is needed.
      if (/^[[{]/.test(start)) throw unusable(operation, `the response is damaged: ${what}.`, { cause });
      const advice = 'Check that baseUrl in readership.yaml is the address of the API, not of a web page.';
      throw unusable(operation, `the response is ${what}. ${advice}`);
    }
    const answer = schema.safeParse(json);
    if (answer.success) return answer.data;
    const issues = answer.error.issues
      .slice(0, 3)
      .map(({ path, message }) => (path.length === 0 ? message : `${path.join('.')}: ${message}`));
    throw unusable(operation, `the response does not match the documented API: ${issues.join('; ')}.`);
  }
}

function pathOf(jobId: string): string {
  if (isJobId(jobId)) return `/v2/agent/:project/job/${encodeURIComponent(jobId)}`;
  throw new ConfigurationError(`“${jobId}” cannot be the id of a job.`);
}

/** The job of an answer. Throws if it is not the one that was asked for. */
function expectJob(operation: Operation, jobId: string, job: AgentJob): AgentJob {
  if (job.id === jobId) return job;
  throw unusable(operation, `the platform answered for another job, “${plainWords(job.id).slice(0, 60)}”.`);
}

/** How often and how long a read request is retried. */
interface RetryPolicy {
  readonly retries: number;
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
}

const DEFAULT_RETRIES: RetryPolicy = { retries: 4, minDelayMs: 500, maxDelayMs: 30_000 };

/** Called before each new attempt. */
type OnRetry = (error: Error & { readonly reason?: TryLaterReason }, retriesLeft: number) => void;

/**
 * The only place that decides whether a request to the platform is sent again, for those that only read. Only a
 * `TryLaterError` and damaged JSON are retried, with growing, randomized delays. A `Retry-After` is waited for; if it is longer
 * than `maxDelayMs`, the error is thrown, so that the caller can release its resources. A pace delays every request after a
 * refusal, so up to `READS_AT_ONCE` refusals of this one are no retries: others may get their turn before it.
 */
export async function retrying<Result>(
  attempt: () => Promise<Result>,
  policy: RetryPolicy,
  isPaced: boolean,
  signal: AbortSignal | undefined,
  onRetry: OnRetry,
): Promise<Result> {
  const waitOf = (error: Error) =>
    error instanceof TryLaterError && !(isPaced && isRateLimited(error)) ? (error.retryAfterMs ?? 0) : 0;
  const isRetried = (error: Error) =>
    (error instanceof TryLaterError || error.cause instanceof SyntaxError) &&
    !isLasting(error.cause) &&
    waitOf(error) <= policy.maxDelayMs;
  return pRetry(attempt, {
    retries: policy.retries,
    factor: 2,
    minTimeout: policy.minDelayMs,
    maxTimeout: policy.maxDelayMs,
    randomize: true,
    signal,
    shouldConsumeRetry: ({ error, attemptNumber, retriesConsumed }) =>
      !isPaced || !isRateLimited(error) || attemptNumber - retriesConsumed > READS_AT_ONCE,
    shouldRetry: ({ error }) => isRetried(error),
    onFailedAttempt: async ({ error, retriesLeft }) => {
      if (retriesLeft === 0 || !isRetried(error)) return;
      onRetry(error, retriesLeft);
      await sleepFor(waitOf(error), signal);
    },
  });
}
