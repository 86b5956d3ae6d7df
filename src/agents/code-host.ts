import { fromUnixTime } from 'date-fns';
import { z } from 'zod';
import type { ResponseHeaders } from '../api/clock.js';
import { ContractError, type Operation, RefusedError, TryLaterError } from '../api/errors.js';
import { LONGEST_WAIT_MS, parseRetryAfter } from '../api/http-date.js';
import { Transport } from '../api/transport.js';
import { CODE_HOST_TOKEN_VARIABLE } from '../config/load.js';
import type { Settings } from '../config/schema.js';
import { type Day, dayOf } from '../day.js';

/** What the code host says about a pull request. */
export type PullRequest =
  { readonly state: 'open' } | { readonly state: 'merged' | 'closed'; readonly on: Day };

const moment = z.iso.datetime({ offset: true }).transform((text) => dayOf(new Date(text)));
/** The fields that GitHub and GitLab have in common. */
const answerSchema = z
  .object({ state: z.string(), merged_at: moment.nullish(), closed_at: moment.nullish() })
  .transform(({ state, merged_at, closed_at }): PullRequest => {
    if (merged_at != null) return { state: 'merged', on: merged_at };
    return state === 'closed' && closed_at != null ? { state: 'closed', on: closed_at } : { state: 'open' };
  });

/** Link patterns and API paths of pull requests, by kind of code host. */
const PATHS = {
  github: {
    link: /^\/([\w.-]+\/[\w.-]+)\/pull\/(\d+)/,
    path: (repository: string) => `/repos/${repository}/pulls/`,
  },
  gitlab: {
    link: /^\/([\w.-]+(?:\/[\w.-]+)+)\/-\/merge_requests\/(\d+)/,
    path: (repository: string) => `/projects/${encodeURIComponent(repository)}/merge_requests/`,
  },
} as const;

/** The pause if the host does not specify one. */
const DEFAULT_PAUSE_MS = 10 * 60_000;

/** The part of a code host's API that reports whether a pull request was merged. */
export class CodeHost {
  #headers: ResponseHeaders = {};
  readonly #transport = new Transport({ responseTimeoutMs: 30_000, concurrency: 1 }, (headers) => {
    this.#headers = headers;
  });

  constructor(
    private readonly settings: NonNullable<Settings['pullRequests']>,
    private readonly token: string | undefined,
    private readonly now: () => Date,
  ) {}

  /** The API address for a link; undefined if it is not a pull request on this host. */
  addressOf(link: string): string | undefined {
    const { host, url, apiUrl } = this.settings;
    if (!link.startsWith(`${url}/`)) return undefined;
    const [, repository, number] = PATHS[host].link.exec(link.slice(url.length)) ?? [];
    // `..` would escape the repositories path.
    if (repository === undefined || number === undefined || /(^|\/)\.+(\/|$)/.test(repository))
      return undefined;
    return apiUrl + PATHS[host].path(repository) + number;
  }

  /** Throws a `RefusedError`, a `ContractError`, or a `TryLaterError` with the wait the host requests. */
  async pullRequest(address: string, signal: AbortSignal): Promise<PullRequest> {
    const operation: Operation = { name: 'look up the pull request', method: 'GET', url: address };
    const { status, retryAfter, body } = await this.#transport.send(operation, this.token, undefined, signal);
    const pauseMs = parseRetryAfter(retryAfter, this.now()) ?? this.#untilReset();
    const isLimited = status === 429 || (status === 403 && pauseMs !== undefined);
    if (isLimited || status >= 500)
      throw new TryLaterError(
        operation,
        isLimited ? 'rate-limited' : 'server-fault',
        `the code host answered ${status}.`,
        pauseMs ?? DEFAULT_PAUSE_MS,
      );
    if (status !== 200) throw new RefusedError(operation, status, this.#advice(status));
    try {
      return answerSchema.parse(JSON.parse(body));
    } catch {
      throw new ContractError(
        operation,
        'the response is not a pull request. Check pullRequests in readership.yaml.',
      );
    }
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  /** Both hosts report remaining requests and the reset time in headers, under different names. */
  #untilReset(): number | undefined {
    const { 'x-ratelimit-remaining': left = this.#headers['ratelimit-remaining'] } = this.#headers;
    const { 'x-ratelimit-reset': reset = this.#headers['ratelimit-reset'] } = this.#headers;
    if (left !== '0' || !/^\d+$/.test(String(reset))) return undefined;
    const waitMs = fromUnixTime(Number(reset)).getTime() - this.now().getTime();
    return Math.min(Math.max(0, waitMs), LONGEST_WAIT_MS);
  }

  #advice(status: number): string {
    const token = this.token === undefined ? 'set one in' : 'check the one in';
    return status === 401 || status === 403 || status === 404
      ? `the code host answered ${status}. If the repository is private, a token that can read it is required; ${token} ${CODE_HOST_TOKEN_VARIABLE}.`
      : `the code host answered ${status}. Check pullRequests in readership.yaml.`;
  }
}
