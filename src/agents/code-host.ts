import { fromUnixTime } from 'date-fns';
import type { z } from 'zod';
import {
  ContractError,
  type Operation,
  type RawResponse,
  RefusedError,
  TryLaterError,
} from '../api/errors.js';
import { LONGEST_WAIT_MS, parseRetryAfter } from '../api/retry-after.js';
import { Transport } from '../api/transport.js';
import type { ResponseHeaders } from '../network.js';
import { CODE_HOST_TOKEN_VARIABLE } from '../config/load.js';
import type { Day } from '../day.js';
import { findPullRequest, repositoryAnswer } from './pull-request.js';

/** The end of a pull request, as far as it has one: at most one of these is not null. */
export interface Review {
  readonly mergedOn: Day | null;
  /** When it was closed without being merged. */
  readonly closedOn: Day | null;
  /** The branch it was merged into, if that is neither the one the agent began with nor the default branch. */
  readonly mergedInto: string | null;
}

/** The pause if the host does not specify one. */
export const DEFAULT_PAUSE_MS = 10 * 60_000;

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 307, 308]);
const MAX_REDIRECTS = 3;

/** The API of a code host, as far as it says how pull requests ended. */
export class CodeHost {
  readonly #transport = new Transport({ responseTimeoutMs: 30_000, concurrency: 1 });

  constructor(
    readonly settings: { readonly url: string; readonly apiUrl?: string | undefined },
    private readonly token: string | undefined,
    private readonly now: () => Date,
  ) {}

  /**
   * How the pull request of a link ended; undefined if it is not one on this host. `start` is the branch that the agent
   * began with, if the platform named one. Throws a `RefusedError`, a `ContractError`, or a `TryLaterError` with the
   * wait the host requests.
   */
  async review(link: string, start: string | null, signal?: AbortSignal): Promise<Review | undefined> {
    const found = findPullRequest(link, this.settings);
    if (found === undefined) return undefined;
    const { address, answer, repositoryAddress } = found;
    const pullRequest = await this.#get('look up the pull request', address, answer, signal);
    const { state, changedOn, into } = pullRequest;
    if (state !== 'merged')
      return { mergedOn: null, closedOn: state === 'closed' ? changedOn : null, mergedInto: null };
    const isStart = into === start?.replace(/^refs\/heads\//, '');
    let { defaultBranch } = pullRequest;
    if (!isStart && repositoryAddress !== undefined) {
      const what = 'look up the default branch';
      const answered = await this.#get(what, repositoryAddress, repositoryAnswer, signal);
      defaultBranch = answered.default_branch ?? undefined;
    }
    // If no branch is known, it cannot be another one.
    const isRight = isStart || into === defaultBranch || (start === null && defaultBranch === undefined);
    return { mergedOn: isRight ? changedOn : null, closedOn: null, mergedInto: isRight ? null : into };
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  /** Follows the redirects of renamed repositories. They stay on the host, because the token is sent with each request. */
  async #get<Value>(name: string, url: string, schema: z.ZodType<Value>, signal?: AbortSignal) {
    let address = url;
    for (let redirects = 0; ; redirects++) {
      const operation: Operation = { name, method: 'GET', url: address };
      const response = await this.#transport.send(operation, this.token, undefined, signal);
      const { location } = response.headers;
      if (!REDIRECTS.has(response.status) || typeof location !== 'string')
        return this.#read(operation, response, schema);
      const refuse = (what: string) => new RefusedError(operation, response.status, what);
      if (redirects === MAX_REDIRECTS)
        throw refuse(`the code host redirects more than ${MAX_REDIRECTS} times.`);
      const target = URL.canParse(location, address) ? new URL(location, address) : undefined;
      if (target?.origin !== new URL(url).origin)
        throw refuse(
          `the code host redirects to ${target?.origin ?? 'an address that is not one'}, where the token is not sent. Check pullRequests.url in readership.yaml.`,
        );
      address = target.href;
    }
  }

  /** The answer in a response. Throws as `review` does. */
  #read<Value>(operation: Operation, response: RawResponse, schema: z.ZodType<Value>): Value {
    const { status, headers, body } = response;
    const pauseMs = parseRetryAfter(headers['retry-after'], this.now()) ?? this.#untilReset(headers);
    // GitHub limits requests with 403, and not always with a header.
    const isLimited =
      status === 429 || (status === 403 && (pauseMs !== undefined || /rate limit/i.test(body)));
    if (isLimited || status >= 500)
      throw new TryLaterError(
        operation,
        isLimited ? 'rate-limited' : 'server-error',
        isLimited
          ? `the code host answered ${status}, because it limits requests.`
          : `the code host answered ${status}.`,
        pauseMs ?? DEFAULT_PAUSE_MS,
      );
    if (status !== 200) throw new RefusedError(operation, status, this.#advice(status));
    try {
      return schema.parse(JSON.parse(body));
    } catch {
      throw new ContractError(
        operation,
        'the response is not that of this kind of code host. Check pullRequests in readership.yaml.',
      );
    }
  }

  /** GitHub and GitLab report remaining requests and the reset time in headers, under different names. */
  #untilReset(headers: ResponseHeaders): number | undefined {
    const { 'x-ratelimit-remaining': left = headers['ratelimit-remaining'] } = headers;
    const { 'x-ratelimit-reset': reset = headers['ratelimit-reset'] } = headers;
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
