import { createHash } from 'node:crypto';
import { z } from 'zod';
import { jobStatus } from '../api/schema.js';
import { dayColumn, type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import { isRemote, JOB_STATES, type RemoteState } from './lifecycle.js';
import { evidenceRow } from './reasons.js';

const JOBS_OF_PROJECT = readSql(import.meta.url, 'statements/jobs-of-project.sql');

/**
 * Identifies a job or message in the effects journal, the prompt and the pull request. It is
 * derived from values that never change, so every copy of the database agrees on it.
 */
export const referenceOf = (...parts: readonly (string | Date)[]): string =>
  createHash('sha256')
    .update(parts.map((part) => (part instanceof Date ? part.getTime() : part)).join('\n'))
    .digest('hex')
    .slice(0, 12);

/** The columns that jobs and messages have in common. `id` is the number in Readership. */
export const promptColumns = {
  id: z.int(),
  project: z.string(),
  path: z.string(),
  prompt: z.string(),
  planned_at: timestampColumn,
  submitted_at: timestampColumn.nullable(),
  note: z.string().nullable(),
};

const jobRow = z
  .object({
    ...promptColumns,
    state: z.enum(JOB_STATES),
    remote_id: z.string().nullable(),
    reason: z.string(),
    /** Version 0.3 stored any length. */
    remote_status: jobStatus.nullable().catch(null),
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
  })
  .transform((row) => ({
    ...row,
    reference: referenceOf(row.project, row.path, row.planned_at),
  }));
/**
 * A job has three ids. `id` is its number in this database, used by commands (`jobs show 1`), lists
 * and the web app. `remote_id` is the platform's id, used in requests to it and null until it is
 * known. `reference` is in the prompt, the pull request and the effects journal, and is the same in
 * every copy of the database. `jobs show` and the view `jobs` have all three.
 */
export type Job = z.infer<typeof jobRow>;
/** A job known to exist on the platform. */
export type RemoteJob = Job & { readonly state: RemoteState; readonly remote_id: string };

/** A job whose reply was lost and whose pull request was found has an unknown id. */
export const isRemoteJob = (job: Job): job is RemoteJob => isRemote(job.state) && job.remote_id !== null;

/** Every job of a project (null for all projects), oldest first. */
export const readJobs = (reader: Reader, project: string | null): Promise<Job[]> =>
  reader.query(JOBS_OF_PROJECT, jobRow, { project });

export const readJobsOf = async (
  reader: Reader,
  projects: readonly { readonly id: string }[],
): Promise<Job[]> => (await Promise.all(projects.map(({ id }) => readJobs(reader, id)))).flat();
