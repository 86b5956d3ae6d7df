import { type Command, InvalidArgumentError } from 'commander';
import { type JsonOption, listJobs, showJob } from './jobs-read.js';
import { pollNow, type PollOptions, resolveJob, type ResolveOptions } from './jobs-write.js';
import { durationArgument, withProjectOption, withWorkspaceOptions } from './options.js';
import type { Act } from './runtime.js';

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
  readership jobs poll --wait 10m
  readership jobs resolve 3 --not-created     after looking on the platform`,
    );
  withProjectOption(withWorkspaceOptions(jobs.command('list', { isDefault: true })))
    .description('List the jobs, from the published history.')
    .option('--json', 'write JSON')
    .addHelpText('after', '\nExamples:\n  readership jobs list\n  readership jobs list --json')
    .action((options: JsonOption) => act((runtime) => listJobs(options, runtime)));
  withWorkspaceOptions(jobs.command('show'))
    .description('Show a job with its reason, prompt and history.')
    .argument('<id>', 'number of the job', jobNumber)
    .option('--json', 'write JSON')
    .addHelpText('after', '\nExample:\n  readership jobs show 3')
    .action((id: number, options: JsonOption) => act((runtime) => showJob(id, options, runtime)));
  withProjectOption(withWorkspaceOptions(jobs.command('poll')))
    .description('Ask the platform for the active jobs that are due.')
    .option('--wait <time>', 'keep asking while jobs are active, such as 30s or 10m', durationArgument, 0)
    .addHelpText('after', '\nExample:\n  readership jobs poll --wait 10m')
    .action((options: PollOptions) => act((runtime) => pollNow(options, runtime)));
  withWorkspaceOptions(jobs.command('resolve'))
    .description(
      'Say what became of an unconfirmed job, after looking on the platform. Only then it goes on.',
    )
    .argument('<id>', 'number of the job', jobNumber)
    .option('--created <remote-id>', 'it exists on the platform, under this id: follow it')
    .option('--not-created', 'it does not exist there: plan it again')
    .addHelpText(
      'after',
      '\nExamples:\n  readership jobs resolve 3 --created job_81\n  readership jobs resolve 3 --not-created',
    )
    .action((id: number, options: ResolveOptions) => act((runtime) => resolveJob(id, options, runtime)));
}

function jobNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text))
    throw new InvalidArgumentError('Write the number of a job, as in readership jobs list.');
  return Number(text);
}
