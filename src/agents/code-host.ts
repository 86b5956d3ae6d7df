import { addSeconds, fromUnixTime } from 'date-fns';
import type { z } from 'zod';
import type { ResponseHeaders } from '../api/clock.js';
import { ContractError, type Operation, RefusedError, TryLaterError } from '../api/errors.js';
import { LONGEST_WAIT_MS, parseRetryAfter } from '../api/http-date.js';
import { Transport } from '../api/transport.js';
import { CODE_HOST_TOKEN_VARIABLE } from '../config/load.js';
import type { Settings } from '../config/schema.js';
import { type Dialect, DIALECTS, type PullRequest, type Review } from './dialects.js';

/** The pause if the host does not specify one. */
export const DEFAULT_PAUSE_MS = 10 * 60_000;

/** Pages of files that are read of one pull request. */
const FILE_PAGES = 3;

/** The part of a code host's API that tells which pull requests there are, what they change, and how they ended. */
export class CodeHost {
  readonly #dialect: Dialect;
  readonly #transport = new Transport({ responseTimeoutMs: 30_000, concurrency: 1 });

  constructor(
    readonly settings: NonNullable<Settings['pullRequests']>,
    private readonly token: string | undefined,
    private readonly now: () => Date,
  ) {
    this.#dialect = DIALECTS[settings.host];
  }

  /** The API address for a link; undefined if it is not a pull request on this host. */
  addressOf(link: string): string | undefined {
    const { url, apiUrl } = this.settings;
    if (!link.startsWith(`${url}/`)) return undefined;
    const [, repository, number] = this.#dialect.link.exec(link.slice(url.length)) ?? [];
    // `..` would escape the repositories path.
    if (repository === undefined || number === undefined || /(^|\/)\.+(\/|$)/.test(repository))
      return undefined;
    return apiUrl + this.#dialect.one(repository, number);
  }

  /** Throws a `RefusedError`, a `ContractError`, or a `TryLaterError` with the wait the host requests, as do the others. */
  async review(address: string, signal?: AbortSignal): Promise<Review> {
    const { review, history } = this.#dialect;
    const found = await this.#get('look up the pull request', address, review, signal);
    if (history === undefined || (found.mergedOn ?? found.closedOn) === null) return found;
    const days = await this.#get('look up the merge', address + history.path, history.days, signal);
    return found.mergedOn === null
      ? { mergedOn: null, closedOn: days ?? found.closedOn }
      : { mergedOn: days ?? found.mergedOn, closedOn: null };
  }

  /** The pull requests that changed after a moment, oldest change first: a page, and where the next one begins. */
  async changedSince(
    repository: string,
    since: Date,
    signal?: AbortSignal,
  ): Promise<{ readonly pullRequests: readonly PullRequest[]; readonly next: Date | undefined }> {
    const { list, listed, pageLength } = this.#dialect;
    const address = this.settings.apiUrl + list(repository, since.toISOString());
    const items = await this.#get('list the pull requests', address, listed, signal);
    const last = items.at(-1)?.updatedAt ?? since;
    return {
      pullRequests: items.filter((item) => item.isPullRequest && item.updatedAt > since),
      // If more than a page changed within a second, the rest of them cannot be listed.
      next: items.length < pageLength ? undefined : last > since ? last : addSeconds(since, 1),
    };
  }

  /** The files that a pull request changes, by their names before and after; of a huge one, the first few hundred. */
  async filesOf(repository: string, { number }: PullRequest, signal?: AbortSignal): Promise<string[]> {
    const { one, files, names } = this.#dialect;
    const found = new Set<string>();
    for (let page = 1; page <= FILE_PAGES; page++) {
      const address = this.settings.apiUrl + one(repository, number) + files(page);
      const more = await this.#get('list the files of a pull request', address, names, signal);
      for (const name of more) found.add(name);
      if (more.length < 100) break;
    }
    return [...found];
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  async #get<Value>(
    name: string,
    url: string,
    schema: z.ZodType<Value>,
    signal?: AbortSignal,
  ): Promise<Value> {
    const operation: Operation = { name, method: 'GET', url };
    const { status, headers, body } = await this.#transport.send(operation, this.token, undefined, signal);
    const pauseMs = parseRetryAfter(headers['retry-after'], this.now()) ?? this.#untilReset(headers);
    const isLimited = status === 429 || (status === 403 && pauseMs !== undefined);
    if (isLimited || status >= 500)
      throw new TryLaterError(
        operation,
        isLimited ? 'rate-limited' : 'server-error',
        `the code host answered ${status}.`,
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
