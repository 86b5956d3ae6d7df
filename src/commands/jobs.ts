import { type Command, InvalidArgumentError, Option } from 'commander';
import { type JsonOption, listJobs, pollNow, type PollOptions, showJob } from './jobs-read.js';
import type { Day } from '../day.js';
import { markJobMerged, messageJob, resolveJob, type ResolveOptions } from './jobs-write.js';
import {
  type Act,
  dayArgument,
  durationArgument,
  PLATFORM_ENVIRONMENT_HELP,
  withProjectOption,
  withWorkspaceOptions,
} from './options.js';
import type { WorkspaceOptions } from '../app/workspace.js';

export function declareJobs(program: Command, act: Act): void {
  const jobs = program
    .command('jobs')
    .summary('the agent jobs: their state, their pull requests, the unconfirmed ones')
    .addHelpText(
      'after',
      `
Examples:
  readership jobs list
  readership jobs show 3
  readership jobs poll --watch
  readership jobs message 3 "Mention the rate limits as well."
  readership jobs merged 3 2026-11-12         count its effect from that day
  readership jobs resolve 3 --not-created     after looking on the platform`,
    );
  withProjectOption(withWorkspaceOptions(jobs.command('list', { isDefault: true })))
    .description('List the jobs, from the published history.')
    .option('--json', 'write JSON')
    .addHelpText('after', '\nExamples:\n  readership jobs list\n  readership jobs list --json')
    .action((options: JsonOption) => act((runtime) => listJobs(options, runtime)));
  withWorkspaceOptions(jobs.command('show'))
    .description('Show a job with its reason, evidence, messages, history and prompt.')
    .argument('<id>', 'number of the job', jobNumber)
    .option('--json', 'write JSON')
    .addHelpText('after', '\nExample:\n  readership jobs show 3')
    .action((id: number, options: JsonOption) => act((runtime) => showJob(id, options, runtime)));
  withProjectOption(withWorkspaceOptions(jobs.command('poll')))
    .description(
      'Send what waits its turn (planned jobs only if improve.mode is apply), and ask the platform for the active jobs that are due.',
    )
    .addOption(
      new Option('--wait <time>', 'keep asking while jobs are active, such as 30s or 10m')
        .argParser(durationArgument)
        .default(0, 'ask once'),
    )
    .option('--watch', 'keep asking, and show it live, until every job has ended')
    .addHelpText(
      'after',
      `
Examples:
  readership jobs poll --wait 10m
  readership jobs poll --watch
${PLATFORM_ENVIRONMENT_HELP}`,
    )
    .action((options: PollOptions) => act((runtime) => pollNow(options, runtime)));
  withWorkspaceOptions(jobs.command('message'))
    .description(
      'Send a follow-up message to a job, which reopens it. Recorded before it is sent, and never sent twice by itself.',
    )
    .argument('<id>', 'number of the job', jobNumber)
    .argument('<text>', 'what the agent is to do now')
    .addHelpText(
      'after',
      `
Example:
  readership jobs message 3 "Mention the rate limits as well."
${PLATFORM_ENVIRONMENT_HELP}`,
    )
    .action((id: number, text: string, options: WorkspaceOptions) =>
      act((runtime) => messageJob(id, text, options, runtime)),
    );
  withWorkspaceOptions(jobs.command('merged'))
    .description('Say when the pull request of a job was merged, so that its effect is counted from then.')
    .argument('<id>', 'number of the job', jobNumber)
    .argument('[day]', 'day of the merge, YYYY-MM-DD (default: today, UTC)', dayArgument)
    .addHelpText('after', '\nExample:\n  readership jobs merged 3 2026-11-12')
    .action((id: number, day: Day | undefined, options: WorkspaceOptions) =>
      act((runtime) => markJobMerged(id, day, options, runtime)),
    );
  withWorkspaceOptions(jobs.command('resolve'))
    .description(
      'Say what became of an unconfirmed job or message, or that an active job is gone, after looking on the platform.',
    )
    .argument('<id>', 'number of the job', jobNumber)
    .option('--created <remote-id>', 'the job exists on the platform, under this id: follow it')
    .option('--not-created', 'the job does not exist there: plan it again')
    .option('--sent', 'the message arrived there: follow the job')
    .option('--not-sent', 'the message did not arrive: plan it again')
    .option('--gone', 'the platform does not know the active job any more: end it as failed')
    .addHelpText(
      'after',
      `
Examples:
  readership jobs resolve 3 --created job_81
  readership jobs resolve 3 --not-created
  readership jobs resolve 3 --sent
  readership jobs resolve 3 --gone
${PLATFORM_ENVIRONMENT_HELP}`,
    )
    .action((id: number, options: ResolveOptions) => act((runtime) => resolveJob(id, options, runtime)));
}

function jobNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text))
    throw new InvalidArgumentError('Write the number of a job, as in readership jobs list.');
  return Number(text);
}
