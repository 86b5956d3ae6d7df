import { type Message, readMessages } from '../agents/message-ledger.js';
import { nextTurn } from '../agents/rate.js';
import { readEffects } from '../agents/read-effects.js';
import { readTransitions } from '../agents/transitions.js';
import { ConfigurationError } from '../errors.js';
import { moment } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { openHistory } from '../warehouse/history.js';
import type { Reader } from '../warehouse/query.js';
import type { ExitCode } from './exit-code.js';
import { allJobs, findJob } from './find-job.js';
import { describeJob, howToLook, jobLines } from './job-lines.js';
import type { Runtime } from './runtime.js';
import { readWorkspace, type Workspace, type WorkspaceOptions } from './workspace.js';

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
