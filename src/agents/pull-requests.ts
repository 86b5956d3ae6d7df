import { addHours, addMilliseconds, differenceInHours } from 'date-fns';
import { z } from 'zod';
import { RefusedError, TryLaterError } from '../api/errors.js';
import { dayOf } from '../day.js';
import { messageOf, ReadershipError } from '../errors.js';
import { readSql } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import type { CodeHost, PullRequest } from './code-host.js';
import { type Job, markMerged, readJobs } from './ledger.js';

const UNMERGED_JOBS = readSql(import.meta.url, 'statements/unmerged-jobs.sql');
const FORGET_PULL_REQUEST = readSql(import.meta.url, 'statements/forget-pull-request.sql');
const RECORD_PULL_REQUEST = readSql(import.meta.url, 'statements/record-pull-request.sql');

/** In one round; GitHub allows 60 requests an hour without a token. */
const MAX_REQUESTS = 10;

interface Task {
  readonly warehouse: Warehouse;
  readonly codeHost: CodeHost;
  readonly project: string;
  readonly now: () => Date;
  readonly signal: AbortSignal;
}

/**
 * Looks up the pull requests that are due, and stores when one was merged, or closed without that. One that cannot be
 * looked up is no failure of the platform's jobs: the reason is stored with it. Returns the jobs that changed.
 */
export async function noticeMerges(task: Task): Promise<Job[]> {
  const { warehouse, project, now, codeHost, signal } = task;
  const rows = await warehouse.query(UNMERGED_JOBS, z.object({ id: z.int() }), { project, now: now() });
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
    if (signal.aborted || ++requests > MAX_REQUESTS) break;
    try {
      if (await store(task, job, await codeHost.pullRequest(address, signal))) changed.push(job.id);
    } catch (error) {
      if (!(error instanceof ReadershipError)) throw error;
      const problem = messageOf(error);
      const next =
        error instanceof TryLaterError ? addMilliseconds(now(), error.retryAfterMs ?? 600_000) : undefined;
      // A limit or a rejected token applies to the remaining pull requests too.
      const isOfAll = next !== undefined || (error instanceof RefusedError && error.status !== 404);
      for (const other of isOfAll ? due.slice(index) : [job])
        await record(task, other, {
          problem,
          closed_on: other.closed_on,
          ...(next === undefined ? {} : { next }),
        });
      if (isOfAll) break;
    }
  }
  return (await readJobs(warehouse, project)).filter(({ id }) => changed.includes(id));
}

/** Returns whether the job changed. */
async function store(task: Task, job: Job, pullRequest: PullRequest): Promise<boolean> {
  if (pullRequest.state !== 'merged') {
    const closed_on = pullRequest.state === 'closed' ? pullRequest.on : null;
    await record(task, job, { closed_on });
    return closed_on !== job.closed_on;
  }
  const { on } = pullRequest;
  const isPossible = on >= dayOf(job.planned_at) && on <= dayOf(task.now());
  await record(
    task,
    job,
    isPossible ? {} : { problem: `the code host reports ${on} as the merge date, which cannot be right` },
  );
  if (isPossible) await markMerged(task.warehouse, job, on);
  return isPossible;
}

/** By default it is looked up again after a tenth of the time since its job ended: from an hour to a day. */
const record = (
  { warehouse, now }: Task,
  { id: job, ended_at }: Job,
  {
    closed_on = null,
    problem = null,
    next = addHours(now(), clampHours(differenceInHours(now(), ended_at ?? now()) / 10)),
  }: { closed_on?: string | null; problem?: string | null; next?: Date },
): Promise<void> =>
  warehouse.transaction(async (transaction) => {
    await transaction.execute(FORGET_PULL_REQUEST, { job });
    await transaction.execute(RECORD_PULL_REQUEST, { job, now: now(), next, closed_on, problem });
  });

const clampHours = (hours: number): number => Math.min(24, Math.max(1, hours));
