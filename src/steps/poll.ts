import { max, min } from 'date-fns';
import { nextPoll } from '../agents/lifecycle.js';
import { checkPullRequests } from '../agents/merges.js';
import { pollJobs, type PollTask } from '../agents/poll.js';
import { type SubmitOutcome, submitPrompts } from '../agents/submit.js';
import type { ProjectSettings } from '../config/schema.js';
import { ReadershipError } from '../errors.js';
import { counted } from '../format/numbers.js';
import { forgetProblems, type Job, readJobs } from '../state/jobs.js';
import { byBothClocks, eachProject, type Parts, withOutage } from './step.js';

interface PollOptions extends Pick<PollTask, 'deadlineMs' | 'keepsPolling'> {
  /** Whether no prompts are sent, because this run has just sent what it may, or has failed to. */
  readonly sendsNothing?: boolean;
}

/**
 * Sends the waiting prompts, and polls the active jobs that are due. Planned jobs that no person approved are sent only
 * in `mode: apply`. Returns the jobs that ended, those still active, and how long until one of them is due, if there is
 * one.
 */
export async function pollStep(given: Parts, options: PollOptions) {
  const parts = await byBothClocks(given);
  const { now } = parts.session;
  // Most projects of a large workspace have none, and asking about each takes time.
  const withJobs = new Set(readJobs(parts.state, null).map(({ project }) => project));
  const projects = parts.workspace.projects.filter(({ id }) => withJobs.has(id));
  const some = { ...parts, workspace: { ...parts.workspace, projects } };
  const { results, errors } = await eachProject(some, (project) => pollProject(parts, project, options));
  const ended = results.flatMap((polled) => polled.ended);
  const stillActive = results.flatMap((polled) => polled.stillActive);
  const reviewed = results.flatMap((polled) => polled.reviewed).length;
  const reviews = reviewed === 0 ? '' : `, ${counted(reviewed, 'pull request')} merged or closed`;
  const summary = `${counted(ended.length, 'job')} ended, ${stillActive.length} still active${reviews}`;
  const all = [...errors, ...results.flatMap((polled) => polled.errors), parts.sender.otherPlace()];
  const due = stillActive.map((job) => nextPoll(job, now()));
  // The platform may want no requests before a later time.
  const waits = all.flatMap((error) => (error instanceof ReadershipError ? (error.resumeAt ?? []) : []));
  const pollsInMs = due.length === 0 ? undefined : max([min(due), ...waits]).getTime() - now().getTime();
  return withOutage({ detail: { ended, stillActive, pollsInMs }, summary }, all);
}

async function pollProject(
  parts: Parts,
  project: ProjectSettings,
  { sendsNothing = false, ...poll }: PollOptions,
) {
  const { platform, state, session } = parts;
  const { now, signal, observer } = session;
  const { codeHost } = platform;
  const stopped = sendsNothing ? undefined : (await submitWaiting(parts, project)).stopped;
  const task = { state, project: project.id, now, signal };
  const polled = await pollJobs({
    ...task,
    ...poll,
    client: platform.clientOf(project),
    onChange: (job) => observer.onJob?.(job),
  });
  const isOver = poll.deadlineMs !== undefined && poll.deadlineMs <= performance.now();
  if (codeHost === undefined) await state.transaction(() => forgetProblems(state, project.id));
  const reviewed = codeHost === undefined || isOver ? [] : await checkPullRequests({ ...task, codeHost });
  for (const job of reviewed) observer.onJob?.(job);
  return { ...polled, reviewed, errors: [stopped, ...polled.errors] };
}

/** What was sent for a project; `sent` counts the created jobs too. */
export interface SentPrompts extends SubmitOutcome {
  readonly created: number;
}

/**
 * Sends waiting prompts: the planned jobs that the limits allow, and then messages. Jobs that no person approved are sent
 * if `sendsAll` is set, by default in `mode: apply`.
 */
export async function submitWaiting(
  { workspace, platform, state, sender, session }: Parts,
  project: ProjectSettings,
  sendsAll = workspace.settings.improve.mode === 'apply',
): Promise<SentPrompts> {
  const { now, signal, observer } = session;
  const task = {
    state,
    sender,
    client: platform.clientOf(project),
    rules: workspace.settings.improve,
    sendsAll,
    project: project.id,
    now,
    signal,
    onJob: (job: Job) => observer.onJob?.(job),
  };
  const jobs = await submitPrompts(task, 'job');
  if (jobs.stopped !== undefined) return { ...jobs, created: jobs.sent };
  const messages = await submitPrompts(task, 'message');
  return { ...messages, created: jobs.sent, sent: jobs.sent + messages.sent };
}
