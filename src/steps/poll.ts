import type { Job } from '../agents/ledger.js';
import { pollJobs } from '../agents/poll.js';
import { noticeMerges } from '../agents/pull-requests.js';
import type { ProjectSettings } from '../config/schema.js';
import { counted } from '../format/numbers.js';
import { eachProject, type StepContext, type StepResult, withOutage } from './step.js';
import { submitWaiting } from './improve.js';

interface PollOptions {
  /** How long to keep polling while jobs are active. */
  readonly waitMs: number;
  /** Projects whose prompts are not sent, because sending already failed in this run. */
  readonly heldBack?: readonly ProjectSettings[] | undefined;
}

/**
 * Sends the waiting prompts, and polls the active jobs that are due. Planned jobs are sent only in
 * `mode: apply`. Returns the jobs that ended while they were polled, and those still active.
 */
export async function pollStep(
  context: StepContext,
  options: PollOptions,
): Promise<StepResult<{ readonly ended: readonly Job[]; readonly stillActive: readonly Job[] }>> {
  const { results, errors } = await eachProject(context, (project) => pollProject(context, project, options));
  const ended = results.flatMap((polled) => polled.ended);
  const stillActive = results.flatMap((polled) => polled.stillActive);
  const reviewed = results.flatMap((polled) => polled.reviewed).length;
  const reviews = reviewed === 0 ? '' : `, ${counted(reviewed, 'pull request')} merged or closed`;
  const summary = `${ended.length} jobs ended, ${stillActive.length} still active${reviews}`;
  const all = [...errors, ...results.flatMap((polled) => polled.errors)];
  return withOutage({ detail: { ended, stillActive }, summary }, all);
}

async function pollProject(
  context: StepContext,
  project: ProjectSettings,
  { waitMs, heldBack = [] }: PollOptions,
) {
  const { settings, warehouse, clientOf, codeHost, now, signal, observer } = context;
  const { mode } = settings.improve;
  const stopped = heldBack.includes(project)
    ? undefined
    : (await submitWaiting(context, project, mode === 'apply' ? 'all' : 'messages')).stopped;
  const task = { warehouse, project: project.id, now, signal };
  const polled = await pollJobs({
    ...{ ...task, waitMs, client: clientOf(project) },
    minDelayMs: settings.poll.minDelay,
    maxDelayMs: settings.poll.maxDelay,
    onChange: (job) => observer.onJob?.(job),
  });
  const reviewed = codeHost === undefined ? [] : await noticeMerges({ ...task, codeHost });
  for (const job of reviewed) observer.onJob?.(job);
  return { ...polled, reviewed, errors: [...(stopped === undefined ? [] : [stopped]), ...polled.errors] };
}
