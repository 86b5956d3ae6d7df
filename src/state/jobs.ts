import { addDays, addSeconds, subDays } from 'date-fns';
import { z } from 'zod';
import { dayColumn, flagColumn, readSql, timestampColumn } from '../columns.js';
import type { Day } from '../day.js';
import type { Bindings, State } from './state.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const JOBS = statement('jobs');
const ADD_JOB = statement('add-job');
const UPDATE_JOB = statement('update-job');
const RECORD_CHANGE = statement('record-change');
const CHANGES_OF_JOB = statement('changes-of-job');
const NEW_PROMPTS = statement('new-prompts');
const UNMERGED_JOBS = statement('unmerged-jobs');
const MARK_MERGED = 'UPDATE jobs SET merged_on = $merged_on WHERE id = $id';
const FORGET_PULL_REQUEST = 'DELETE FROM pull_requests WHERE job = $job';
const FORGET_PROBLEMS = statement('forget-problems');
const RECORD_PULL_REQUEST = statement('record-pull-request');

export const JOB_STATES = [
  'planned',
  'sending',
  'unknown',
  'refused',
  'active',
  'completed',
  'failed',
  'archived',
] as const;
export type JobState = (typeof JOB_STATES)[number];

/** The evidence stored with a job: views by people and AI over the last full weeks, at most 8. */
export const evidenceRow = z.object({
  /** Of a typical week: the median by the views of both together. */
  weekly_human: z.number(),
  weekly_ai: z.number(),
  /** Relative change from the older to the newer half of the weeks; null if the older half has no views or is before a break. */
  trend: z.number().nullable(),
  /** Oldest first. */
  weeks: z.array(z.object({ week: dayColumn, human: z.int(), ai: z.int() })),
});
export type Evidence = z.infer<typeof evidenceRow>;

/** The columns that jobs and messages have in common. `id` is the number in Readership. */
export const promptColumns = {
  id: z.int(),
  /** In the prompt and the pull request. */
  reference: z.string(),
  project: z.string(),
  path: z.string(),
  prompt: z.string(),
  planned_at: timestampColumn,
  /** The number of the last attempt to send it; null if it was never sent. */
  attempt: z.int().nullable(),
  /** When that attempt began. */
  submitted_at: timestampColumn.nullable(),
  note: z.string().nullable(),
};

const jobRow = z.object({
  ...promptColumns,
  state: z.enum(JOB_STATES),
  /** Whether a person approved the page, so that the job is sent in every mode. */
  is_approved: flagColumn,
  remote_id: z.string().nullable(),
  reason: z.string(),
  remote_status: z.string().nullable(),
  pr_link: z.string().nullable(),
  polls: z.int(),
  next_poll_at: timestampColumn.nullable(),
  ended_at: timestampColumn.nullable(),
  merged_on: dayColumn.nullable(),
  /** When its pull request was closed without being merged; null if it was not, or was not looked up. */
  closed_on: dayColumn.nullable(),
  /** The branch its pull request was merged into, if that is not the site's. */
  merged_into: z.string().nullable(),
  /** Why its pull request could not be looked up. */
  pull_request_problem: z.string().nullable(),
  ...evidenceRow.shape,
  weeks: z.string().transform((text) => evidenceRow.shape.weeks.parse(JSON.parse(text))),
});
/**
 * A job has three ids. `id` is its number in Readership, used by commands (`jobs show 1`), lists and the web app.
 * `remote_id` is the platform's id, used in requests to it and null until it is known. `reference` is in the prompt
 * and the pull request. `jobs show` and the view `jobs` have all three.
 */
export type Job = z.infer<typeof jobRow>;

/** Every job of a project (null for all projects), oldest first. */
export const readJobs = (state: State, project: string | null): Job[] =>
  state.all(JOBS, jobRow, { project, id: null });

export const readJobsOf = (state: State, projects: readonly { readonly id: string }[]): Job[] =>
  projects.flatMap(({ id }) => readJobs(state, id));

export const readJob = (state: State, id: number): Job | undefined =>
  state.get(JOBS, jobRow, { project: null, id });

/** A job before it has a number. */
export type NewJob = Pick<
  Job,
  'reference' | 'project' | 'path' | 'is_approved' | 'reason' | 'prompt' | 'planned_at' | keyof Evidence
>;

/** Stores a planned job. Returns its number. */
export const addJob = (state: State, job: NewJob): number =>
  addedId(state, ADD_JOB, { ...job, weeks: JSON.stringify(job.weeks) });

/** Inserts a job or message. Returns its number. */
export function addedId(state: State, sql: string, values: Bindings): number {
  const row = state.get(sql, z.object({ id: z.int() }), values);
  if (row === undefined) throw new Error('the prompt was not stored');
  return row.id;
}

/** What the platform reported of the agent; what it does not report this time is kept. */
interface ReportedAgent {
  readonly model: string | null;
  readonly repository: string | null;
  readonly ref: string | null;
}

/** Stores the mutable columns of a job, whatever its previous state. */
export const storeJob = (state: State, job: Job, agent: ReportedAgent): number =>
  state.run(UPDATE_JOB, { ...job, ...agent });

/** A change to record: of a job, or of one of its messages if `message` is set. */
interface Change {
  readonly job: number;
  readonly message: number | null;
  readonly now: Date;
  readonly from: string | null;
  readonly to: string;
  /** A phrase for the list of changes. */
  readonly cause: string;
}

/** Records a change of state, in the transaction that makes it. */
export const recordChange = (state: State, change: Change): number => state.run(RECORD_CHANGE, { ...change });

const changeRow = z.object({
  message: z.int().nullable(),
  changed_at: timestampColumn,
  from_state: z.string().nullable(),
  to_state: z.string(),
  cause: z.string(),
});
/** A change of state of a job, or of one of its messages if `message` is set. */
export type RecordedChange = z.infer<typeof changeRow>;

/** The changes of a job and its messages, oldest first. */
export const readChanges = (state: State, job: number): RecordedChange[] =>
  state.all(CHANGES_OF_JOB, changeRow, { job });

/** Whether a job that a person approved, or a message, was planned after the poll step last began. */
export const hasNewPrompts = (state: State, now: Date): boolean =>
  state.get(NEW_PROMPTS, z.object({ waits: z.int() }), { now })?.waits === 1;

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
