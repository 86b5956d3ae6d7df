import { addHours, addMilliseconds, differenceInHours } from 'date-fns';
import { RefusedError, TryLaterError } from '../api/errors.js';
import { type Day, dayOf } from '../day.js';
import { messageOf, ReadershipError } from '../errors.js';
import {
  forgetPullRequest,
  type Job,
  markMerged,
  readJob,
  readJobs,
  readUnmergedJobs,
  recordChange,
  recordPullRequest,
} from '../state/jobs.js';
import type { State } from '../state/state.js';
import { type CodeHost, DEFAULT_PAUSE_MS, type Review } from './code-host.js';
import type { JobsTask } from './jobs.js';

/** In one round; GitHub allows 60 requests an hour without a token. */
const MAX_REQUESTS = 10;

interface Task extends JobsTask {
  readonly codeHost: CodeHost;
}

/**
 * Looks up the pull requests that are due, and stores when one was merged, or closed without being
 * merged. One that cannot be looked up does not fail the step; the reason is stored with it.
 * Returns the jobs that changed.
 */
export async function checkPullRequests(task: Task): Promise<Job[]> {
  const { state, project, now, codeHost, signal } = task;
  const due = readUnmergedJobs(state, project, now());
  const changed: number[] = [];
  for (const [index, job] of due.slice(0, MAX_REQUESTS).entries()) {
    if (signal?.aborted) break;
    try {
      const review = await codeHost.review(job.pr_link, job.ref, signal);
      if (await store(task, job, review)) changed.push(job.id);
    } catch (error) {
      if (!(error instanceof ReadershipError)) throw error;
      const problem = messageOf(error);
      const later = error instanceof TryLaterError ? error : undefined;
      const next = later && addMilliseconds(now(), later.retryAfterMs ?? DEFAULT_PAUSE_MS);
      // A limit or a rejected token applies to the remaining pull requests too.
      const isOfAll = later !== undefined || (error instanceof RefusedError && error.status === 401);
      await state.transaction(() => {
        for (const other of isOfAll ? due.slice(index) : [job]) {
          const { closed_on, merged_into } = other;
          record(task, other, { closed_on, merged_into, problem, next });
        }
      });
      if (isOfAll) break;
    }
  }
  return readJobs(state, project).filter(({ id }) => changed.includes(id));
}

/** Stores what the host says; undefined if the link is of another host. Returns whether the job was merged or closed, or reopened. */
const store = (task: Task, { id }: Job, review: Review | undefined): Promise<boolean> =>
  task.state.transaction(() => {
    const job = readJob(task.state, id);
    // A person may have settled it meanwhile.
    if (job?.merged_on !== null) return false;
    if (review === undefined) {
      const problem = 'the link is not a pull request at pullRequests.url';
      record(task, job, { closed_on: job.closed_on, problem });
      return false;
    }
    const { mergedOn, closedOn: closed_on, mergedInto: merged_into } = review;
    if (mergedOn === null) {
      record(task, job, { closed_on, merged_into });
      return closed_on !== job.closed_on;
    }
    if (mergedOn < dayOf(job.planned_at) || mergedOn > dayOf(task.now())) {
      const problem = `the code host reports ${mergedOn} as the merge date, which cannot be right`;
      record(task, job, { closed_on: job.closed_on, problem });
      return false;
    }
    record(task, job, {});
    markMerged(task.state, id, mergedOn);
    return true;
  });

/** What a person knows of a job's pull request; null is what did not happen. */
interface KnownReview {
  readonly merged_on: Day | null;
  readonly closed_on: Day | null;
  /** A phrase for the list of changes. */
  readonly cause: string;
}

/** Stores that in place of what was known of the pull request, and in the job's history, in a transaction. */
export function storeReview(
  state: State,
  { id: job, state: from }: Job,
  { merged_on, closed_on, cause }: KnownReview,
  now: Date,
): void {
  markMerged(state, job, merged_on);
  if (closed_on === null) forgetPullRequest(state, job);
  else
    recordPullRequest(state, {
      job,
      now,
      next: addHours(now, 24),
      closed_on,
      merged_into: null,
      problem: null,
    });
  recordChange(state, { job, message: null, now, from, to: from, cause });
}

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
function record({ state, now }: Pick<Task, 'state' | 'now'>, { id: job, ended_at }: Job, found: Found): void {
  const { closed_on = null, merged_into = null, problem = null } = found;
  const tenth = differenceInHours(now(), ended_at ?? now()) / 10;
  const hours = problem === null ? Math.min(24, Math.max(1, tenth)) : 1;
  const next = found.next ?? addHours(now(), hours);
  recordPullRequest(state, { job, now: now(), next, closed_on, merged_into, problem });
}
