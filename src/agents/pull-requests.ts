import { addHours, addMilliseconds, addMinutes, differenceInHours, min, subDays, subMinutes } from 'date-fns';
import { z } from 'zod';
import { RefusedError, TryLaterError } from '../api/errors.js';
import { type Day, dayOf } from '../day.js';
import type { EffectsJournal } from '../effects/journal.js';
import { messageOf, ReadershipError } from '../errors.js';
import { readSql, timestampColumn } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { type CodeHost, DEFAULT_PAUSE_MS, type PullRequest, type Review } from './code-host.js';
import { changeJob, type Job, markMerged, type ProjectTask, readJobs, readJobsOf } from './ledger.js';
import { quoted } from './prompt.js';
import { entryAbout } from './reconcile.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const UNMERGED_JOBS = statement('unmerged-jobs');
const FORGET_PULL_REQUEST = statement('forget-pull-request');
const RECORD_PULL_REQUEST = statement('record-pull-request');
const READ_UNTIL = statement('read-until');
const FORGET_READ = statement('forget-read');
const RECORD_READ = statement('record-read');
const READ_PAGES = statement('read-pages');
const FORGET_CHANGE = statement('forget-change');
const RECORD_CHANGE = statement('record-change');
const FORGET_OWN_CHANGE = statement('forget-own-change');

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
      if (await store(task, job, await codeHost.review(address, signal))) changed.push(job.id);
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
async function store(task: Task, job: Job, { mergedOn, closedOn: closed_on }: Review): Promise<boolean> {
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

/** The pull requests of `pullRequests.repository`, and what is learned from them. */
interface ReadTask {
  readonly warehouse: Warehouse;
  readonly journal: EffectsJournal;
  readonly codeHost: CodeHost;
  readonly projects: readonly { readonly id: string }[];
  readonly now: () => Date;
  readonly signal?: AbortSignal;
}

/** What reading the pull requests of a repository found. */
export interface ReadOutcome {
  /** Jobs whose reply was lost, and whose pull request was found. */
  readonly settled: readonly Job[];
  /** Why they could not be read. It does not fail the step. */
  readonly problem?: string;
}

/** Pull requests that did not change for this long are not read at first. */
const FIRST_READ_DAYS = 84;
const READ_EVERY_HOURS = 1;
/** The next round goes on if there is more than this to read. */
const MAX_LISTS = 5;
const MAX_READ = 20;
const GO_ON_AFTER_MINUTES = 10;

const readRow = z.object({ read_until: timestampColumn, next_read_at: timestampColumn });
const pageRow = z.object({ path: z.string() });

/**
 * Reads the pull requests of the repository that changed since the last time, once an hour: stores
 * which pages people or other agents change, and settles jobs whose reply was lost.
 */
export async function readPullRequests(task: ReadTask): Promise<ReadOutcome> {
  const { warehouse, codeHost, projects, now } = task;
  const { repository } = codeHost.settings;
  if (repository === undefined) return { settled: [] };
  const [last] = await warehouse.query(READ_UNTIL, readRow, { repository });
  if (last !== undefined && last.next_read_at > now()) return { settled: [] };
  let until = last?.read_until ?? subDays(now(), FIRST_READ_DAYS);
  const record = (next: Date, problem: string | null) =>
    warehouse.transaction(async (transaction) => {
      await transaction.execute(FORGET_READ, { repository });
      await transaction.execute(RECORD_READ, { repository, until, next, problem });
    });
  try {
    const jobs = await readJobsOf(warehouse, projects);
    const pages = await pagesRead(task);
    const lost = await settleLostJobs(task, repository, jobs, pages);
    let left = MAX_READ;
    let next: Date | undefined = until;
    for (let lists = 0; lists < MAX_LISTS && next !== undefined && left > 0; lists++) {
      const list: Awaited<ReturnType<CodeHost['changedSince']>> = await codeHost.changedSince(
        repository,
        next,
        task.signal,
      );
      for (const pullRequest of list.pullRequests.slice(0, left)) {
        await storeChange(task, repository, pullRequest, jobs, pages);
        until = pullRequest.updatedAt;
      }
      left -= list.pullRequests.length;
      if (left >= 0) until = list.next ?? until;
      next = list.next;
    }
    const isDone = next === undefined && left >= 0 && lost.isDone;
    await record(isDone ? addHours(now(), READ_EVERY_HOURS) : addMinutes(now(), GO_ON_AFTER_MINUTES), null);
    return { settled: lost.settled };
  } catch (error) {
    if (!(error instanceof ReadershipError)) throw error;
    const pauseMs = error instanceof TryLaterError ? (error.retryAfterMs ?? DEFAULT_PAUSE_MS) : 3_600_000;
    await record(addMilliseconds(now(), pauseMs), messageOf(error));
    return { settled: [], problem: messageOf(error) };
  }
}

/** The projects in which each path was viewed lately. */
async function pagesRead({ warehouse, projects, now }: ReadTask): Promise<Map<string, string[]>> {
  const pages = new Map<string, string[]>();
  for (const { id: project } of projects)
    for (const { path } of await warehouse.query(READ_PAGES, pageRow, { project, now: now() }))
      pages.set(path, [...(pages.get(path) ?? []), project]);
  return pages;
}

/** Stores which pages a pull request of others changes; none if it is ours, or was closed without being merged. */
async function storeChange(
  task: ReadTask,
  repository: string,
  pullRequest: PullRequest,
  jobs: readonly Job[],
  pages: ReadonlyMap<string, readonly string[]>,
): Promise<void> {
  const { link, mergedOn, closedOn } = pullRequest;
  const references = referencesIn(pullRequest.text).map(({ reference }) => reference);
  const isOurs = jobs.some((job) => job.pr_link === link || references.includes(job.reference));
  const isRelevant = !isOurs && closedOn === null;
  const paths = isRelevant ? await pathsOf(task, repository, pullRequest, pages) : [];
  await task.warehouse.transaction(async (transaction) => {
    await transaction.execute(FORGET_CHANGE, { link });
    for (const path of paths)
      for (const project of pages.get(path) ?? [])
        await transaction.execute(RECORD_CHANGE, { project, path, link, changed_on: mergedOn });
  });
}

/** Records that a page was changed on a day, as a person says, or takes that back. */
export const recordChange = (
  warehouse: Warehouse,
  change: { readonly project: string; readonly path: string; readonly changed_on: Day },
  isUndone: boolean,
): Promise<void> =>
  warehouse.transaction(async (transaction) => {
    await transaction.execute(FORGET_OWN_CHANGE, change);
    if (!isUndone) await transaction.execute(RECORD_CHANGE, { ...change, link: null });
  });

/** The pages that a pull request changes, as far as its files tell. */
async function pathsOf(
  { codeHost, signal }: ReadTask,
  repository: string,
  pullRequest: PullRequest,
  pages: ReadonlyMap<string, unknown>,
): Promise<string[]> {
  const files = await codeHost.filesOf(repository, pullRequest, signal);
  const { files: pattern } = codeHost.settings;
  const paths = files.flatMap((file) => possiblePaths(file, pattern).find((path) => pages.has(path)) ?? []);
  return [...new Set(paths)];
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

const REFERENCE = /Readership reference ([0-9a-f]{12})\b(?:, project ("[^"\n]*"), page ("[^"\n]*"))?/g;

const referencesIn = (text: string) =>
  [...text.matchAll(REFERENCE)].map(([, reference = '', project, page]) => ({ reference, project, page }));

/** Clocks differ; a pull request cannot be older than the attempt to create its job. */
const CLOCKS_DIFFER_MINUTES = 10;

/**
 * Settles jobs whose reply was lost by their pull requests. A job is settled only if exactly one
 * pull request since then has its reference, and it is about the page. All others are left to a person.
 */
async function settleLostJobs(
  task: ReadTask,
  repository: string,
  jobs: readonly Job[],
  pages: ReadonlyMap<string, unknown>,
): Promise<{ readonly settled: readonly Job[]; readonly isDone: boolean }> {
  const lost = jobs.filter(({ state }) => state === 'unconfirmed');
  if (lost.length === 0) return { settled: [], isDone: true };
  const sent = min(lost.map(({ submitted_at, planned_at }) => submitted_at ?? planned_at));
  const since = await allSince(task, repository, subMinutes(sent, CLOCKS_DIFFER_MINUTES));
  const settled: Job[] = [];
  const found = lost.flatMap((job) => {
    const pullRequest = pullRequestOf(job, since, jobs);
    return pullRequest === undefined || task.codeHost.addressOf(pullRequest.link) === undefined
      ? []
      : { job, pullRequest };
  });
  for (const { job, pullRequest } of found.slice(0, MAX_READ)) {
    const paths = await pathsOf(task, repository, pullRequest, pages);
    const isNamed = referencesIn(pullRequest.text)[0]?.page !== undefined;
    if (!(paths.includes(job.path) || (paths.length === 0 && isNamed))) continue;
    const { link: prLink } = pullRequest;
    const now = task.now();
    await task.journal.append([entryAbout(job, { event: 'sent', prLink, note: FOUND }, now)]);
    const change = { event: 'found-pull-request', now, cause: `${FOUND}: ${prLink}`, prLink } as const;
    settled.push(await changeJob(task.warehouse, job, change));
  }
  return { settled, isDone: found.length <= MAX_READ };
}

const FOUND = 'found by its reference in a pull request';

/** The only pull request with the reference of a job, if that of no other job is in it, and its page and age fit. */
function pullRequestOf(
  job: Job,
  pullRequests: readonly PullRequest[],
  jobs: readonly Job[],
): PullRequest | undefined {
  const [found, ...others] = pullRequests.filter(({ text }) => text.includes(job.reference));
  if (found === undefined || others.length > 0) return undefined;
  const lines = referencesIn(found.text);
  const isRight = ({ reference, project, page }: (typeof lines)[number]) =>
    reference === job.reference &&
    (page === undefined || (page === quoted(job.path) && project === quoted(job.project)));
  const isTaken = jobs.some(({ pr_link }) => pr_link === found.link);
  const isOlder = found.createdAt < subMinutes(job.submitted_at ?? job.planned_at, CLOCKS_DIFFER_MINUTES);
  return lines.length > 0 && lines.every(isRight) && !isTaken && !isOlder ? found : undefined;
}

/** All pull requests that changed since a moment; none if there are too many to be sure that a reference is unique. */
async function allSince({ codeHost, signal }: ReadTask, repository: string, since: Date) {
  const all = new Map<string, PullRequest>();
  let next: Date | undefined = since;
  for (let lists = 0; next !== undefined; lists++) {
    if (lists === MAX_LISTS) return [];
    const list: Awaited<ReturnType<CodeHost['changedSince']>> = await codeHost.changedSince(
      repository,
      next,
      signal,
    );
    for (const pullRequest of list.pullRequests) all.set(pullRequest.link, pullRequest);
    next = list.next;
  }
  return [...all.values()];
}
