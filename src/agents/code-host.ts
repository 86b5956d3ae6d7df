import { addSeconds, fromUnixTime } from 'date-fns';
import { z } from 'zod';
import type { ResponseHeaders } from '../api/clock.js';
import { ContractError, type Operation, RefusedError, TryLaterError } from '../api/errors.js';
import { LONGEST_WAIT_MS, parseRetryAfter } from '../api/http-date.js';
import { Transport } from '../api/transport.js';
import { CODE_HOST_TOKEN_VARIABLE } from '../config/load.js';
import type { Settings } from '../config/schema.js';
import { type Day, dayOf } from '../day.js';

/** The pause if the host does not specify one. */
export const DEFAULT_PAUSE_MS = 10 * 60_000;

/** When a pull request was merged, or closed without being merged. A merged one may count as closed, too. */
export interface Review {
  readonly mergedOn: Day | null;
  readonly closedOn: Day | null;
}

/** A pull request in a list. */
export interface PullRequest extends Review {
  /** False for what a list contains besides pull requests. */
  readonly isPullRequest: boolean;
  readonly link: string;
  readonly number: number;
  /** Its title and description. */
  readonly text: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** What differs between the kinds of code hosts. */
interface Dialect {
  /** Matches the path of a link to a pull request: the repository, and the number. */
  readonly link: RegExp;
  /** The API path of a pull request. */
  readonly one: (repository: string, number: number | string) => string;
  readonly review: z.ZodType<Review>;
  /** The history of a pull request, if only that says when it was merged. */
  readonly history?: { readonly path: string; readonly days: z.ZodType<Day | null> };
  /** A page of the pull requests that changed since a moment, in the order of their last changes. */
  readonly list: (repository: string, since: string) => string;
  readonly listed: z.ZodType<readonly PullRequest[]>;
  readonly pageLength: number;
  /** The files of a pull request, after its own path. */
  readonly files: (page: number) => string;
  readonly names: z.ZodType<readonly string[]>;
}

const time = z.iso.datetime({ offset: true }).transform((text) => new Date(text));
const moment = time.transform(dayOf);
const text = z
  .string()
  .nullish()
  .transform((given) => given ?? '');

/** Fields that GitHub and GitLab have in common. */
const review = z
  .object({ state: z.string(), merged_at: moment.nullish(), closed_at: moment.nullish() })
  .transform(({ state, merged_at: merged, closed_at: closed }) => ({
    mergedOn: merged ?? null,
    closedOn: state === 'closed' ? (closed ?? null) : null,
  }));
const dates = { created_at: time, updated_at: time, title: text };

const issue = z
  .object({ ...dates, number: z.int(), html_url: z.string(), body: text, closed_at: moment.nullish() })
  .extend({ pull_request: z.object({ merged_at: moment.nullish() }).nullish() })
  .transform(({ pull_request, ...item }): PullRequest => {
    const mergedOn = pull_request?.merged_at ?? null;
    return {
      isPullRequest: pull_request != null,
      link: item.html_url,
      number: item.number,
      text: `${item.title}\n${item.body}`,
      createdAt: item.created_at,
      updatedAt: item.updated_at,
      mergedOn,
      closedOn: mergedOn === null ? (item.closed_at ?? null) : null,
    };
  });

const mergeRequest = z
  .object({ ...dates, iid: z.int(), web_url: z.string(), description: text })
  .and(review)
  .transform((item): PullRequest => ({
    isPullRequest: true,
    link: item.web_url,
    number: item.iid,
    text: `${item.title}\n${item.description}`,
    createdAt: item.created_at,
    updatedAt: item.updated_at,
    mergedOn: item.mergedOn,
    closedOn: item.closedOn,
  }));

/** Bitbucket says only when a pull request last changed, so a list has that day for merged and closed ones. */
const bitbucketState = z
  .object({ state: z.string(), updated_on: time })
  .transform(({ state, updated_on }) => ({
    mergedOn: state === 'MERGED' ? dayOf(updated_on) : null,
    closedOn: state === 'DECLINED' || state === 'SUPERSEDED' ? dayOf(updated_on) : null,
  }));
const bitbucketItem = z
  .object({ id: z.int(), title: text, description: text, created_on: time, updated_on: time })
  .extend({ links: z.object({ html: z.object({ href: z.string() }) }) })
  .and(z.object({ state: z.string() }));
const bitbucketListed = z.looseObject({ values: z.array(z.unknown()) }).transform(({ values }) =>
  values.map((value): PullRequest => {
    const item = bitbucketItem.parse(value);
    return {
      isPullRequest: true,
      link: item.links.html.href,
      number: item.id,
      text: `${item.title}\n${item.description}`,
      createdAt: item.created_on,
      updatedAt: item.updated_on,
      ...bitbucketState.parse(value),
    };
  }),
);
const side = z.object({ path: z.string() }).nullish();

const DIALECTS: Readonly<Record<'github' | 'gitlab' | 'bitbucket', Dialect>> = {
  github: {
    link: /^\/([\w.-]+\/[\w.-]+)\/pull\/(\d+)/,
    one: (repository, number) => `/repos/${repository}/pulls/${number}`,
    review,
    // Only the list of issues, which contains the pull requests, can begin at a moment.
    list: (repository, since) =>
      `/repos/${repository}/issues?state=all&sort=updated&direction=asc&per_page=100&since=${since}`,
    listed: z.array(issue),
    pageLength: 100,
    files: (page) => `/files?per_page=100&page=${page}`,
    names: z
      .array(z.object({ filename: z.string(), previous_filename: z.string().optional() }))
      .transform((files) => files.flatMap((file) => [file.filename, file.previous_filename ?? []].flat())),
  },
  gitlab: {
    link: /^\/([\w.-]+(?:\/[\w.-]+)+)\/-\/merge_requests\/(\d+)/,
    one: (repository, number) => `/projects/${encodeURIComponent(repository)}/merge_requests/${number}`,
    review,
    list: (repository, since) =>
      `/projects/${encodeURIComponent(repository)}/merge_requests?state=all&scope=all&order_by=updated_at&sort=asc&per_page=100&updated_after=${since}`,
    listed: z.array(mergeRequest),
    pageLength: 100,
    files: (page) => `/diffs?per_page=100&page=${page}`,
    names: z
      .array(z.object({ old_path: z.string(), new_path: z.string() }))
      .transform((files) => files.flatMap((file) => [file.new_path, file.old_path])),
  },
  bitbucket: {
    link: /^\/([\w.-]+\/[\w.-]+)\/pull-requests\/(\d+)/,
    one: (repository, number) => `/repositories/${repository}/pullrequests/${number}`,
    review: bitbucketState,
    history: {
      path: '/activity?pagelen=50',
      days: z
        .object({
          values: z.array(z.object({ update: z.object({ state: z.string(), date: moment }).optional() })),
        })
        .transform(({ values }) => {
          const ends = values.flatMap(({ update }) => update ?? []).filter(({ state }) => state !== 'OPEN');
          return ends.map(({ date }) => date).sort()[0] ?? null;
        }),
    },
    list: (repository, since) =>
      `/repositories/${repository}/pullrequests?state=OPEN&state=MERGED&state=DECLINED&state=SUPERSEDED&sort=updated_on&pagelen=50&q=${encodeURIComponent(`updated_on >= ${since}`)}`,
    listed: bitbucketListed,
    pageLength: 50,
    files: (page) => `/diffstat?pagelen=100&page=${page}`,
    names: z
      .object({ values: z.array(z.object({ old: side, new: side })) })
      .transform(({ values }) =>
        values.flatMap((file) => [file.new?.path ?? [], file.old?.path ?? []].flat()),
      ),
  },
};

/** Pages of files that are read of one pull request. */
const FILE_PAGES = 3;

/** The part of a code host's API that tells which pull requests there are, what they change, and how they ended. */
export class CodeHost {
  #headers: ResponseHeaders = {};
  readonly #dialect: Dialect;
  readonly #transport = new Transport({ responseTimeoutMs: 30_000, concurrency: 1 }, (headers) => {
    this.#headers = headers;
  });

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
    const { status, retryAfter, body } = await this.#transport.send(operation, this.token, undefined, signal);
    const pauseMs = parseRetryAfter(retryAfter, this.now()) ?? this.#untilReset();
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
