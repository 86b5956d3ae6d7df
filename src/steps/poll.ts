import { max, min } from 'date-fns';
import type { Job } from '../agents/ledger.js';
import { nextPoll } from '../agents/lifecycle.js';
import { noticeMerges } from '../agents/merges.js';
import { pollJobs, type PollTask } from '../agents/poll.js';
import { readPullRequests } from '../agents/pull-requests.js';
import { submitJobs, submitMessages, type SubmitOutcome } from '../agents/submit.js';
import type { ProjectSettings } from '../config/schema.js';
import { ReadershipError } from '../errors.js';
import { counted } from '../format/numbers.js';
import { byBothClocks, eachProject, type StepContext, type StepResult, withOutage } from './step.js';

interface PollOptions extends Pick<PollTask, 'deadlineMs' | 'keepsPolling'> {
  /** Projects whose prompts are not sent, because sending already failed in this run. */
  readonly heldBack?: readonly ProjectSettings[] | undefined;
}

interface Polled {
  /** The jobs that ended while they were polled. */
  readonly ended: readonly Job[];
  readonly stillActive: readonly Job[];
  /** How long until one of them is due; undefined if there is none. */
  readonly pollsInMs: number | undefined;
}

/**
 * Sends the waiting prompts, and polls the active jobs that are due. Planned jobs are sent only in
 * `mode: apply`.
 */
export async function pollStep(given: StepContext, options: PollOptions): Promise<StepResult<Polled>> {
  const context = await byBothClocks(given);
  const { results, errors } = await eachProject(context, (project) => pollProject(context, project, options));
  const ended = results.flatMap((polled) => polled.ended);
  const stillActive = results.flatMap((polled) => polled.stillActive);
  const reviewed = results.flatMap((polled) => polled.reviewed).length;
  const reviews = reviewed === 0 ? '' : `, ${counted(reviewed, 'pull request')} merged or closed`;
  const summary = `${counted(ended.length, 'job')} ended, ${stillActive.length} still active${reviews}`;
  const { settled, problem } = await readChanges(context);
  const found =
    settled.length === 0 ? '' : `, ${counted(settled.length, 'lost job')} found by the pull request`;
  const unread = problem === undefined ? '' : `; pull requests not read: ${problem}`;
  const all = [...errors, ...results.flatMap((polled) => polled.errors), context.elsewhere ?? []].flat();
  const due = stillActive.map((job) => nextPoll(job, context.now()));
  // The platform may want no requests before a later time.
  const waits = all.flatMap((error) => (error instanceof ReadershipError ? (error.resumeAt ?? []) : []));
  const pollsInMs =
    due.length === 0 ? undefined : max([min(due), ...waits]).getTime() - context.now().getTime();
  const detail = { ended: [...ended, ...settled], stillActive, pollsInMs };
  return withOutage({ detail, summary: summary + found + unread }, all);
}

/** Reads the pull requests for all projects, even if the command is about one: each is read once. */
async function readChanges({ warehouse, journal, codeHost, settings, now, signal, observer }: StepContext) {
  if (codeHost === undefined) return { settled: [] };
  const { projects } = settings;
  const outcome = await readPullRequests({ warehouse, journal, codeHost, projects, now, signal });
  for (const job of outcome.settled) observer.onJob?.(job);
  return outcome;
}

async function pollProject(
  context: StepContext,
  project: ProjectSettings,
  { heldBack = [], ...poll }: PollOptions,
) {
  const { settings, warehouse, clientOf, codeHost, now, signal, observer } = context;
  const { mode } = settings.improve;
  const stopped = heldBack.includes(project)
    ? undefined
    : (await submitWaiting(context, project, mode === 'apply' ? 'all' : 'messages')).stopped;
  const task = { warehouse, project: project.id, now, signal };
  const polled = await pollJobs({
    ...task,
    ...poll,
    client: clientOf(project),
    onChange: (job) => observer.onJob?.(job),
  });
  const isOver = poll.deadlineMs !== undefined && poll.deadlineMs <= performance.now();
  const reviewed = codeHost === undefined || isOver ? [] : await noticeMerges({ ...task, codeHost });
  for (const job of reviewed) observer.onJob?.(job);
  return { ...polled, reviewed, errors: [...(stopped === undefined ? [] : [stopped]), ...polled.errors] };
}

/** Sends waiting prompts: messages, preceded by the planned jobs if `what` is `all`. */
export async function submitWaiting(
  context: StepContext,
  project: ProjectSettings,
  what: 'all' | 'messages',
): Promise<SubmitOutcome> {
  const { warehouse, journal, clientOf, now, signal, observer } = context;
  const task = {
    warehouse,
    journal,
    now,
    signal,
    client: clientOf(project),
    project: project.id,
    onJob: (job: Job) => observer.onJob?.(job),
  };
  const jobs = what === 'all' ? await submitJobs(task) : { submitted: [] };
  if (jobs.stopped !== undefined) return jobs;
  const messages = await submitMessages(task);
  return { ...messages, submitted: [...jobs.submitted, ...messages.submitted] };
}
