import { setTimeout as delay } from 'node:timers/promises';
import { withParts } from '../app/open.js';
import { readWorkspace, type Runtime, type Workspace, type WorkspaceOptions } from '../app/workspace.js';
import { type ExitCode, messageOf } from '../errors.js';
import { jobLine, jobLines } from '../print/jobs.js';
import { ExportProgress } from '../print/progress.js';
import type { Job } from '../state/jobs.js';
import { doAndStore } from '../steps/history.js';
import { findJob, sendMessage } from '../steps/job-messages.js';
import { pollStep } from '../steps/poll.js';
import { conclude, runSteps } from './steps.js';

// Loaded only by the commands that ask the platform about jobs: listing them needs none of it.

/** Sends a planned message. Throws a `LockedError` at once if another process works. */
export async function sendNow(
  workspace: Workspace,
  runtime: Runtime,
  { job: id, message }: { readonly job: number; readonly message: number },
): Promise<ExitCode> {
  const { output } = runtime;
  const progress = new ExportProgress(output).listener;
  // This job is shown only once, at the end.
  const onJob = (job: Job): void => {
    if (job.id !== id) progress.onJob?.(job);
  };
  output.goesOnUnread = true;
  const hold = { command: 'jobs message', listener: { ...progress, onJob }, maxWaitMs: 0 };
  return withParts(workspace, runtime, hold, async (parts) => {
    const { outages } = await doAndStore(parts, async () => {
      const { project } = findJob(parts.state, workspace, id);
      const { state, stopped } = await sendMessage(parts, project, message);
      const settle = `readership jobs settle ${id}`;
      if (state === 'unknown') output.note(`If the message arrived: ${settle} --sent; if not: --not-sent`);
      if (state === 'planned') output.note(`The next run sends it. To prevent that: ${settle} --ended`);
      if (stopped !== undefined) throw stopped instanceof Error ? stopped : new Error(messageOf(stopped));
      output.note(`The message was sent to job ${id}.`);
      output.data(jobLine(findJob(parts.state, workspace, id).job));
    });
    return conclude(outages, runtime);
  });
}

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
  const workspace = await readWorkspace(options, runtime);
  // Neither a wrong clock nor one that is set in the meantime changes how long this takes.
  const deadlineMs = watch === true ? Infinity : performance.now() + wait;
  const ended: Job[] = [];
  // Each round releases the lock, so that watching does not block other commands.
  for (;;) {
    const { result, outages } = await runSteps('jobs poll', workspace, options, runtime, (runner, parts) =>
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
