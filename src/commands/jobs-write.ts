import { entryAbout, sentAs } from '../agents/journal.js';
import {
  changeJob,
  isRemoteJob,
  type Job,
  markMerged,
  readJobsOf,
  type RemoteJob,
} from '../agents/ledger.js';
import { OPEN_MESSAGE_STATES } from '../agents/lifecycle.js';
import { changeMessageWithin, type Message, planMessage, readMessages } from '../agents/messages.js';
import { settleAsSent } from '../agents/submit-messages.js';
import type { Client } from '../api/client.js';
import { RefusedError } from '../api/errors.js';
import type { ProjectSettings } from '../config/schema.js';
import { type Day, dayOf } from '../day.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { longDay } from '../format/days.js';
import type { StepContext } from '../steps/context.js';
import { submitWaiting } from '../steps/submit.js';
import { findJob } from './jobs-read.js';
import { jobLine } from '../print/jobs.js';
import { makeChange } from './steps.js';
import type { Runtime, WorkspaceOptions } from '../app/workspace.js';

export interface ResolveOptions extends WorkspaceOptions {
  readonly created?: string;
  readonly notCreated?: boolean;
  readonly sent?: boolean;
  readonly notSent?: boolean;
  readonly gone?: boolean;
}

/** The journal's note about an answer by a person. */
const RESOLVED = 'settled by a person';

/** A job to change, with its messages and where it belongs. */
interface JobToChange {
  readonly context: StepContext;
  readonly project: ProjectSettings;
  readonly job: Job;
  readonly jobs: readonly Job[];
  readonly messages: readonly Message[];
}

export function resolveJob(id: number, options: ResolveOptions, runtime: Runtime): Promise<ExitCode> {
  const { created, notCreated, sent, notSent, gone } = options;
  const given = [created, notCreated, sent, notSent, gone].filter((option) => option !== undefined);
  if (given.length !== 1)
    throw new ConfigurationError(
      `Give one answer: --created REMOTE_ID, --not-created or --gone for a job, --sent or --not-sent for its message. To find out: readership jobs show ${id}`,
    );
  return changing('jobs resolve', id, options, runtime, async (found) => {
    if (created !== undefined) await resolveAsCreated(found, created);
    else if (notCreated === true) await resolveAsNotCreated(found);
    else if (gone === true) await resolveAsGone(found);
    else await resolveMessage(found, sent === true);
  });
}

/** Looks the id up first: a mistyped one would be polled forever, or belong to another page. */
async function resolveAsCreated(
  { context, project, job, jobs }: JobToChange,
  remoteId: string,
): Promise<void> {
  expectUnconfirmed(job);
  const other = jobs.find(({ remote_id }) => remote_id === remoteId);
  if (other !== undefined)
    throw new ConfigurationError(`${remoteId} is already job ${other.id} here. Nothing was changed.`);
  const remote = await context.clientOf(project).job(remoteId, context.signal);
  const now = context.now();
  await context.journal.append([entryAbout(job, { ...sentAs(remote), note: RESOLVED }, now)]);
  await changeJob(context.warehouse, job, {
    event: { kind: 'found-created' },
    ...{ now, remote, nextPollAt: now, cause: `resolved: created as ${remoteId}` },
  });
}

async function resolveAsNotCreated({ context, job }: JobToChange): Promise<void> {
  expectUnconfirmed(job);
  const event = { kind: 'found-not-created' } as const;
  const now = context.now();
  await context.journal.append([entryAbout(job, { event: 'not-sent', note: RESOLVED }, now)]);
  await changeJob(context.warehouse, job, { event, now, cause: 'resolved: not created' });
}

/** Asks the platform first: a mistyped number would end a job that an agent is working on. */
async function resolveAsGone({ context, project, job }: JobToChange): Promise<void> {
  if (!isRemoteJob(job) || job.state !== 'active')
    throw new ConfigurationError(`Job ${job.id} is ${job.state}: only an active job can be ended as gone.`);
  if (await isKnown(context.clientOf(project), job, context.signal))
    throw new ConfigurationError(`The platform still knows job ${job.id}. Nothing was changed.`);
  const now = context.now();
  const note = `the platform no longer has it; ended by hand on ${longDay(dayOf(now))}`;
  const cause = 'resolved: gone from the platform';
  await changeJob(context.warehouse, job, { event: { kind: 'found-gone' }, now, cause, note });
}

/** Whether the platform answers with the job; false when it refuses to. */
async function isKnown(client: Pick<Client, 'job'>, job: RemoteJob, signal: AbortSignal): Promise<boolean> {
  try {
    await client.job(job.remote_id, signal);
    return true;
  } catch (error) {
    if (error instanceof RefusedError) return false;
    throw error;
  }
}

function expectUnconfirmed({ id, state }: Job): void {
  if (state !== 'unconfirmed')
    throw new ConfigurationError(`Job ${id} is ${state}: only an unconfirmed job needs resolving.`);
}

async function resolveMessage({ context, job, messages }: JobToChange, wasSent: boolean): Promise<void> {
  const message = messages.find(({ state }) => state === 'unconfirmed');
  if (message === undefined)
    throw new ConfigurationError(`Job ${job.id} has no unconfirmed message: nothing needs resolving.`);
  const now = context.now();
  const outcome = { event: wasSent ? 'sent' : 'not-sent', note: RESOLVED } as const;
  await context.journal.append([entryAbout(message, outcome, now)]);
  if (wasSent) {
    const change = { event: 'found-sent', now, cause: 'resolved: sent', nextPollAt: now } as const;
    await settleAsSent(context.warehouse, message, job, change);
  } else {
    const change = { event: 'found-not-sent', now, cause: 'resolved: not sent' } as const;
    await context.warehouse.transaction((transaction) => changeMessageWithin(transaction, message, change));
  }
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
  return changing('jobs merged', id, options, runtime, async ({ context, job }) => {
    const today = dayOf(context.now());
    const mergedOn = day ?? today;
    if (job.pr_link === null)
      throw new ConfigurationError(`Job ${id} is ${job.state} and has no pull request.`);
    if (mergedOn > today || mergedOn < dayOf(job.planned_at))
      throw new ConfigurationError(
        `Job ${id} cannot have been merged on ${mergedOn}: it was planned on ${dayOf(job.planned_at)}, and today is ${today} (UTC).`,
      );
    await markMerged(context.warehouse, job, mergedOn);
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
    const jobs = await readJobsOf(context.warehouse, context.projects);
    const job = findJob(jobs, id);
    const project = context.projects.find((candidate) => candidate.id === job.project);
    if (project === undefined) throw new Error(`job ${id} belongs to no project`);
    const messages = (await readMessages(context.warehouse, project.id)).filter(({ job }) => job === id);
    await work({ context, project, job, jobs, messages });
    runtime.output.data(jobLine(findJob(await readJobsOf(context.warehouse, context.projects), id)));
  });
