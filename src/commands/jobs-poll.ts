import { setTimeout as delay } from 'node:timers/promises';
import type { Runtime, WorkspaceOptions } from '../app/workspace.js';
import type { ExitCode } from '../errors.js';
import { jobLines } from '../print/jobs.js';
import type { Job } from '../state/jobs.js';
import { pollStep } from '../steps/poll.js';
import { conclude, runSteps } from './steps.js';

interface PollOptions extends WorkspaceOptions {
  /** How long to keep polling, in milliseconds; by default, each due job is polled once. */
  readonly wait?: number;
  /** Whether to keep polling until every job has ended. */
  readonly watch?: boolean;
  readonly json?: boolean;
}

/** Sends the waiting prompts and polls the jobs that are due, for as long as requested. */
export async function pollAll(
  { wait = 0, watch, ...options }: PollOptions,
  runtime: Runtime,
): Promise<ExitCode> {
  const { output, signal } = runtime;
  // Neither a wrong clock nor one that is set in the meantime changes how long this takes.
  const deadlineMs = watch === true ? Infinity : performance.now() + wait;
  const ended: Job[] = [];
  // Each round releases the lock, so that watching does not block other commands.
  for (;;) {
    const { result, outages } = await runSteps('jobs poll', options, runtime, (runner, parts) =>
      runner.step('poll', () => pollStep(parts, wait === 0 ? {} : { deadlineMs })),
    );
    const { stillActive = [], pollsInMs } = result ?? {};
    ended.push(...(result?.ended ?? []));
    // A job that was due when the time was up is still due.
    const nextMs = performance.now() + Math.max(0, pollsInMs ?? Infinity);
    const isOver = nextMs === Infinity || nextMs > deadlineMs;
    const isHopeless = outages.some(({ outcome }) => outcome !== 'later');
    if (!isOver && !isHopeless) {
      const next = `polling again in ${Math.ceil((pollsInMs ?? 0) / 1000)} s`;
      output.live([...(await jobLines(stillActive, output.noteWidth)), next].join('\n'));
      const isTime = await delay(nextMs - performance.now(), true, { signal }).catch(() => false);
      output.clearLive();
      if (isTime) continue;
    }
    const jobs = [...ended, ...stillActive];
    output.data(jobs.length === 0 ? 'No active jobs.' : (await jobLines(jobs, output.width)).join('\n'));
    return signal.aborted ? 0 : conclude(outages, runtime);
  }
}
