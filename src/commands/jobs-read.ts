import { addMilliseconds } from 'date-fns';
import { setTimeout as delay } from 'node:timers/promises';
import { readEffects } from '../agents/effect.js';
import { type Job, readJobs, readTransitions } from '../agents/ledger.js';
import { type Message, readMessages } from '../agents/messages.js';
import { nextTurn } from '../agents/submit.js';
import { readWorkspace, type Runtime, type Workspace, type WorkspaceOptions } from '../app/workspace.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { moment } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { describeJob, howToLook, jobLines } from '../print/jobs.js';
import { pollStep } from '../steps/poll.js';
import { openHistory } from '../warehouse/published.js';
import type { Reader } from '../warehouse/query.js';
import { conclude, runSteps } from './steps.js';

export type JsonOption = WorkspaceOptions & { readonly json?: boolean };

export async function listJobs(options: JsonOption, runtime: Runtime): Promise<ExitCode> {
  const { output, now } = runtime;
  const { jobs, messages, turns } = await fromHistory(options, runtime, async (reader, workspace) => ({
    jobs: await allJobs(reader, workspace),
    messages: await allMessages(reader, workspace),
    turns: await Promise.all(workspace.projects.map(({ id }) => nextTurn(reader, id, now()))),
  }));
  if (options.json === true) output.data(JSON.stringify(jobs, null, 2));
  else if (jobs.length === 0) output.data('No jobs yet. Which pages would get one: readership improve');
  else output.data(jobLines(jobs, output.width).join('\n'));

  for (const job of jobs.filter(({ state }) => state === 'unconfirmed'))
    output.note(
      `Job ${job.id} is unconfirmed: the reply was lost, so it may exist on the platform. ${howToLook(job)} Then: ${RESOLVE_JOB(job.id)}`,
    );
  for (const { id, job } of messages.filter(({ state }) => state === 'unconfirmed'))
    output.note(
      `Message ${id} to job ${job} is unconfirmed: the reply was lost, so the agent may have it. Look there, then: readership jobs resolve ${job} --sent, or --not-sent`,
    );
  const planned = [...jobs, ...messages].filter(({ state }) => state === 'planned').length;
  for (const turn of planned === 0 ? [] : turns)
    if (turn !== undefined)
      output.note(
        `${counted(planned, 'prompt')} planned: ${turn.why}, and the next may go on ${moment(turn.at)}`,
      );
  return 0;
}

const RESOLVE_JOB = (id: number): string =>
  `readership jobs resolve ${id} --created REMOTE_ID, or --not-created`;

/** `jobs resolve` without an answer: what is open, how to find out, and how to say it. */
export async function explainUnconfirmed(
  id: number,
  options: WorkspaceOptions,
  runtime: Runtime,
): Promise<ExitCode> {
  const { job, messages } = await fromHistory(options, runtime, async (reader, workspace) => {
    const found = findJob(await allJobs(reader, workspace), id);
    const ofProject = await readMessages(reader, found.project);
    return { job: found, messages: ofProject.filter((message) => message.job === id) };
  });
  const isMessageOpen = messages.some(({ state }) => state === 'unconfirmed');
  const next =
    job.state === 'unconfirmed'
      ? `${howToLook(job)} Then: ${RESOLVE_JOB(id)}`
      : isMessageOpen
        ? `Look whether the agent has its message. Then: readership jobs resolve ${id} --sent, or --not-sent`
        : `Nothing about it needs resolving. If the platform no longer knows it: readership jobs resolve ${id} --gone`;
  throw new ConfigurationError(
    `Say what became of job ${id} (${job.path}), which is ${job.state}${isMessageOpen ? ', with an unconfirmed message' : ''}. ${next}`,
  );
}

export async function showJob(id: number, options: JsonOption, runtime: Runtime): Promise<ExitCode> {
  const detail = await fromHistory(options, runtime, async (reader, workspace) => {
    const job = findJob(await allJobs(reader, workspace), id);
    const messages = await readMessages(reader, job.project);
    const effects = await readEffects(reader, job.project);
    return {
      ...{ job, messages: messages.filter((message) => message.job === id) },
      transitions: await readTransitions(reader, id),
      effect: effects.find((effect) => effect.job === id),
    };
  });
  const { job, ...rest } = detail;
  if (options.json === true) runtime.output.data(JSON.stringify({ ...job, ...rest }, null, 2));
  else runtime.output.words(describeJob(detail));
  return 0;
}

const allMessages = async (reader: Reader, { projects }: Workspace): Promise<Message[]> =>
  (await Promise.all(projects.map(({ id }) => readMessages(reader, id)))).flat();

async function fromHistory<Result>(
  options: WorkspaceOptions,
  runtime: Runtime,
  work: (reader: Reader, workspace: Workspace) => Promise<Result>,
): Promise<Result> {
  const workspace = await readWorkspace(options, runtime);
  const history = await openHistory(workspace.historyFile);
  try {
    return await work(history, workspace);
  } finally {
    history.close();
  }
}

export type PollOptions = WorkspaceOptions & { readonly wait: number; readonly watch?: boolean };

/** Between two rounds the database is let go of, so that watching for an hour keeps nobody else waiting. */
export async function pollNow(options: PollOptions, runtime: Runtime): Promise<ExitCode> {
  const { output, now, signal } = runtime;
  const deadline = options.watch === true ? undefined : addMilliseconds(now(), options.wait);
  const ended: Job[] = [];
  for (;;) {
    const { result, outages } = await runSteps('jobs poll', options, runtime, (runner, context) =>
      runner.step('poll', () => pollStep(context, { waitMs: 0 })),
    );
    const { stillActive = [] } = result ?? {};
    ended.push(...(result?.ended ?? []));
    const next = earliestPoll(stillActive);
    const isOver = next === undefined || (deadline !== undefined && next > deadline);
    const isHopeless = outages.some(({ outcome }) => outcome !== 'later');
    if (!isOver && !isHopeless && (await watched(stillActive, next, runtime))) continue;

    const jobs = [...ended, ...stillActive];
    output.data(jobs.length === 0 ? 'No active jobs.' : jobLines(jobs, output.width).join('\n'));
    return signal.aborted ? 0 : conclude(outages, runtime);
  }
}

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

/** The jobs of every project that the command is about, oldest first. */
export const allJobs = async (reader: Reader, { projects }: Pick<Workspace, 'projects'>): Promise<Job[]> =>
  (await Promise.all(projects.map((project) => readJobs(reader, project.id)))).flat();

/** Throws a `ConfigurationError` when there is no job of that number. */
export function findJob(jobs: readonly Job[], id: number): Job {
  const job = jobs.find((candidate) => candidate.id === id);
  if (job === undefined)
    throw new ConfigurationError(`There is no job ${id}. What there is: readership jobs list`);
  return job;
}
