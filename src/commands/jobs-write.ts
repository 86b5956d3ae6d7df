import { isRemoteJob, type Job, readJobsOf } from '../agents/ledger.js';
import { OPEN_MESSAGE_STATES } from '../agents/lifecycle.js';
import { planMessage } from '../agents/messages.js';
import type { Runtime, WorkspaceOptions } from '../app/workspace.js';
import type { Day } from '../day.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { longDay } from '../format/days.js';
import { jobLine } from '../print/jobs.js';
import { findJob, type JobToChange, jobToChange, recordMerge, settleJob } from '../steps/settle.js';
import { submitWaiting } from '../steps/submit.js';
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
      `Give one answer: --created REMOTE_ID, --not-created or --gone for a job, --sent or --not-sent for its message. To find out: readership jobs show ${id}`,
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
  if (text.trim() === '') throw new ConfigurationError('The message is empty.');
  return changing('jobs message', id, options, runtime, async ({ context, project, job, messages }) => {
    const { maxPromptLength } = context.settings.improve;
    if (text.length > maxPromptLength)
      throw new ConfigurationError(
        `The message has ${text.length} characters, more than improve.maxPromptLength (${maxPromptLength}).`,
      );
    if (!isRemoteJob(job))
      throw new ConfigurationError(`Job ${id} is ${job.state}: the platform is not known to have it.`);
    const open = messages.find(({ state }) => OPEN_MESSAGE_STATES.has(state));
    if (open !== undefined)
      throw new ConfigurationError(
        `Job ${id} has a message that is ${open.state}. Settle that first: readership jobs show ${id}`,
      );
    await planMessage(context.warehouse, job, { origin: 'typed', prompt: text, now: context.now() });
    const { stopped } = await submitWaiting(context, project, 'messages');
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

/** Finds the job, does the work, and shows the job as it is then. */
const changing = (
  command: string,
  id: number,
  options: WorkspaceOptions,
  runtime: Runtime,
  work: (found: JobToChange) => Promise<void>,
): Promise<ExitCode> =>
  makeChange(command, options, runtime, async (context) => {
    // This job is shown once, at the end.
    const onJob = (job: Job) => {
      if (job.id !== id) context.observer.onJob?.(job);
    };
    await work(await jobToChange({ ...context, observer: { ...context.observer, onJob } }, id));
    runtime.output.data(jobLine(findJob(await readJobsOf(context.warehouse, context.projects), id)));
  });
