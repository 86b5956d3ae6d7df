import { addHours, addMilliseconds, differenceInHours } from 'date-fns';
import { z } from 'zod';
import { RefusedError, TryLaterError } from '../api/errors.js';
import { type Day, dayOf } from '../day.js';
import { messageOf, ReadershipError } from '../errors.js';
import { readSql } from '../warehouse/query.js';
import { type CodeHost, DEFAULT_PAUSE_MS, type Review } from './code-host.js';
import { type Job, readJobs } from './job.js';
import { type JobsTask, recordTransition } from './ledger.js';

const UNMERGED_JOBS = readSql(import.meta.url, 'statements/unmerged-jobs.sql');
const MARK_MERGED = 'UPDATE agent_jobs SET merged_on = $merged_on::DATE WHERE id = $id';
const FORGET_PULL_REQUEST = 'DELETE FROM pull_requests WHERE job = $job';
const FORGET_PROBLEMS = readSql(import.meta.url, 'statements/forget-problems.sql');
const RECORD_PULL_REQUEST = readSql(import.meta.url, 'statements/record-pull-request.sql');

/** In one round; GitHub allows 60 requests an hour without a token. */
const MAX_REQUESTS = 10;

interface Task extends JobsTask {
  readonly codeHost: CodeHost;
}

const dueRow = z.object({ id: z.int(), ref: z.string().nullable() });

/**
 * Looks up the pull requests that are due, and stores when one was merged, or closed without being
 * merged. One that cannot be looked up does not fail the step; the reason is stored with it.
 * Returns the jobs that changed.
 */
export async function noticeMerges(task: Task): Promise<Job[]> {
  const { warehouse, project, now, codeHost, signal } = task;
  const rows = await warehouse.query(UNMERGED_JOBS, dueRow, { project, now: now() });
  if (rows.length === 0) return [];
  const jobs = await readJobs(warehouse, project);
  const due = rows.flatMap(({ id, ref }) => {
    const job = jobs.find((candidate) => candidate.id === id);
    return job?.pr_link == null ? [] : { job, link: job.pr_link, ref };
  });
  const changed: number[] = [];
  for (const [index, { job, link, ref }] of due.slice(0, MAX_REQUESTS).entries()) {
    if (signal?.aborted) break;
    try {
      const review = await codeHost.review(link, ref, signal);
      if (await store(task, job, review)) changed.push(job.id);
    } catch (error) {
      if (!(error instanceof ReadershipError)) throw error;
      const problem = messageOf(error);
      const later = error instanceof TryLaterError ? error : undefined;
      const next = later && addMilliseconds(now(), later.retryAfterMs ?? DEFAULT_PAUSE_MS);
      // A limit or a rejected token applies to the remaining pull requests too.
      const isOfAll = later !== undefined || (error instanceof RefusedError && error.status === 401);
      for (const { job: other } of isOfAll ? due.slice(index) : [{ job }]) {
        const { closed_on, merged_into } = other;
        await record(task, other, { closed_on, merged_into, problem, next });
      }
      if (isOfAll) break;
    }
  }
  return (await readJobs(warehouse, project)).filter(({ id }) => changed.includes(id));
}

/** Forgets why pull requests could not be looked up, once `pullRequests` is no longer configured. */
export const forgetProblems = ({ warehouse, project }: JobsTask): Promise<void> =>
  warehouse.transaction((transaction) => transaction.execute(FORGET_PROBLEMS, { project }));

/** Stores what the host says; undefined if the link is of another host. Returns whether the job was merged or closed, or reopened. */
async function store(task: Task, job: Job, review: Review | undefined): Promise<boolean> {
  if (review === undefined) {
    const problem = 'the link is not a pull request at pullRequests.url';
    await record(task, job, { closed_on: job.closed_on, problem });
    return false;
  }
  const { mergedOn, closedOn: closed_on, mergedInto: merged_into } = review;
  if (mergedOn === null) {
    await record(task, job, { closed_on, merged_into });
    return closed_on !== job.closed_on;
  }
  if (mergedOn < dayOf(job.planned_at) || mergedOn > dayOf(task.now())) {
    const problem = `the code host reports ${mergedOn} as the merge date, which cannot be right`;
    await record(task, job, { closed_on: job.closed_on, problem });
    return false;
  }
  await record(task, job, {});
  await task.warehouse.transaction((transaction) =>
    transaction.execute(MARK_MERGED, { id: job.id, merged_on: mergedOn }),
  );
  return true;
}

/** What a person knows of a job's pull request; null is what did not happen. */
interface KnownReview {
  readonly merged_on: Day | null;
  readonly closed_on: Day | null;
  /** A phrase for the list of transitions. */
  readonly cause: string;
}

/** Stores that in place of what was known of the pull request, and in the job's history. */
export const storeReview = (
  { warehouse, now }: Pick<Task, 'warehouse' | 'now'>,
  { id, state }: Job,
  { merged_on, closed_on, cause }: KnownReview,
): Promise<void> =>
  warehouse.transaction(async (transaction) => {
    const at = now();
    await transaction.execute(MARK_MERGED, { id, merged_on });
    await transaction.execute(FORGET_PULL_REQUEST, { job: id });
    if (closed_on !== null) {
      const found = { closed_on, merged_into: null, problem: null };
      await transaction.execute(RECORD_PULL_REQUEST, { job: id, now: at, next: addHours(at, 24), ...found });
    }
    await recordTransition(transaction, { job: id, now: at, from: state, to: state, cause });
  });

interface Found {
  readonly closed_on?: Day | null;
  readonly merged_into?: string | null;
  readonly problem?: string;
  readonly next?: Date | undefined;
}

/**
 * By default it is looked up again after a tenth of the time since its job ended, from an hour to a day, or an hour
 * after a problem.
 */
const record = (
  { warehouse, now }: Pick<Task, 'warehouse' | 'now'>,
  { id: job, ended_at }: Job,
  found: Found,
): Promise<void> =>
  warehouse.transaction(async (transaction) => {
    const { closed_on = null, merged_into = null, problem = null } = found;
    const tenth = differenceInHours(now(), ended_at ?? now()) / 10;
    const hours = problem === null ? Math.min(24, Math.max(1, tenth)) : 1;
    const next = found.next ?? addHours(now(), hours);
    await transaction.execute(FORGET_PULL_REQUEST, { job });
    const values = { job, now: now(), next, closed_on, merged_into, problem };
    await transaction.execute(RECORD_PULL_REQUEST, values);
  });
