import { addSeconds, fromUnixTime } from 'date-fns';
import type { z } from 'zod';
import { ContractError, type Operation, RefusedError, TryLaterError } from '../api/errors.js';
import { LONGEST_WAIT_MS, parseRetryAfter } from '../api/retry-after.js';
import { Transport } from '../api/transport.js';
import type { ResponseHeaders } from '../network.js';
import { CODE_HOST_TOKEN_VARIABLE } from '../config/load.js';
import type { Settings } from '../config/schema.js';
import { type Dialect, DIALECTS, type PullRequest, type Review } from './dialects.js';

/** The pause if the host does not specify one. */
export const DEFAULT_PAUSE_MS = 10 * 60_000;

/** Pages of files that are read of one pull request. */
const FILE_PAGES = 3;
/** Pages of pull requests that are read at once. */
const LIST_PAGES = 5;

/** A page of a list of pull requests, and where the next one begins. */
interface ListPage {
  readonly pullRequests: readonly PullRequest[];
  readonly next: Date | undefined;
}

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
    return `${apiUrl}${this.#dialect.all(repository)}/${number}`;
  }

  /** Whether a link of the platform leads to a pull request: it may have a query, or lead to a page of it. */
  leadsTo(link: string | null, pullRequest: string): boolean {
    const address = this.addressOf(link ?? '');
    return link === pullRequest || (address !== undefined && address === this.addressOf(pullRequest));
  }

  /** Throws a `RefusedError`, a `ContractError`, or a `TryLaterError` with the wait the host requests, as do the others. */
  async review(address: string, signal?: AbortSignal): Promise<Review> {
    const { review, history } = this.#dialect;
    const found = await this.#get('look up the pull request', address, review, signal);
    if (history === undefined || (found.mergedOn ?? found.closedOn) === null) return found;
    const days = await this.#get('look up the merge', address + history.path, history.days, signal);
    const day = days ?? found.mergedOn ?? found.closedOn;
    return found.mergedOn === null ? { mergedOn: null, closedOn: day } : { mergedOn: day, closedOn: null };
  }

  /** The pull requests of the repository that changed after a moment, oldest change first. The last page has no `next`, unless there are more. */
  async *changedSince(moment: Date, signal?: AbortSignal): AsyncGenerator<ListPage> {
    const { list, listed, pageLength } = this.#dialect;
    const { apiUrl, repository = '' } = this.settings;
    let since: Date | undefined = moment;
    for (let page = 0; page < LIST_PAGES && since !== undefined; page++) {
      const begin: Date = since;
      const address = apiUrl + list(repository, begin.toISOString());
      const items = await this.#get('list the pull requests', address, listed, signal);
      const isFull = items.length >= pageLength;
      const newer = items.filter(({ updatedAt }) => updatedAt > begin);
      const end = newer.at(-1)?.updatedAt ?? begin;
      // More may have changed at the last moment of a full page, so it is left to the next one.
      const whole = newer.filter(({ updatedAt }) => !isFull || updatedAt < end);
      // If more than a page changed within a moment, the rest of them cannot be listed.
      const kept = whole.length > 0 ? whole : newer;
      since = isFull ? (kept.at(-1)?.updatedAt ?? addSeconds(begin, 1)) : undefined;
      const pullRequests = kept.filter(({ isPullRequest }) => isPullRequest);
      yield { pullRequests, next: since };
    }
  }

  /** Which of the pages a pull request changes, as far as the names of its files tell; of a huge one, the first few hundred. */
  async pagesOf(
    { number }: PullRequest,
    pages: ReadonlyMap<string, unknown>,
    signal?: AbortSignal,
  ): Promise<string[]> {
    const { all, files, names } = this.#dialect;
    const { apiUrl, repository = '' } = this.settings;
    const found = new Set<string>();
    for (let page = 1; page <= FILE_PAGES; page++) {
      const address = `${apiUrl}${all(repository)}/${number}${files(page)}`;
      const more = await this.#get('list the files of a pull request', address, names, signal);
      for (const file of more) {
        const path = possiblePaths(file, this.settings.files).find((possible) => pages.has(possible));
        if (path !== undefined) found.add(path);
      }
      if (more.length < 100) break;
    }
    return [...found];
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  async #get<Value>(name: string, url: string, schema: z.ZodType<Value>, signal?: AbortSignal) {
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
      : `the code host answered ${status}. Check pullRequests in readership.yaml; the repository may have been renamed.`;
  }
}

/** The parts of a pattern such as `docs{path}.{md,mdx}` as regular expressions: before the path, and after it. */
function patternParts(pattern: string): [head: RegExp, tail: RegExp] {
  const expression = (part: string): string =>
    part
      .replaceAll(/[.+^$()|[\]\\?]/g, '\\$&')
      .replaceAll(/\{([^{}]*)\}/g, (_, names: string) => `(?:${names.replaceAll(',', '|')})`)
      .replaceAll('**', '\0')
      .replaceAll('*', '[^/]*')
      .replaceAll('\0', '.*');
  const [head = '', tail = ''] = pattern.replace(/^\//, '').split('{path}');
  return [new RegExp(`^${expression(head)}$`), new RegExp(`^(/.*)${expression(tail)}$`)];
}

/** The paths that a page may have whose source is this file, most specific first. */
export function possiblePaths(file: string, pattern: string): string[] {
  const [head, tail] = patternParts(pattern);
  const rooted = `/${file}`;
  return [...rooted.matchAll(/\//g)].flatMap(({ index }) => {
    if (!head.test(rooted.slice(1, Math.max(1, index)))) return [];
    const source = tail.exec(rooted.slice(index))?.[1]?.replace(/\/(?:index|_index|readme)$/i, '');
    if (source === undefined) return [];
    return source === '' ? ['/'] : [source, `${source}/`, `${source}.html`];
  });
}
