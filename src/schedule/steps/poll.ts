import type { Job } from '../../agents/ledger.js';
import { pollJobs } from '../../agents/poll.js';
import type { StepContext, StepResult } from '../context.js';

/** Jobs that ended while they were polled, and those still going. */
export interface PolledJobs {
  readonly ended: readonly Job[];
  readonly stillActive: readonly Job[];
}

/** Asks the platform for the active jobs that are due, for `waitMs` at most while any is active. */
export async function pollStep(context: StepContext, waitMs: number): Promise<StepResult<PolledJobs>> {
  const { settings, projects, warehouse, clientOf, now, signal, observer } = context;
  const ended: Job[] = [];
  const stillActive: Job[] = [];
  const faults: unknown[] = [];
  for (const project of projects) {
    if (signal.aborted) break;
    const outcome = await pollJobs({
      ...{ warehouse, now, signal, waitMs, client: clientOf(project), project: project.id },
      minDelayMs: settings.poll.minDelay,
      maxDelayMs: settings.poll.maxDelay,
      onChange: (job) => observer.onJob?.(job),
    });
    ended.push(...outcome.ended);
    stillActive.push(...outcome.stillActive);
    faults.push(...outcome.faults);
  }
  const summary = `${ended.length} jobs ended, ${stillActive.length} still active`;
  const result = { detail: { ended, stillActive }, summary, changed: ended.length + stillActive.length > 0 };
  return faults.length === 0 ? result : { ...result, fault: faults[0] };
}
