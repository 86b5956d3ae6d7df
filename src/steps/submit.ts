import type { Job } from '../agents/ledger.js';
import { submitJobs, type SubmitOutcome } from '../agents/submit.js';
import { submitMessages } from '../agents/submit.js';
import type { ProjectSettings } from '../config/schema.js';
import type { StepContext } from './context.js';

/**
 * Sends waiting prompts: messages, preceded by the planned jobs if `what` is `all`.
 */
export async function submitWaiting(
  context: StepContext,
  project: ProjectSettings,
  what: 'all' | 'messages',
): Promise<SubmitOutcome> {
  const { settings, warehouse, journal, clientOf, now, signal, observer } = context;
  const task = {
    ...{ warehouse, journal, now, signal, client: clientOf(project), project: project.id },
    pollDelayMs: settings.poll.minDelay,
    onJob: (job: Job) => observer.onJob?.(job),
  };
  const jobs = what === 'all' ? await submitJobs(task) : { submitted: [] };
  if (jobs.stopped !== undefined) return jobs;
  const messages = await submitMessages(task);
  return { ...messages, submitted: [...jobs.submitted, ...messages.submitted] };
}
