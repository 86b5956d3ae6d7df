import { changeJob, isRemoteJob, type Job, readJobs } from '../agents/ledger.js';
import { settlePrompt } from '../agents/intents.js';
import { OPEN_MESSAGE_STATES } from '../agents/lifecycle.js';
import { markClosed, markMerged } from '../agents/merges.js';
import { lostMessage, type Message, planMessage, readMessages } from '../agents/messages.js';
import { isGone, UnknownJobError } from '../agents/poll.js';
import type { ProjectSettings } from '../config/schema.js';
import { type Day, dayOf } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { longDay } from '../format/days.js';
import { submitWaiting } from './poll.js';
import type { StepContext, WorkspaceView } from './step.js';

/** A job to change, with its messages and where it belongs. */
export interface JobToChange {
  readonly context: StepContext;
  readonly project: ProjectSettings;
  readonly job: Job;
  readonly jobs: readonly Job[];
  readonly messages: readonly Message[];
}

/**
 * Finds a job, of all jobs in the database, and its project. Throws a `ConfigurationError` if there is none, or if its
 * project was removed.
 */
export function findJob(jobs: readonly Job[], { projects }: WorkspaceView, id: number) {
  const job = jobs.find((candidate) => candidate.id === id);
  if (job === undefined)
    throw new ConfigurationError(`There is no job ${id}. To list all jobs: readership jobs list`);
  const project = projects.find((candidate) => candidate.id === job.project);
  if (project === undefined)
    throw new ConfigurationError(
      `Job ${id} belongs to ${job.project}, which is not one of the configured projects. Add that to readership.yaml again to follow the job.`,
    );
  return { job, project };
}

export async function jobToChange(context: StepContext, id: number): Promise<JobToChange> {
  const jobs = await readJobs(context.warehouse, null);
  const { job, project } = findJob(jobs, context, id);
  const messages = (await readMessages(context.warehouse, project.id)).filter(({ job }) => job === id);
  return { context, project, job, jobs, messages };
}

/** What else a person may have found out about a job or message, or decided. */
export const FINDINGS = ['notCreated', 'sent', 'notSent', 'gone', 'ended', 'withdrawn'] as const;
/** A finding; of a job that exists on the platform, its id there. */
type Finding = { readonly created: string } | (typeof FINDINGS)[number];

/** Records what a person found out or decided. Throws a `ConfigurationError` if there is nothing to settle. */
export async function settleJob(found: JobToChange, finding: Finding): Promise<void> {
  if (finding === 'gone' || finding === 'ended') await endJob(found, finding);
  else if (finding === 'withdrawn') await withdraw(found);
  else if (finding === 'sent' || finding === 'notSent') await resolveMessage(found, finding);
  else await resolveJob(found, finding === 'notCreated' ? undefined : finding.created);
}

/**
 * Records when the pull request of a job was merged, or closed without being merged: today, unless
 * another day is given. Some platforms commit the work of a job without a pull request. Returns the day.
 */
export async function recordReview(
  { context, job }: JobToChange,
  outcome: 'merged' | 'closed',
  day: Day | undefined,
): Promise<Day> {
  const { id } = job;
  const today = dayOf(context.now());
  const reviewedOn = day ?? today;
  const isReviewable = job.pr_link !== null || (outcome === 'merged' && job.state === 'completed');
  if (!isReviewable) throw new ConfigurationError(`Job ${id} is ${job.state} and has no pull request.`);
  if (outcome === 'closed' && job.merged_on !== null)
    throw new ConfigurationError(`The pull request of job ${id} was merged on ${longDay(job.merged_on)}.`);
  if (reviewedOn > today || reviewedOn < dayOf(job.planned_at))
    throw new ConfigurationError(
      `Job ${id} cannot have been ${outcome} on ${reviewedOn}: it was planned on ${dayOf(job.planned_at)}, and today is ${today} (UTC).`,
    );
  if (outcome === 'merged') await markMerged(context.warehouse, job, reviewedOn);
  else await markClosed(context, job, reviewedOn);
  return reviewedOn;
}

/** Takes back that a job was merged. Throws a `ConfigurationError` if that is not recorded. */
export async function undoMerge({ context, job }: JobToChange): Promise<void> {
  if (job.merged_on === null) throw new ConfigurationError(`No merge of job ${job.id} is recorded.`);
  await markMerged(context.warehouse, job, null);
}

/** Sends a follow-up message to a job. Returns the state it is in then, and why it was not sent. */
export async function sendMessage(
  { context, project, job, messages }: JobToChange,
  text: string,
): Promise<{ readonly state: Message['state']; readonly stopped?: unknown }> {
  const refusal = await context.journal.refusal();
  if (refusal !== undefined) throw refusal;
  const { maxPromptLength } = context.settings.improve;
  if (text.trim() === '') throw new ConfigurationError('The message is empty.');
  if (text.length > maxPromptLength)
    throw new ConfigurationError(
      `The message has ${text.length} characters, more than improve.maxPromptLength (${maxPromptLength}).`,
    );
  if (!isRemoteJob(job))
    throw new ConfigurationError(
      `Job ${job.id} is ${job.state}, and its ID on the platform is not known. See readership jobs show ${job.id}; if you find it there: readership jobs resolve ${job.id} --created REMOTE_ID`,
    );
  const open = messages.find(({ state }) => OPEN_MESSAGE_STATES.has(state));
  // The same message again, after a failure that kept it, is not another one.
  const kept = open?.state === 'planned' && open.prompt === text ? open : undefined;
  if (open !== kept)
    throw new ConfigurationError(
      open?.state === 'planned'
        ? `Job ${job.id} has a message that was not sent yet. Send that first: readership jobs poll, or withdraw it: readership jobs resolve ${job.id} --withdrawn`
        : `Job ${job.id} has a message that is ${open?.state ?? ''}. Settle that first: readership jobs resolve ${job.id} --sent, or --not-sent`,
    );
  const message = { origin: 'typed', prompt: text, now: context.now() } as const;
  const id = kept?.id ?? (await planMessage(context.warehouse, job, message));
  const { stopped } = await submitWaiting(context, project, 'messages');
  const sent = (await readMessages(context.warehouse, project.id)).find((one) => one.id === id);
  return { state: sent?.state ?? 'planned', stopped };
}

/**
 * Checks the id on the platform first, because a mistyped one would be polled forever or belong to
 * another page.
 */
async function resolveJob(
  { context, project, job, jobs }: JobToChange,
  remoteId: string | undefined,
): Promise<void> {
  const isWithoutId = job.state === 'completed' && job.remote_id === null;
  if (job.state !== 'unconfirmed' && !(isWithoutId && remoteId !== undefined))
    throw new ConfigurationError(`Job ${job.id} is ${job.state}: only an unconfirmed job needs resolving.`);
  const other = jobs.find(({ remote_id }) => remoteId !== undefined && remote_id === remoteId);
  if (other !== undefined)
    throw new ConfigurationError(`${remoteId} is already recorded as job ${other.id}. Nothing was changed.`);
  const known = remoteId === undefined ? undefined : context.clientOf(project).job(remoteId, context.signal);
  const remote = await known?.catch((error: unknown) => {
    if (!isGone(error)) throw error;
    const next = `If it was deleted there, run readership jobs resolve ${job.id} --not-created, and then --withdrawn, so that it is not created again.`;
    throw new UnknownJobError(`${error.message} ${next}`, { cause: error });
  });
  const found =
    remote === undefined
      ? ({ event: 'found-not-sent', cause: 'resolved: not created' } as const)
      : ({ event: 'found-sent', cause: `resolved: created as ${remote.id}`, remote } as const);
  await settlePrompt(context, { job }, found);
}

/** Ends an active job. As gone only after checking the platform, because a mistyped number would end a running one. */
async function endJob({ context, project, job }: JobToChange, finding: 'gone' | 'ended'): Promise<void> {
  if (!isRemoteJob(job) || job.state !== 'active')
    throw new ConfigurationError(`Job ${job.id} is ${job.state}: only an active job can be ended.`);
  if (finding === 'gone') {
    const known = await context
      .clientOf(project)
      .job(job.remote_id, context.signal)
      .catch((error: unknown) => {
        // A platform that refuses for another reason, such as an expired key, may still have the job.
        if (!isGone(error)) throw error;
      });
    if (known !== undefined)
      throw new ConfigurationError(
        `Job ${job.id} still exists on the platform, with the status ${known.status}. Nothing was changed. If it is over nevertheless: readership jobs resolve ${job.id} --ended`,
      );
  }
  const now = context.now();
  const why = finding === 'gone' ? 'gone from the platform' : 'over';
  const note = `${why}; ended manually on ${longDay(dayOf(now))}`;
  const event = job.pr_link === null ? 'found-over' : 'found-pull-request';
  await changeJob(context.warehouse, job, { event, now, cause: `resolved: ${why}`, note });
}

/** Withdraws a planned job, or else the planned message of a job: it is never sent. */
async function withdraw({ context, job, messages }: JobToChange): Promise<void> {
  const message = messages.find(({ state }) => state === 'planned');
  if (job.state !== 'planned' && message === undefined)
    throw new ConfigurationError(
      `Job ${job.id} is ${job.state} and has no planned message: only what was not sent yet can be withdrawn.`,
    );
  const note = `withdrawn on ${longDay(dayOf(context.now()))}`;
  await settlePrompt(context, { job, message }, { event: 'withdrawn', cause: 'resolved: withdrawn', note });
}

async function resolveMessage(
  { context, job, messages }: JobToChange,
  finding: 'sent' | 'notSent',
): Promise<void> {
  const message = lostMessage(messages);
  if (message === undefined)
    throw new ConfigurationError(`Job ${job.id} has no unconfirmed message: nothing needs resolving.`);
  const found =
    finding === 'sent'
      ? ({ event: 'found-sent', cause: 'resolved: sent' } as const)
      : ({ event: 'found-not-sent', cause: 'resolved: not sent' } as const);
  await settlePrompt(context, { job, message }, found);
}
