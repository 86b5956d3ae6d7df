import { type Job, readJobs } from '../../agents/ledger.js';
import type { SubmitOutcome } from '../../agents/submit.js';
import { settleInterruptedJobs, submitJobs } from '../../agents/submit-jobs.js';
import { settleInterruptedMessages, submitMessages } from '../../agents/submit-messages.js';
import type { ProjectSettings } from '../../config/schema.js';
import type { StepContext } from '../context.js';

/**
 * Marks what a killed process left half sent, and returns the jobs concerned. Done before anything else is decided: of
 * such a prompt nobody knows whether it arrived.
 */
export async function settleInterrupted(
  { warehouse, now }: StepContext,
  { id }: ProjectSettings,
): Promise<Job[]> {
  const created = new Set((await settleInterruptedJobs(warehouse, id, now())).map((job) => job.id));
  const messages = await settleInterruptedMessages(warehouse, id, now());
  const messaged = new Set(messages.map(({ job }) => job));
  return (await readJobs(warehouse, id)).filter((job) => created.has(job.id) || messaged.has(job.id));
}

/**
 * Sends what waits its turn: messages, which somebody or a rule asked for, and before them the planned jobs when `what`
 * is `all`.
 */
export async function submitWaiting(
  context: StepContext,
  project: ProjectSettings,
  what: 'all' | 'messages',
): Promise<SubmitOutcome> {
  const { settings, warehouse, clientOf, now, signal, observer } = context;
  const task = {
    ...{ warehouse, now, signal, client: clientOf(project), project: project.id },
    pollDelayMs: settings.poll.minDelay,
    onJob: (job: Job) => observer.onJob?.(job),
  };
  const jobs = what === 'all' ? await submitJobs(task) : { submitted: [] };
  if (jobs.stopped !== undefined) return jobs;
  const messages = await submitMessages(task);
  return { ...messages, submitted: [...jobs.submitted, ...messages.submitted] };
}
