import { type Job, readJobs } from '../agents/ledger.js';
import { ConfigurationError } from '../errors.js';
import type { Reader } from '../warehouse/query.js';
import type { Workspace } from './workspace.js';

/** The jobs of every project that the command is about, oldest first. */
export const allJobs = async (reader: Reader, { projects }: Workspace): Promise<Job[]> =>
  (await Promise.all(projects.map((project) => readJobs(reader, project.id)))).flat();

/** Throws a `ConfigurationError` when there is no job of that number. */
export function findJob(jobs: readonly Job[], id: number): Job {
  const job = jobs.find((candidate) => candidate.id === id);
  if (job === undefined)
    throw new ConfigurationError(`There is no job ${id}. What there is: readership jobs list`);
  return job;
}
