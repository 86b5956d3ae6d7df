import { addMilliseconds } from 'date-fns';
import { setTimeout as delay } from 'node:timers/promises';
import type { Job } from '../agents/ledger.js';
import { StepRunner, type StepFault } from '../schedule/step-runner.js';
import { pollStep } from '../schedule/steps/poll.js';
import { publishStep } from '../schedule/steps/publish.js';
import { type ExitCode, exitCodeOfFaults } from './exit-code.js';
import { jobLines } from './job-lines.js';
import type { Runtime } from './runtime.js';
import { reportFaults } from './step-faults.js';
import { withSteps } from './with-steps.js';
import type { WorkspaceOptions } from './workspace.js';

export type PollOptions = WorkspaceOptions & { readonly wait: number; readonly watch?: boolean };

interface Round {
  readonly ended: readonly Job[];
  readonly stillActive: readonly Job[];
  readonly faults: readonly StepFault[];
}

/** Between two rounds the database is let go of, so that watching for an hour keeps nobody else waiting. */
export async function pollNow(options: PollOptions, runtime: Runtime): Promise<ExitCode> {
  const { output, now, signal } = runtime;
  const deadline = options.watch === true ? undefined : addMilliseconds(now(), options.wait);
  const ended: Job[] = [];
  for (;;) {
    const round = await pollOnce(options, runtime);
    ended.push(...round.ended);
    const next = earliestPoll(round.stillActive);
    const isOver = next === undefined || (deadline !== undefined && next > deadline);
    const isHopeless = round.faults.some(({ outcome }) => outcome !== 'later');
    if (!isOver && !isHopeless && (await watched(round.stillActive, next, runtime))) continue;

    const jobs = [...ended, ...round.stillActive];
    output.data(jobs.length === 0 ? 'No active jobs.' : jobLines(jobs, output.width).join('\n'));
    if (!signal.aborted) reportFaults(round.faults, runtime);
    return exitCodeOfFaults(round.faults);
  }
}

const pollOnce = (options: PollOptions, runtime: Runtime): Promise<Round> =>
  withSteps('jobs poll', options, runtime, async (context) => {
    const runner = new StepRunner(context);
    const polled = await runner.step('poll', () => pollStep(context, { waitMs: 0 }));
    await runner.step('publish', () => publishStep(context, runner.changed));
    return { ended: polled?.ended ?? [], stillActive: polled?.stillActive ?? [], faults: runner.faults };
  });

function earliestPoll(jobs: readonly Job[]): Date | undefined {
  const times = jobs.flatMap(({ next_poll_at }) => next_poll_at?.getTime() ?? []);
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}

/** Shows the active jobs until `next`. False when interrupted. */
async function watched(
  active: readonly Job[],
  next: Date,
  { output, now, signal }: Runtime,
): Promise<boolean> {
  for (;;) {
    const leftMs = next.getTime() - now().getTime();
    if (signal.aborted || leftMs <= 0) break;
    const asked = `asking again in ${Math.ceil(leftMs / 1000)} s`;
    output.live([...jobLines(active, output.noteWidth), asked].join('\n'));
    await delay(Math.min(leftMs, 1000), undefined, { signal }).catch(() => undefined);
  }
  output.clearLive();
  return !signal.aborted;
}
