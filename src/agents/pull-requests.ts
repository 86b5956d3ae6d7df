import { addHours, addMilliseconds, differenceInHours, fromUnixTime } from 'date-fns';
import { z } from 'zod';
import type { ResponseHeaders } from '../api/clock.js';
import { ContractError, type Operation, RefusedError, TryLaterError } from '../api/errors.js';
import { LONGEST_WAIT_MS, parseRetryAfter } from '../api/http-date.js';
import { Transport } from '../api/transport.js';
import { CODE_HOST_TOKEN_VARIABLE } from '../config/load.js';
import type { Settings } from '../config/schema.js';
import { type Day, dayOf } from '../day.js';
import { messageOf, ReadershipError } from '../errors.js';
import { readSql } from '../warehouse/query.js';
import { type Job, markMerged, type ProjectTask, readJobs } from './ledger.js';

const moment = z.iso.datetime({ offset: true }).transform((text) => dayOf(new Date(text)));
/** The fields that GitHub and GitLab have in common. */
const answerSchema = z
  .object({ state: z.string(), merged_at: moment.nullish(), closed_at: moment.nullish() })
  .transform(({ state, merged_at: merged, closed_at: closed }) => ({
    mergedOn: merged ?? null,
    closedOn: state === 'closed' ? (closed ?? null) : null,
  }));
/** What the code host says about a pull request. A merged one may count as closed, too. */
type PullRequest = z.infer<typeof answerSchema>;

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
  async pullRequest(address: string, signal?: AbortSignal): Promise<PullRequest> {
    const operation: Operation = { name: 'look up the pull request', method: 'GET', url: address };
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

const UNMERGED_JOBS = readSql(import.meta.url, 'statements/unmerged-jobs.sql');
const FORGET_PULL_REQUEST = readSql(import.meta.url, 'statements/forget-pull-request.sql');
const RECORD_PULL_REQUEST = readSql(import.meta.url, 'statements/record-pull-request.sql');

/** In one round; GitHub allows 60 requests an hour without a token. */
const MAX_REQUESTS = 10;

interface Task extends ProjectTask {
  readonly codeHost: CodeHost;
}

/**
 * Looks up the pull requests that are due, and stores when one was merged, or closed without being
 * merged. One that cannot be looked up does not fail the step; the reason is stored with it.
 * Returns the jobs that changed.
 */
export async function noticeMerges(task: Task): Promise<Job[]> {
  const { warehouse, project, now, codeHost, signal } = task;
  const rows = await warehouse.query(UNMERGED_JOBS, z.object({ id: z.int() }), { project, now: now() });
  if (rows.length === 0) return [];
  const jobs = await readJobs(warehouse, project);
  const due = rows.flatMap(({ id }) => jobs.find((job) => job.id === id) ?? []);
  const changed: number[] = [];
  let requests = 0;
  for (const [index, job] of due.entries()) {
    const address = codeHost.addressOf(job.pr_link ?? '');
    if (address === undefined) {
      await record(task, job, { problem: 'the link is not a pull request on the host in pullRequests' });
      continue;
    }
    if (signal?.aborted || ++requests > MAX_REQUESTS) break;
    try {
      if (await store(task, job, await codeHost.pullRequest(address, signal))) changed.push(job.id);
    } catch (error) {
      if (!(error instanceof ReadershipError)) throw error;
      const problem = messageOf(error);
      const next =
        error instanceof TryLaterError
          ? addMilliseconds(now(), error.retryAfterMs ?? DEFAULT_PAUSE_MS)
          : undefined;
      // A limit or a rejected token applies to the remaining pull requests too.
      const concernsAll = next !== undefined || (error instanceof RefusedError && error.status !== 404);
      for (const other of concernsAll ? due.slice(index) : [job])
        await record(task, other, { problem, closed_on: other.closed_on, next });
      if (concernsAll) break;
    }
  }
  return (await readJobs(warehouse, project)).filter(({ id }) => changed.includes(id));
}

/** Returns whether the job changed. */
async function store(task: Task, job: Job, { mergedOn, closedOn: closed_on }: PullRequest): Promise<boolean> {
  if (mergedOn === null) {
    await record(task, job, { closed_on });
    return closed_on !== job.closed_on;
  }
  if (mergedOn < dayOf(job.planned_at) || mergedOn > dayOf(task.now())) {
    const problem = `the code host reports ${mergedOn} as the merge date, which cannot be right`;
    await record(task, job, { problem });
    return false;
  }
  await record(task, job, {});
  await markMerged(task.warehouse, job, mergedOn);
  return true;
}

/** Records the day on which a job's pull request was closed without being merged. */
export const markClosed = (task: Pick<Task, 'warehouse' | 'now'>, job: Job, closed_on: Day): Promise<void> =>
  record(task, job, { closed_on });

/** By default it is looked up again after a tenth of the time since its job ended: from an hour to a day. */
const record = (
  { warehouse, now }: Pick<Task, 'warehouse' | 'now'>,
  { id: job, ended_at }: Job,
  found: { closed_on?: Day | null; problem?: string; next?: Date | undefined },
): Promise<void> =>
  warehouse.transaction(async (transaction) => {
    const hours = Math.min(24, Math.max(1, differenceInHours(now(), ended_at ?? now()) / 10));
    const { closed_on = null, problem = null, next = addHours(now(), hours) } = found;
    await transaction.execute(FORGET_PULL_REQUEST, { job });
    await transaction.execute(RECORD_PULL_REQUEST, { job, now: now(), next, closed_on, problem });
  });
