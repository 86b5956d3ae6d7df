import { isRemoteJob, jobStateWords, planMessage } from '../agents/jobs.js';
import { OPEN_MESSAGE_STATES } from '../agents/lifecycle.js';
import { MAX_PROMPT_LENGTH } from '../agents/prompt.js';
import type { ProjectSettings } from '../config/schema.js';
import { ConfigurationError } from '../errors.js';
import { type Job, readJob } from '../state/jobs.js';
import { type JobMessage, readMessages, readMessagesTo } from '../state/messages.js';
import type { State } from '../state/state.js';
import type { Parts, WorkspaceView } from './step.js';
import { submitWaiting } from './poll.js';

/** A job with its messages, and the project that it belongs to. */
interface FoundJob {
  readonly project: ProjectSettings;
  readonly job: Job;
  readonly messages: readonly JobMessage[];
}

/** Finds a job. Throws a `ConfigurationError` if there is none, or if its project was removed. */
export function findJob(state: State, { projects }: Pick<WorkspaceView, 'projects'>, id: number): FoundJob {
  const job = readJob(state, id);
  if (job === undefined)
    throw new ConfigurationError(`There is no job ${id}. To list all jobs: readership jobs list`);
  const project = projects.find((candidate) => candidate.id === job.project);
  if (project === undefined)
    throw new ConfigurationError(
      `Job ${id} belongs to ${job.project}, which is not one of the configured projects. Add that to readership.yaml again to follow the job.`,
    );
  return { project, job, messages: readMessagesTo(state, id) };
}

/** A follow-up message to a job. */
interface MessageText {
  readonly job: number;
  readonly text: string;
  readonly now: Date;
  /** The form that asks for it, in the web app: submitted again, it asks for the same message. */
  readonly form?: string;
}

/**
 * Plans a follow-up message, which is sent by whoever sends next. Returns its number: that of one with the same text that
 * waits already, if there is one. Throws a `ConfigurationError` if the job cannot get it.
 */
export const addMessageTo = (
  state: State,
  workspace: Pick<WorkspaceView, 'projects'>,
  { job: id, text, now, form }: MessageText,
): Promise<number> =>
  state.transaction(() => {
    const { job, messages } = findJob(state, workspace, id);
    if (text.trim() === '') throw new ConfigurationError('The message is empty.');
    if (text.length > MAX_PROMPT_LENGTH)
      throw new ConfigurationError(
        `The message has ${text.length} characters, more than ${MAX_PROMPT_LENGTH}. Shorten it.`,
      );
    if (!isRemoteJob(job))
      throw new ConfigurationError(
        `Job ${job.id} ${jobStateWords(job)}, and its ID on the platform is not known. See readership jobs show ${job.id}; if you find it there: readership jobs settle ${job.id} --sent REMOTE_ID`,
      );
    const open = messages.find((message) => OPEN_MESSAGE_STATES.has(message.state));
    // The same message again, after a failure that kept it, is not another one.
    if (open?.state === 'planned' && open.prompt === text) return open.id;
    if (open !== undefined)
      throw new ConfigurationError(
        open.state === 'planned'
          ? `Job ${job.id} has a message that was not sent yet. Send that first: readership jobs poll, or end it: readership jobs settle ${job.id} --ended`
          : `Job ${job.id} has a message that ${open.state === 'sending' ? 'is being sent' : 'may or may not have arrived'}. Record its outcome first: readership jobs settle ${job.id} --sent, or --not-sent`,
      );
    return planMessage(state, job, { origin: 'typed', prompt: text, now, form });
  });

/** Sends what waits for a project. Returns the state of a message of it then, and why that was not sent. */
export async function sendMessage(
  parts: Parts,
  project: ProjectSettings,
  id: number,
): Promise<{ readonly state: JobMessage['state']; readonly stopped?: unknown }> {
  const { stopped } = await submitWaiting(parts, project);
  const sent = readMessages(parts.state, project.id).find((message) => message.id === id);
  return { state: sent?.state ?? 'planned', stopped };
}
