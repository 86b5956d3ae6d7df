import { isRemoteJob, type Job, readJobs } from '../agents/job.js';
import { OPEN_MESSAGE_STATES } from '../agents/lifecycle.js';
import { type JobMessage, planMessage, readMessages } from '../agents/messages.js';
import { MAX_PROMPT_LENGTH } from '../agents/prompt.js';
import type { ProjectSettings } from '../config/schema.js';
import { ConfigurationError } from '../errors.js';
import type { Parts, WorkspaceView } from './parts.js';
import { submitWaiting } from './poll.js';

/** A job to change, with its messages and where it belongs. */
export interface JobToChange {
  readonly parts: Parts;
  readonly project: ProjectSettings;
  readonly job: Job;
  readonly jobs: readonly Job[];
  readonly messages: readonly JobMessage[];
}

/**
 * Finds a job, of all jobs in the database, and its project. Throws a `ConfigurationError` if there is none, or if its
 * project was removed.
 */
export function findJob(jobs: readonly Job[], { projects }: WorkspaceView, id: number) {
  const job = jobs.find((candidate) => candidate.id === id);
  if (job === undefined)
    throw new ConfigurationError(`There is no job ${id}. To list all jobs: readership jobs list`);
  const project = projects.find((candidate) => candidate.id === job.project);
  if (project === undefined)
    throw new ConfigurationError(
      `Job ${id} belongs to ${job.project}, which is not one of the configured projects. Add that to readership.yaml again to follow the job.`,
    );
  return { job, project };
}

export async function jobToChange(parts: Parts, id: number): Promise<JobToChange> {
  const jobs = await readJobs(parts.store, null);
  const { job, project } = findJob(jobs, parts.workspace, id);
  const messages = (await readMessages(parts.store, project.id)).filter(({ job }) => job === id);
  return { parts, project, job, jobs, messages };
}

/** Sends a follow-up message to a job. Returns the state it is in then, and why it was not sent. */
export async function sendMessage(
  { parts, project, job, messages }: JobToChange,
  text: string,
): Promise<{ readonly state: JobMessage['state']; readonly stopped?: unknown }> {
  const { store, effects, session } = parts;
  const refusal = await effects.journal.refusal();
  if (refusal !== undefined) throw refusal;
  if (text.trim() === '') throw new ConfigurationError('The message is empty.');
  if (text.length > MAX_PROMPT_LENGTH)
    throw new ConfigurationError(
      `The message has ${text.length} characters, more than ${MAX_PROMPT_LENGTH}. Shorten it.`,
    );
  if (!isRemoteJob(job))
    throw new ConfigurationError(
      `Job ${job.id} is ${job.state}, and its ID on the platform is not known. See readership jobs show ${job.id}; if you find it there: readership jobs settle ${job.id} --sent REMOTE_ID`,
    );
  const open = messages.find(({ state }) => OPEN_MESSAGE_STATES.has(state));
  // The same message again, after a failure that kept it, is not another one.
  const kept = open?.state === 'planned' && open.prompt === text ? open : undefined;
  if (open !== kept)
    throw new ConfigurationError(
      open?.state === 'planned'
        ? `Job ${job.id} has a message that was not sent yet. Send that first: readership jobs poll, or end it: readership jobs settle ${job.id} --ended`
        : `Job ${job.id} has a message that is ${open?.state ?? ''}. Settle that first: readership jobs settle ${job.id} --sent, or --not-sent`,
    );
  const message = { origin: 'typed', prompt: text, now: session.now() } as const;
  const id = kept?.id ?? (await planMessage(store, job, message));
  const { stopped } = await submitWaiting(parts, project, 'messages');
  const sent = (await readMessages(store, project.id)).find((one) => one.id === id);
  return { state: sent?.state ?? 'planned', stopped };
}
