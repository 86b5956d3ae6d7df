import { addHours, addMilliseconds, differenceInHours } from 'date-fns';
import { z } from 'zod';
import { RefusedError, TryLaterError } from '../api/errors.js';
import { type Day, dayOf } from '../day.js';
import { messageOf, ReadershipError } from '../errors.js';
import { readSql } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { type CodeHost, DEFAULT_PAUSE_MS } from './code-host.js';
import type { Review } from './dialects.js';
import { type Job, type ProjectTask, readJobs } from './ledger.js';

const UNMERGED_JOBS = readSql(import.meta.url, 'statements/unmerged-jobs.sql');
const MARK_MERGED = 'UPDATE agent_jobs SET merged_on = $merged_on::DATE WHERE id = $id';
const FORGET_PULL_REQUEST = 'DELETE FROM pull_requests WHERE job = $job';
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
      if (await store(task, job, await codeHost.review(address, signal))) changed.push(job.id);
    } catch (error) {
      if (!(error instanceof ReadershipError)) throw error;
      const problem = messageOf(error);
      const later = error instanceof TryLaterError ? error : undefined;
      const next = later && addMilliseconds(now(), later.retryAfterMs ?? DEFAULT_PAUSE_MS);
      // A limit or a rejected token applies to the remaining pull requests too; a repository that is hidden or renamed does not.
      const ofOne = error instanceof RefusedError ? [301, 404].includes(error.status) : next === undefined;
      for (const other of ofOne ? [job] : due.slice(index))
        await record(task, other, { problem, closed_on: other.closed_on, next });
      if (!ofOne) break;
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

/** Records the day on which a job's pull request was merged, from which its effect is measured; null if it was not. */
export const markMerged = (warehouse: Warehouse, { id }: Job, merged_on: Day | null): Promise<void> =>
  warehouse.transaction((transaction) => transaction.execute(MARK_MERGED, { id, merged_on }));

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
