import { addDays, addSeconds, subDays } from 'date-fns';
import { z } from 'zod';
import { readSql } from '../columns.js';
import type { Day } from '../day.js';
import { jobRow } from './jobs.js';
import type { State } from './state.js';

const UNMERGED_JOBS = readSql(import.meta.url, 'statements/unmerged-jobs.sql');
const MARK_MERGED = 'UPDATE jobs SET merged_on = $merged_on WHERE id = $id';
const FORGET_PULL_REQUEST = 'DELETE FROM pull_requests WHERE job = $job';
const FORGET_PROBLEMS = readSql(import.meta.url, 'statements/forget-problems.sql');
const RECORD_PULL_REQUEST = readSql(import.meta.url, 'statements/record-pull-request.sql');

/** A job ended with a pull request that is looked up for this long. */
const LOOKED_UP_DAYS = 180;

/** `ref` is the branch that the agent began with. */
const dueRow = jobRow.extend({ pr_link: z.string(), ref: z.string().nullable() });

/** The jobs of a project whose pull requests are due to be looked up. */
export const readUnmergedJobs = (state: State, project: string, now: Date) =>
  state.all(UNMERGED_JOBS, dueRow, {
    project,
    since: subDays(now, LOOKED_UP_DAYS),
    // A check later than any delay allows was planned by a clock that was ahead.
    soon: addSeconds(now, 1),
    latest: addDays(now, 1),
  });

/** Stores when the pull request of a job was merged; null if it was not. */
export const markMerged = (state: State, id: number, merged_on: Day | null): number =>
  state.run(MARK_MERGED, { id, merged_on });

/** What was found when a pull request was looked up. */
interface FoundPullRequest {
  readonly job: number;
  readonly now: Date;
  /** When it is looked up again. */
  readonly next: Date;
  readonly closed_on: Day | null;
  readonly merged_into: string | null;
  readonly problem: string | null;
}

/** Stores that in place of what was known of the pull request. */
export const recordPullRequest = (state: State, found: FoundPullRequest): number =>
  state.run(RECORD_PULL_REQUEST, { ...found });

export const forgetPullRequest = (state: State, job: number): number =>
  state.run(FORGET_PULL_REQUEST, { job });

/** Forgets why pull requests of a project could not be looked up. */
export const forgetProblems = (state: State, project: string): number =>
  state.run(FORGET_PROBLEMS, { project });
