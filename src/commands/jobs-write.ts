import { changeJob, type JobChange } from '../agents/ledger.js';
import { ConfigurationError } from '../errors.js';
import { StepRunner } from '../schedule/loop.js';
import { pollStep } from '../schedule/steps/poll.js';
import { publishStep } from '../schedule/steps/publish.js';
import { type ExitCode, exitCodeOfFaults } from './exit-code.js';
import { allJobs, findJob } from './find-job.js';
import { jobLine } from './job-lines.js';
import type { Runtime } from './runtime.js';
import { reportFaults } from './step-faults.js';
import { withSteps } from './with-steps.js';
import type { WorkspaceOptions } from './workspace.js';

export type PollOptions = WorkspaceOptions & { readonly wait: number };
export type ResolveOptions = WorkspaceOptions & { readonly created?: string; readonly notCreated?: boolean };

export function pollNow(options: PollOptions, runtime: Runtime): Promise<ExitCode> {
  return withSteps('jobs poll', options, runtime, async (context) => {
    const runner = new StepRunner(context);
    const polled = await runner.step('poll', () => pollStep(context, options.wait));
    await runner.step('publish', () => publishStep(context, runner.changed));
    for (const job of [...(polled?.ended ?? []), ...(polled?.stillActive ?? [])])
      runtime.output.data(jobLine(job));
    if (polled?.ended.length === 0 && polled.stillActive.length === 0) runtime.output.data('No active jobs.');
    reportFaults(runner.faults, runtime);
    return exitCodeOfFaults(runner.faults);
  });
}

export function resolveJob(id: number, options: ResolveOptions, runtime: Runtime): Promise<ExitCode> {
  const { created, notCreated = false } = options;
  if ((created !== undefined) === notCreated)
    throw new ConfigurationError('Say what became of it: --created REMOTE_ID, or --not-created.');
  return withSteps<ExitCode>('jobs resolve', options, runtime, async (context, workspace) => {
    const job = findJob(await allJobs(context.warehouse, workspace), id);
    if (job.state !== 'unconfirmed')
      throw new ConfigurationError(`Job ${id} is ${job.state}: only an unconfirmed job needs resolving.`);
    const resolved = await changeJob(context.warehouse, job, resolution(created, runtime.now()));
    await publishStep(context, true);
    runtime.output.data(jobLine(resolved));
    return 0;
  });
}

const resolution = (created: string | undefined, now: Date): JobChange =>
  created === undefined
    ? { event: { kind: 'found-not-created' }, now, cause: 'resolved: not created' }
    : {
        event: { kind: 'found-created' },
        ...{ now, nextPollAt: now, remoteId: created, cause: `resolved: created as ${created}` },
      };
