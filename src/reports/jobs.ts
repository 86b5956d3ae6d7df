import { z } from 'zod';
import { inWords } from '../format/numbers.js';
import { capitalised, webLink } from '../format/text.js';
import { JOB_STATES } from '../state/jobs.js';

/** A job as the reports' queries return it. */
export const jobRow = z.object({
  id: z.number().int(),
  path: z.string(),
  state: z.enum(JOB_STATES),
  pr_link: z.string().nullable(),
  pull_request: z.enum(['open', 'merged', 'closed', 'merged elsewhere', 'unknown']).nullable(),
  merged_into: z.string().nullable(),
  pull_request_problem: z.string().nullable(),
  note: z.string().nullable(),
});

export type JobRow = z.infer<typeof jobRow>;

/** What a job means to the reader of a report, most pressing first. */
const GROUPS = ['ready', 'check', 'running', 'unchanged', 'failed', 'unknown'] as const;
export type JobGroup = (typeof GROUPS)[number];

/** For at least one pull request. */
export const waitingForReview = (pullRequests: number): string =>
  `${capitalised(inWords(pullRequests))} pull ${pullRequests === 1 ? 'request is' : 'requests are'} waiting for your review`;

/** A job as reports show it. */
export type ReportedJob = ReturnType<typeof reportedJob>;

const GROUP_OF: Readonly<Record<JobRow['state'], JobGroup>> = {
  planned: 'running',
  sending: 'running',
  active: 'running',
  completed: 'unchanged',
  archived: 'unchanged',
  failed: 'failed',
  refused: 'failed',
  unknown: 'unknown',
};

export function reportedJob(job: JobRow) {
  const { id, path } = job;
  const group = groupOf(job);
  const isOpen = group === 'ready' || group === 'check';
  /** Whether someone has to act on it; for other jobs, the group is all there is to show. */
  const isTask = isOpen || group === 'unknown';
  /** The pull request to review or check, if its address is a web address. */
  const pullRequest = (isOpen ? webLink(job.pr_link) : undefined) ?? null;
  const number = pullRequestNumber(pullRequest);
  return { id, path, group, isTask, pullRequest, number, note: pullRequestNote(job) ?? job.note };
}

function groupOf({ state, pull_request }: JobRow): JobGroup {
  if (GROUP_OF[state] === 'running') return 'running';
  // A job may fail after it opened a pull request.
  if (pull_request === 'open') return 'ready';
  return pull_request === 'unknown' || pull_request === 'merged elsewhere' ? 'check' : GROUP_OF[state];
}

/** What else is known of a pull request that is not merged; null if nothing is. */
function pullRequestNote(job: JobRow) {
  if (job.pull_request === 'closed') return 'Its pull request was closed without being merged.';
  if (job.pull_request === 'merged elsewhere')
    return `${capitalised(mergedIntoAnotherBranch(job.merged_into))}.`;
  return job.pull_request === 'unknown' ? job.pull_request_problem : null;
}

export const mergedIntoAnotherBranch = (branch: string | null): string =>
  `merged into ${branch ?? 'another branch'}, which is neither the branch the agent began with nor the default branch`;

/** `#214`, from the number at the end of a pull request's address; null for any other address. */
export const pullRequestNumber = (link: string | null): string | null => {
  const number = /\/(?:pull|pulls|pull-requests|pullrequest|merge_requests)\/(\d+)\/?$/.exec(link ?? '')?.[1];
  return number === undefined ? null : `#${number}`;
};

/** Some jobs by their group, each in the given order. */
export function byGroup<Job extends ReportedJob>(jobs: readonly Job[]) {
  const of = (wanted: JobGroup) => jobs.filter(({ group }) => group === wanted);
  return {
    ready: of('ready'),
    check: of('check'),
    running: of('running'),
    unchanged: of('unchanged'),
    failed: of('failed'),
    unknown: of('unknown'),
  };
}

const JOBS_LISTED = 12;

/** The agents' work in the weekly report; null without any job. */
export function agentWorkOf(rows: readonly (JobRow & { readonly is_new: boolean })[]) {
  if (rows.length === 0) return null;
  const groups = byGroup(rows.map(reportedJob));
  const counts = { ready: 0, check: 0, running: 0, unchanged: 0, failed: 0, unknown: 0 };
  for (const group of GROUPS) counts[group] = groups[group].length;
  return {
    counts,
    /** Whether a pull request has begun to wait for review in the week. */
    isNews: rows.some((row) => row.is_new && reportedJob(row).group === 'ready'),
    jobs: GROUPS.flatMap((group) => groups[group]).slice(0, JOBS_LISTED),
    /** Number of jobs that are not listed. */
    more: Math.max(0, rows.length - JOBS_LISTED),
  };
}
