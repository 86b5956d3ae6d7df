import type { Job } from '../agents/ledger.js';
import { pollJobs } from '../agents/poll.js';
import { noticeMerges } from '../agents/pull-requests.js';
import type { ProjectSettings } from '../config/schema.js';
import { counted } from '../format/numbers.js';
import type { StepContext, StepResult } from './context.js';
import { eachProject, withOutage } from './runner.js';
import { submitWaiting } from './submit.js';

/** Jobs that ended while they were polled, and those still active. */
export interface PolledJobs {
  readonly ended: readonly Job[];
  readonly stillActive: readonly Job[];
}

interface PollOptions {
  /** How long to keep asking while jobs are active. */
  readonly waitMs: number;
  /** Projects that nothing is sent for, since sending already failed in this run. */
  readonly heldBack?: readonly ProjectSettings[];
}

/**
 * Sends the prompts that wait, and asks the platform for the active jobs that are due. Planned jobs are sent only in
 * `mode: apply`.
 */
export async function pollStep(
  context: StepContext,
  { waitMs, heldBack = [] }: PollOptions,
): Promise<StepResult<PolledJobs>> {
  const { results, errors } = await eachProject(context, (project) =>
    pollProject(context, project, waitMs, heldBack.includes(project)),
  );
  const ended = results.flatMap((polled) => polled.ended);
  const stillActive = results.flatMap((polled) => polled.stillActive);
  const reviewed = results.flatMap((polled) => polled.reviewed);
  const reviews =
    reviewed.length === 0 ? '' : `, ${counted(reviewed.length, 'pull request')} merged or closed`;
  const summary = `${ended.length} jobs ended, ${stillActive.length} still active${reviews}`;
  return withOutage({ detail: { ended, stillActive }, summary }, [
    ...errors,
    ...results.flatMap((polled) => polled.errors),
  ]);
}

async function pollProject(
  context: StepContext,
  project: ProjectSettings,
  waitMs: number,
  isHeldBack: boolean,
): Promise<PolledJobs & { reviewed: readonly Job[]; errors: unknown[] }> {
  const { settings, warehouse, clientOf, codeHost, now, signal, observer } = context;
  const what = settings.improve.mode === 'apply' ? 'all' : 'messages';
  const sent = isHeldBack ? undefined : await submitWaiting(context, project, what);
  const polled = await pollJobs({
    ...{ warehouse, now, signal, waitMs, client: clientOf(project), project: project.id },
    minDelayMs: settings.poll.minDelay,
    maxDelayMs: settings.poll.maxDelay,
    onChange: (job) => observer.onJob?.(job),
  });
  const reviewed =
    codeHost === undefined
      ? []
      : await noticeMerges({ warehouse, codeHost, now, signal, project: project.id });
  for (const job of reviewed) observer.onJob?.(job);
  return {
    ...polled,
    reviewed,
    errors: [...[sent?.stopped ?? []].flat(), ...polled.errors],
  };
}
