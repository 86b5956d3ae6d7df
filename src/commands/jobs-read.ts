import { readTransitions } from '../agents/ledger.js';
import { openHistory } from '../warehouse/history.js';
import type { Reader } from '../warehouse/query.js';
import type { ExitCode } from './exit-code.js';
import { allJobs, findJob } from './find-job.js';
import { describeJob, jobLine } from './job-lines.js';
import type { Runtime } from './runtime.js';
import { readWorkspace, type Workspace, type WorkspaceOptions } from './workspace.js';

export type JsonOption = WorkspaceOptions & { readonly json?: boolean };

export async function listJobs(options: JsonOption, runtime: Runtime): Promise<ExitCode> {
  const jobs = await fromHistory(options, runtime, allJobs);
  if (options.json === true) runtime.output.data(JSON.stringify(jobs, null, 2));
  else if (jobs.length === 0)
    runtime.output.data('No jobs yet. Which pages would get one: readership improve');
  else for (const job of jobs) runtime.output.data(jobLine(job));
  const unconfirmed = jobs.filter((job) => job.state === 'unconfirmed');
  if (unconfirmed.length > 0)
    runtime.output.note(
      `${unconfirmed.length} unconfirmed: the reply was lost, so they may exist on the platform. Look there, then: readership jobs resolve ID`,
    );
  return 0;
}

export async function showJob(id: number, options: JsonOption, runtime: Runtime): Promise<ExitCode> {
  const { job, transitions } = await fromHistory(options, runtime, async (reader, workspace) => {
    const job = findJob(await allJobs(reader, workspace), id);
    return { job, transitions: await readTransitions(reader, id) };
  });
  runtime.output.data(
    options.json === true ? JSON.stringify({ ...job, transitions }, null, 2) : describeJob(job, transitions),
  );
  return 0;
}

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
