import { webLink } from '../../format/paths.js';
import type { JobRow } from './rows.js';

/** What a job means for the reader of the report, most pressing first. */
const GROUPS = ['ready', 'running', 'unchanged', 'failed', 'unconfirmed'] as const;

export type JobGroup = (typeof GROUPS)[number];

interface WeeklyJob {
  readonly id: number;
  readonly path: string;
  readonly group: JobGroup;
  /** The pull request, when its address is one of the web. */
  readonly pullRequest: string | null;
  readonly note: string | null;
}

export interface AgentWork {
  readonly counts: Readonly<Record<JobGroup, number>>;
  readonly jobs: readonly WeeklyJob[];
  /** Jobs beyond those that are listed. */
  readonly more: number;
}

const JOBS_LISTED = 12;

/** The agents' work; null without any job. */
export function agentWorkOf(rows: readonly JobRow[]): AgentWork | null {
  if (rows.length === 0) return null;
  const jobs = rows.map((row) => ({
    id: row.id,
    path: row.path,
    group: groupOf(row),
    pullRequest: webLink(row.pr_link) ?? null,
    note: row.note,
  }));
  const inOrder = GROUPS.flatMap((group) => jobs.filter((job) => job.group === group));
  const count = (group: JobGroup): number => jobs.filter((job) => job.group === group).length;
  return {
    counts: {
      ready: count('ready'),
      running: count('running'),
      unchanged: count('unchanged'),
      failed: count('failed'),
      unconfirmed: count('unconfirmed'),
    },
    jobs: inOrder.slice(0, JOBS_LISTED),
    more: Math.max(0, jobs.length - JOBS_LISTED),
  };
}

export function groupOf({ state, pr_link }: JobRow): JobGroup {
  switch (state) {
    case 'planned':
    case 'submitting':
    case 'active':
      return 'running';
    case 'completed':
    case 'archived':
      return pr_link === null ? 'unchanged' : 'ready';
    case 'failed':
    case 'refused':
      return 'failed';
    case 'unconfirmed':
      return 'unconfirmed';
  }
}
