import { max, min } from 'date-fns';
import { z } from 'zod';
import { type Job, readJobs } from '../agents/job.js';
import { nextPoll } from '../agents/lifecycle.js';
import { forgetProblems, noticeMerges } from '../agents/merges.js';
import { pollJobs, type PollTask } from '../agents/poll.js';
import { roomFor } from '../agents/room.js';
import { type SubmitOutcome, submitPrompts } from '../agents/submit.js';
import type { ProjectSettings } from '../config/schema.js';
import { ReadershipError } from '../errors.js';
import { counted } from '../format/numbers.js';
import type { Parts } from './parts.js';
import { byBothClocks, eachProject, withOutage } from './step.js';

const PROJECTS_WITH_JOBS = 'SELECT DISTINCT project FROM agent_jobs';

interface PollOptions extends Pick<PollTask, 'deadlineMs' | 'keepsPolling'> {
  /** Whether no prompts are sent, because this run has just sent what it may, or has failed to. */
  readonly isHeldBack?: boolean;
}

/**
 * Sends the waiting prompts, and polls the active jobs that are due. Planned jobs are sent only in
 * `mode: apply`. Returns the jobs that ended, those still active, and how long until one of them is due, if there is one.
 */
export async function pollStep(given: Parts, options: PollOptions) {
  const parts = await byBothClocks(given);
  const { now } = parts.session;
  // Most projects of a large workspace have none, and asking about each takes time.
  const rows = await parts.store.query(PROJECTS_WITH_JOBS, z.object({ project: z.string() }));
  const withJobs = new Set(rows.map(({ project }) => project));
  const projects = parts.workspace.projects.filter(({ id }) => withJobs.has(id));
  const some = { ...parts, workspace: { ...parts.workspace, projects } };
  const { results, errors } = await eachProject(some, (project) => pollProject(parts, project, options));
  const ended = results.flatMap((polled) => polled.ended);
  const stillActive = results.flatMap((polled) => polled.stillActive);
  const reviewed = results.flatMap((polled) => polled.reviewed).length;
  const reviews = reviewed === 0 ? '' : `, ${counted(reviewed, 'pull request')} merged or closed`;
  const summary = `${counted(ended.length, 'job')} ended, ${stillActive.length} still active${reviews}`;
  const all = [...errors, ...results.flatMap((polled) => polled.errors), parts.effects.elsewhere];
  const due = stillActive.map((job) => nextPoll(job, now()));
  // The platform may want no requests before a later time.
  const waits = all.flatMap((error) => (error instanceof ReadershipError ? (error.resumeAt ?? []) : []));
  const pollsInMs = due.length === 0 ? undefined : max([min(due), ...waits]).getTime() - now().getTime();
  return withOutage({ detail: { ended, stillActive, pollsInMs }, summary }, all);
}

async function pollProject(
  parts: Parts,
  project: ProjectSettings,
  { isHeldBack = false, ...poll }: PollOptions,
) {
  const { workspace, platform, store, session } = parts;
  const { now, signal, observer } = session;
  const { codeHost } = platform;
  const { mode } = workspace.settings.improve;
  const stopped = isHeldBack
    ? undefined
    : (await submitWaiting(parts, project, mode === 'apply' ? 'all' : 'messages')).stopped;
  const task = { warehouse: store, project: project.id, now, signal };
  const polled = await pollJobs({
    ...task,
    ...poll,
    client: platform.clientOf(project),
    onChange: (job) => observer.onJob?.(job),
  });
  const isOver = poll.deadlineMs !== undefined && poll.deadlineMs <= performance.now();
  if (codeHost === undefined) await forgetProblems(task);
  const reviewed = codeHost === undefined || isOver ? [] : await noticeMerges({ ...task, codeHost });
  for (const job of reviewed) observer.onJob?.(job);
  return { ...polled, reviewed, errors: [stopped, ...polled.errors] };
}

/** What was sent for a project; `sent` counts the created jobs too. */
export interface Sent extends SubmitOutcome {
  readonly created: number;
}

/** Sends waiting prompts: messages, preceded by the planned jobs that the limits allow if `what` is `all`. */
export async function submitWaiting(
  { workspace, platform, store, effects, session }: Parts,
  project: ProjectSettings,
  what: 'all' | 'messages',
): Promise<Sent> {
  const { now, signal, observer } = session;
  const task = {
    warehouse: store,
    journal: effects.journal,
    client: platform.clientOf(project),
    project: project.id,
    now,
    signal,
    onJob: (job: Job) => observer.onJob?.(job),
  };
  let jobs: SubmitOutcome = { sent: 0 };
  if (what === 'all') {
    const { toSend } = roomFor(await readJobs(store, project.id), workspace.settings.improve, now());
    jobs = await submitPrompts(task, 'job', toSend.count);
  }
  if (jobs.stopped !== undefined) return { ...jobs, created: jobs.sent };
  const messages = await submitPrompts(task, 'message');
  return { ...messages, created: jobs.sent, sent: jobs.sent + messages.sent };
}
