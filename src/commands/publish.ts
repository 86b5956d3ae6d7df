import type { Command } from 'commander';
import { relative } from 'node:path';
import { StepRunner } from '../steps/runner.js';
import { publishStep } from '../steps/publish.js';
import { type ExitCode, exitCodeOfFaults } from '../app/runtime.js';
import { directoryArgument, withWorkspaceOptions } from './options.js';
import type { Act, Runtime } from '../app/runtime.js';
import { reportFaults } from '../print/run.js';
import { withSteps } from './steps.js';
import type { WorkspaceOptions } from '../app/workspace.js';

export function declarePublish(program: Command, act: Act): void {
  withWorkspaceOptions(program.command('publish'))
    .summary('publish the history now, with --parquet also as a lake')
    .description(
      'Writes data/history.duckdb anew: a sorted, read-only copy of the whole history that takes the place of the one before in one step. With --parquet, or publish.parquet in the configuration, it also brings a lake of Parquet files up to date: a file a month, of which only those of changed months are written. Export and run do both by themselves when something changed.',
    )
    .option(
      '--parquet <dir>',
      'also as a lake in this directory, which is empty, not there yet, or a lake (default: publish.parquet)',
      directoryArgument,
    )
    .addHelpText(
      'after',
      '\nExamples:\n  readership publish\n  readership publish --parquet /srv/lake     how to read it: docs/scale.md',
    )
    .action((options: WorkspaceOptions) => act((runtime) => publish(options, runtime)));
}

function publish(options: WorkspaceOptions, runtime: Runtime): Promise<ExitCode> {
  return withSteps('publish', options, runtime, async (context, { historyFile, lakeDir }) => {
    const { output } = runtime;
    const runner = new StepRunner(context);
    const published = await runner.step('publish', () => publishStep(context, true));
    if (published !== undefined)
      output.data(`${shown(historyFile, runtime)}  ${(published.bytes / 1e6).toFixed(1)} MB`);
    if (published?.lake !== undefined && lakeDir !== undefined) {
      const { files, written, removed } = published.lake;
      output.data(`${shown(lakeDir, runtime)}  ${files} files, ${written} written, ${removed} removed`);
    }
    reportFaults(runner.faults, runtime);
    return exitCodeOfFaults(runner.faults);
  });
}

const shown = (path: string, { workingDirectory }: Runtime): string =>
  relative(workingDirectory, path) || '.';
