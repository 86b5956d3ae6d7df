import type { Command } from 'commander';
import { relative } from 'node:path';
import { StepRunner } from '../schedule/loop.js';
import { publishStep } from '../schedule/steps/publish.js';
import { type ExitCode, exitCodeOfFaults } from './exit-code.js';
import { withWorkspaceOptions } from './options.js';
import type { Act, Runtime } from './runtime.js';
import { reportFaults } from './step-faults.js';
import { withSteps } from './with-steps.js';
import type { WorkspaceOptions } from './workspace.js';

export function declarePublish(program: Command, act: Act): void {
  withWorkspaceOptions(program.command('publish'))
    .summary('publish the history now')
    .description(
      'Writes data/history.duckdb anew: a sorted, read-only copy of the whole history that takes the place of the one before in one step. Export and run do it by themselves when something changed.',
    )
    .addHelpText('after', '\nExample:\n  readership publish')
    .action((options: WorkspaceOptions) => act((runtime) => publish(options, runtime)));
}

function publish(options: WorkspaceOptions, runtime: Runtime): Promise<ExitCode> {
  return withSteps('publish', options, runtime, async (context, { historyFile }) => {
    const runner = new StepRunner(context);
    const bytes = await runner.step('publish', () => publishStep(context, true));
    if (bytes !== undefined)
      runtime.output.data(
        `${relative(runtime.workingDirectory, historyFile)}  ${(bytes / 1e6).toFixed(1)} MB`,
      );
    reportFaults(runner.faults, runtime);
    return exitCodeOfFaults(runner.faults);
  });
}
