import { Command, InvalidArgumentError, Option } from 'commander';
import { type JsonOption, listJobs, pollNow, type PollOptions, showJob } from './jobs-read.js';
import type { Day } from '../day.js';
import { markJobMerged, messageJob, resolveJob, type ResolveOptions } from './jobs-write.js';
import {
  type Act,
  dayArgument,
  durationArgument,
  JSON_LOG,
  PLATFORM_ENVIRONMENT_HELP,
  withProjectOption,
  withWorkspaceOptions,
} from './options.js';
import type { WorkspaceOptions } from '../app/workspace.js';

export function declareJobs(program: Command, act: Act): void {
  const jobs = program
    .command('jobs')
    .summary('list, poll, message and settle the agent jobs')
    .description('Lists the agent jobs, polls them, sends them messages, and settles unconfirmed ones.')
    .addHelpText(
      'after',
      `
Examples:
  readership jobs list
  readership jobs show 3
  readership jobs poll --watch
  readership jobs message 3 "Mention the rate limits as well."
  readership jobs merged 3 2026-11-12         measure its effect from that day
  readership jobs resolve 3 --not-created     after checking the platform`,
    );
  withProjectOption(withWorkspaceOptions(jobs.command('list', { isDefault: true })))
    .description('List the jobs, from the published history.')
    .option('--json', 'write JSON')
    .addHelpText('after', '\nExamples:\n  readership jobs list\n  readership jobs list --json')
    .allowExcessArguments()
    .action((options: JsonOption, { args: [other] }: Command) => {
      if (other !== undefined) refuseCommand(other, jobs);
      return act((runtime) => listJobs(options, runtime));
    });
  withWorkspaceOptions(jobs.command('show'))
    .description('Show a job with its reason, evidence, messages, history and prompt.')
    .argument('<id>', 'number of the job', jobNumber)
    .option('--json', 'write JSON')
    .addHelpText('after', '\nExample:\n  readership jobs show 3')
    .action((id: number, options: JsonOption) => act((runtime) => showJob(id, options, runtime)));
  withProjectOption(withWorkspaceOptions(jobs.command('poll')))
    .description(
      'Send the waiting prompts (planned jobs only if improve.mode is apply), and poll the active jobs that are due.',
    )
    .addOption(
      new Option('--wait <time>', 'keep polling while jobs are active, such as 30s or 10m')
        .argParser(durationArgument)
        .default(0, 'poll once'),
    )
    .option('--watch', 'keep polling, with a live view, until every job has ended')
    .option('--json', JSON_LOG)
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
      'Send a follow-up message to a job, which reopens it. It is recorded before it is sent, and never sent twice automatically.',
    )
    .argument('<id>', 'number of the job', jobNumber)
    .argument('<text>', 'what the agent should do now')
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
    .description(
      'Record when the pull request of a job was merged, so that its effect is measured from then on. With pullRequests in readership.yaml, the date is looked up on GitHub or GitLab instead.',
    )
    .argument('<id>', 'number of the job', jobNumber)
    .argument('[day]', 'day of the merge, YYYY-MM-DD (default: today, UTC)', dayArgument)
    .addHelpText('after', '\nExample:\n  readership jobs merged 3 2026-11-12')
    .action((id: number, day: Day | undefined, options: WorkspaceOptions) =>
      act((runtime) => markJobMerged(id, day, options, runtime)),
    );
  withWorkspaceOptions(jobs.command('resolve'))
    .description(
      'Settle an unconfirmed job or message, or end an active job that is gone, after checking the platform.',
    )
    .argument('<id>', 'number of the job', jobNumber)
    .option('--created <remote-id>', 'the job exists on the platform under this id: poll it')
    .option('--not-created', 'the job does not exist there: plan it again')
    .option('--sent', 'the message arrived there: poll the job')
    .option('--not-sent', 'the message did not arrive: plan it again')
    .option('--gone', 'the platform no longer has the active job: end it as failed')
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

/** A default command would get unknown words. Without one, commander suggests a similar command. */
function refuseCommand(word: string, jobs: Command): void {
  const named = new Command().copyInheritedSettings(jobs);
  for (const command of jobs.commands) named.command(command.name());
  named.parse([word], { from: 'user' });
}

function jobNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text))
    throw new InvalidArgumentError('Use the number of a job, as in readership jobs list.');
  return Number(text);
}
