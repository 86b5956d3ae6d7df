import { askWhyNoChange } from '../../agents/ask-why.js';
import type { Job } from '../../agents/ledger.js';
import { pollJobs } from '../../agents/poll.js';
import type { ProjectSettings } from '../../config/schema.js';
import type { StepContext, StepResult } from '../context.js';
import { settleInterrupted, submitWaiting } from './submit.js';

/** Jobs that ended while they were polled, and those still going. */
export interface PolledJobs {
  readonly ended: readonly Job[];
  readonly stillActive: readonly Job[];
}

/**
 * Sends what waits its turn, and asks the platform for the active jobs that are due, for `waitMs` at most while any is
 * active. Planned jobs are among what is sent only in `mode: apply`.
 */
export async function pollStep(context: StepContext, waitMs: number): Promise<StepResult<PolledJobs>> {
  const ended: Job[] = [];
  const stillActive: Job[] = [];
  const faults: unknown[] = [];
  let changed = false;
  for (const project of context.projects) {
    if (context.signal.aborted) break;
    try {
      const polled = await pollProject(context, project, waitMs);
      ended.push(...polled.ended);
      stillActive.push(...polled.stillActive);
      faults.push(...polled.faults);
      changed ||= polled.changed;
    } catch (error) {
      faults.push(error);
    }
  }
  const summary = `${ended.length} jobs ended, ${stillActive.length} still active`;
  const result = { detail: { ended, stillActive }, summary, changed };
  return faults.length === 0 ? result : { ...result, fault: faults[0] };
}

async function pollProject(
  context: StepContext,
  project: ProjectSettings,
  waitMs: number,
): Promise<PolledJobs & { faults: unknown[]; changed: boolean }> {
  const { settings, warehouse, workspaceDir, now, signal, observer } = context;
  const { mode, askWhenNoChange, maxPromptLength } = settings.improve;
  const interrupted = await settleInterrupted(context, project);
  const before = await submitWaiting(context, project, mode === 'apply' ? 'all' : 'messages');
  const { ended, stillActive, faults } = await pollJobs({
    ...{ warehouse, now, signal, waitMs, client: context.clientOf(project), project: project.id },
    minDelayMs: settings.poll.minDelay,
    maxDelayMs: settings.poll.maxDelay,
    onChange: (job) => observer.onJob?.(job),
  });
  if (askWhenNoChange)
    await askWhyNoChange(warehouse, project.id, { now: now(), workspaceDir, maxPromptLength });
  const after = await submitWaiting(context, project, 'messages');
  const stops = [before.stopped, after.stopped].filter((stopped) => stopped !== undefined);
  const sent = before.submitted.length + after.submitted.length;
  return {
    ...{ ended, stillActive, faults: [...stops, ...faults] },
    changed: interrupted.length + sent + ended.length + stillActive.length > 0,
  };
}
