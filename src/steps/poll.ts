import type { Job } from '../agents/ledger.js';
import { pollJobs } from '../agents/poll.js';
import type { ProjectSettings } from '../config/schema.js';
import type { StepContext, StepResult } from './context.js';
import { withFaults } from './runner.js';
import { submitWaiting } from './submit.js';

/** Jobs that ended while they were polled, and those still going. */
export interface PolledJobs {
  readonly ended: readonly Job[];
  readonly stillActive: readonly Job[];
}

interface PollOptions {
  /** How long to keep asking while jobs are active. */
  readonly waitMs: number;
  /** Projects that nothing is sent for, since sending failed in this run already. */
  readonly heldBack?: readonly ProjectSettings[];
}

/**
 * Sends what waits its turn, and asks the platform for the active jobs that are due. Planned jobs are among what is sent
 * only in `mode: apply`.
 */
export async function pollStep(context: StepContext, options: PollOptions): Promise<StepResult<PolledJobs>> {
  const ended: Job[] = [];
  const stillActive: Job[] = [];
  const faults: unknown[] = [];
  let changed = false;
  for (const project of context.projects) {
    if (context.signal.aborted) break;
    try {
      const polled = await pollProject(context, project, options);
      ended.push(...polled.ended);
      stillActive.push(...polled.stillActive);
      faults.push(...polled.faults);
      changed ||= polled.changed;
    } catch (error) {
      faults.push(error);
      // It may have stored something before.
      changed = true;
    }
  }
  const summary = `${ended.length} jobs ended, ${stillActive.length} still active`;
  return withFaults({ detail: { ended, stillActive }, summary, changed }, faults);
}

async function pollProject(
  context: StepContext,
  project: ProjectSettings,
  { waitMs, heldBack = [] }: PollOptions,
): Promise<PolledJobs & { faults: unknown[]; changed: boolean }> {
  const { settings, warehouse, now, signal, observer } = context;
  const stops: unknown[] = [];
  let sent = 0;
  // After a failure nothing more is sent: what befell one prompt is likely to befall the next.
  const send = async (what: 'all' | 'messages') => {
    if (heldBack.includes(project) || stops.length > 0) return;
    const { submitted, stopped } = await submitWaiting(context, project, what);
    sent += submitted.length;
    if (stopped !== undefined) stops.push(stopped);
  };
  await send(settings.improve.mode === 'apply' ? 'all' : 'messages');
  const { ended, stillActive, faults } = await pollJobs({
    ...{ warehouse, now, signal, waitMs, client: context.clientOf(project), project: project.id },
    minDelayMs: settings.poll.minDelay,
    maxDelayMs: settings.poll.maxDelay,
    onChange: (job) => observer.onJob?.(job),
  });
  return {
    ...{ ended, stillActive, faults: [...stops, ...faults] },
    changed: sent + ended.length + stillActive.length > 0,
  };
}
