import { type Job, readJobsOf } from '../agents/ledger.js';
import type { Runtime, WorkspaceOptions } from '../app/workspace.js';
import type { Day } from '../day.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { longDay } from '../format/days.js';
import { jobLine } from '../print/jobs.js';
import {
  findJob,
  type JobToChange,
  jobToChange,
  recordMerge,
  sendMessage,
  settleJob,
} from '../steps/settle.js';
import { makeChange } from './steps.js';

export interface ResolveOptions extends WorkspaceOptions {
  readonly created?: string;
  readonly notCreated?: boolean;
  readonly sent?: boolean;
  readonly notSent?: boolean;
  readonly gone?: boolean;
}

export function resolveJob(id: number, options: ResolveOptions, runtime: Runtime): Promise<ExitCode> {
  const { created, notCreated, sent, notSent, gone } = options;
  const given = [created, notCreated, sent, notSent, gone].filter((option) => option !== undefined);
  if (given.length !== 1)
    throw new ConfigurationError(
      `Give one of --created REMOTE_ID, --not-created or --gone for a job, --sent or --not-sent for its message. To find out which: readership jobs show ${id}`,
    );
  return changing('jobs resolve', id, options, runtime, async (found) => {
    if (created !== undefined) await settleJob(found, { created });
    else if (notCreated === true) await settleJob(found, 'not-created');
    else if (gone === true) await settleJob(found, 'gone');
    else await settleJob(found, sent === true ? 'sent' : 'not-sent');
  });
}

export function messageJob(
  id: number,
  text: string,
  options: WorkspaceOptions,
  runtime: Runtime,
): Promise<ExitCode> {
  return changing('jobs message', id, options, runtime, async (found) => {
    const { stopped } = await sendMessage(found, text);
    if (stopped !== undefined) throw errorOf(stopped);
    runtime.output.note(`The message was sent to job ${id}.`);
  });
}

const errorOf = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

export function markJobMerged(
  id: number,
  day: Day | undefined,
  options: WorkspaceOptions,
  runtime: Runtime,
): Promise<ExitCode> {
  return changing('jobs merged', id, options, runtime, async (found) => {
    const mergedOn = await recordMerge(found, day);
    runtime.output.note(`Merged on ${longDay(mergedOn)}: its effect is measured from then.`);
  });
}

/** Finds the job, does the work, and shows the updated job. */
const changing = (
  command: string,
  id: number,
  options: WorkspaceOptions,
  runtime: Runtime,
  work: (found: JobToChange) => Promise<void>,
): Promise<ExitCode> =>
  makeChange(command, options, runtime, async (context) => {
    // This job is shown only once, at the end.
    const onJob = (job: Job) => {
      if (job.id !== id) context.observer.onJob?.(job);
    };
    await work(await jobToChange({ ...context, observer: { ...context.observer, onJob } }, id));
    runtime.output.data(jobLine(findJob(await readJobsOf(context.warehouse, context.projects), id)));
  });
