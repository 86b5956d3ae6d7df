import { addHours, addMilliseconds, addMinutes, min, subDays, subMinutes } from 'date-fns';
import { z } from 'zod';
import { TryLaterError } from '../api/errors.js';
import { LONGEST_WAIT_MS } from '../api/retry-after.js';
import type { Day } from '../day.js';
import type { EffectsJournal } from '../effects/journal.js';
import { messageOf, ReadershipError } from '../errors.js';
import { readSql, timestampColumn } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { type CodeHost, DEFAULT_PAUSE_MS } from './code-host.js';
import type { PullRequest } from './dialects.js';
import { entryAbout } from './intents.js';
import { changeJob, type Job, readJobsOf } from './ledger.js';
import { asciiJson } from './prompt.js';

const READ_UNTIL = 'SELECT read_until, next_read_at FROM code_host_reads WHERE repository = $repository';
const FORGET_READ = 'DELETE FROM code_host_reads WHERE repository = $repository';
const RECORD_READ = readSql(import.meta.url, 'statements/record-read.sql');
const READ_PAGES = readSql(import.meta.url, 'statements/read-pages.sql');
const FORGET_CHANGE = 'DELETE FROM page_changes WHERE link = $link';
const RECORD_CHANGE = readSql(import.meta.url, 'statements/record-change.sql');
const FORGET_OWN_CHANGE = readSql(import.meta.url, 'statements/forget-own-change.sql');

/** Reads the pull requests of `pullRequests.repository`. */
interface ReadTask {
  readonly warehouse: Warehouse;
  readonly journal: EffectsJournal;
  readonly codeHost: CodeHost;
  readonly projects: readonly { readonly id: string }[];
  readonly now: () => Date;
  readonly signal?: AbortSignal;
}

/** Pull requests that did not change for this long are not read at first. */
const FIRST_READ_DAYS = 84;
const READ_EVERY_HOURS = 1;
/** The next round goes on if there is more than this to read. */
const MAX_READ = 20;
const GO_ON_AFTER_MINUTES = 10;

const readRow = z.object({ read_until: timestampColumn, next_read_at: timestampColumn });
const pageRow = z.object({ path: z.string() });

/**
 * Reads the pull requests of the repository that changed since the last time, once an hour: stores
 * which pages people or other agents change, and settles jobs whose reply was lost. Returns those, and why the pull
 * requests could not be read, if they could not: that does not fail the step.
 */
export async function readPullRequests(
  task: ReadTask,
): Promise<{ readonly settled: readonly Job[]; readonly problem?: string }> {
  const { warehouse, codeHost, projects, now } = task;
  const { repository } = codeHost.settings;
  if (repository === undefined) return { settled: [] };
  const [last] = await warehouse.query(READ_UNTIL, readRow, { repository });
  // Times later than any delay allows were stored by a clock that was ahead.
  const isSoon = last !== undefined && last.next_read_at <= addMilliseconds(now(), LONGEST_WAIT_MS);
  if (isSoon && last.next_read_at > now()) return { settled: [] };
  const isKnown = last !== undefined && last.read_until <= addHours(now(), 1);
  let until = isKnown ? last.read_until : subDays(now(), FIRST_READ_DAYS);
  const record = (next: Date, problem: string | null) =>
    warehouse.transaction(async (transaction) => {
      await transaction.execute(FORGET_READ, { repository });
      await transaction.execute(RECORD_READ, { repository, until, next, problem });
    });
  let settled: readonly Job[] = [];
  try {
    const jobs = await readJobsOf(warehouse, projects);
    const pages = await pagesRead(task);
    const lost = await settleLostJobs(task, jobs, pages);
    settled = lost.settled;
    let left = MAX_READ;
    let isDone = false;
    for await (const { pullRequests, next } of codeHost.changedSince(until, task.signal)) {
      // The next round begins after those that changed at the same time.
      const last = (pullRequests[left - 1] ?? pullRequests.at(-1))?.updatedAt ?? until;
      for (const pullRequest of pullRequests.filter(({ updatedAt }) => updatedAt <= last)) {
        await storeChange(task, pullRequest, jobs, pages);
        until = pullRequest.updatedAt;
      }
      left -= pullRequests.length;
      if (left >= 0) until = next ?? until;
      isDone = next === undefined && left >= 0 && lost.isDone;
      if (left <= 0) break;
    }
    await record(isDone ? addHours(now(), READ_EVERY_HOURS) : addMinutes(now(), GO_ON_AFTER_MINUTES), null);
    return { settled };
  } catch (error) {
    if (!(error instanceof ReadershipError)) throw error;
    const pauseMs = error instanceof TryLaterError ? (error.retryAfterMs ?? DEFAULT_PAUSE_MS) : 3_600_000;
    await record(addMilliseconds(now(), pauseMs), messageOf(error));
    return { settled, problem: messageOf(error) };
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
  { warehouse, codeHost, signal }: ReadTask,
  pullRequest: PullRequest,
  jobs: readonly Job[],
  pages: ReadonlyMap<string, readonly string[]>,
): Promise<void> {
  const { link, mergedOn, closedOn } = pullRequest;
  const references = referencesIn(pullRequest.text).map(({ reference }) => reference);
  const isOurs = jobs.some(
    ({ pr_link, reference }) => codeHost.leadsTo(pr_link, link) || references.includes(reference),
  );
  const isRelevant = !isOurs && closedOn === null;
  const paths = isRelevant ? await codeHost.pagesOf(pullRequest, pages, signal) : [];
  await warehouse.transaction(async (transaction) => {
    await transaction.execute(FORGET_CHANGE, { link });
    for (const path of paths)
      for (const project of pages.get(path) ?? [])
        await transaction.execute(RECORD_CHANGE, { project, path, link, changed_on: mergedOn });
  });
}

const REFERENCE = /Readership reference ([0-9a-f]{12})\b(?:, project ("[^"\n]*"), page ("[^"\n]*"))?/g;

const referencesIn = (text: string) =>
  [...text.matchAll(REFERENCE)].map(([, reference = '', project, page]) => ({ reference, project, page }));

/** In one round. */
const MAX_SETTLED = 20;

/** Clocks differ; a pull request cannot be older than the attempt to create its job. */
const CLOCKS_DIFFER_MINUTES = 10;

/**
 * Settles jobs whose reply was lost by their pull requests. A job is settled only if exactly one
 * pull request since then has its reference, and it is about the page. All others are left to a person.
 */
async function settleLostJobs(
  task: ReadTask,
  jobs: readonly Job[],
  pages: ReadonlyMap<string, unknown>,
): Promise<{ readonly settled: readonly Job[]; readonly isDone: boolean }> {
  const lost = jobs.filter(({ state }) => state === 'unconfirmed');
  if (lost.length === 0) return { settled: [], isDone: true };
  const sent = min(lost.map(({ submitted_at, planned_at }) => submitted_at ?? planned_at));
  const since = await allSince(task, subMinutes(sent, CLOCKS_DIFFER_MINUTES));
  const settled: Job[] = [];
  const found = lost.flatMap((job) => {
    const pullRequest = pullRequestOf(task, job, since, jobs);
    return pullRequest === undefined || task.codeHost.addressOf(pullRequest.link) === undefined
      ? []
      : { job, pullRequest };
  });
  for (const { job, pullRequest } of found.slice(0, MAX_SETTLED)) {
    const paths = await task.codeHost.pagesOf(pullRequest, pages, task.signal);
    const isNamed = referencesIn(pullRequest.text)[0]?.page !== undefined;
    if (!(paths.includes(job.path) || (paths.length === 0 && isNamed))) continue;
    const { link: prLink } = pullRequest;
    const now = task.now();
    await task.journal.append([entryAbout({ job }, { event: 'sent', prLink, note: FOUND }, now)]);
    const cause = `${FOUND}: ${prLink}`;
    settled.push(
      await changeJob(task.warehouse, job, { event: 'found-pull-request', now, cause, remote: { prLink } }),
    );
  }
  return { settled, isDone: found.length <= MAX_SETTLED };
}

const FOUND = 'found by its reference in a pull request';

/** The only pull request with the reference of a job, if that of no other job is in it, and its page and age fit. */
function pullRequestOf(
  { codeHost }: ReadTask,
  job: Job,
  pullRequests: readonly PullRequest[],
  jobs: readonly Job[],
): PullRequest | undefined {
  const [found, ...others] = pullRequests.filter(({ text }) => text.includes(job.reference));
  if (found === undefined || others.length > 0) return undefined;
  const lines = referencesIn(found.text);
  const isRight = ({ reference, project, page }: (typeof lines)[number]) =>
    reference === job.reference &&
    (page === undefined || (page === asciiJson(job.path) && project === asciiJson(job.project)));
  const isTaken = jobs.some(({ pr_link }) => codeHost.leadsTo(pr_link, found.link));
  const isOlder = found.createdAt < subMinutes(job.submitted_at ?? job.planned_at, CLOCKS_DIFFER_MINUTES);
  return lines.length > 0 && lines.every(isRight) && !isTaken && !isOlder ? found : undefined;
}

/** All pull requests that changed since a moment; none if there are too many to be sure that a reference is unique. */
async function allSince({ codeHost, signal }: ReadTask, since: Date): Promise<readonly PullRequest[]> {
  const all = new Map<string, PullRequest>();
  let isComplete = false;
  for await (const { pullRequests, next } of codeHost.changedSince(since, signal)) {
    for (const pullRequest of pullRequests) all.set(pullRequest.link, pullRequest);
    isComplete = next === undefined;
  }
  return isComplete ? [...all.values()] : [];
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
