import type { Command } from 'commander';
import { type Day, lastEndedDay } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { StepRunner } from '../schedule/step-runner.js';
import { exportStep } from '../schedule/steps/export.js';
import { publishStep } from '../schedule/steps/publish.js';
import { type ExitCode, exitCodeOfFaults } from './exit-code.js';
import { printExportPlan } from './export-plan.js';
import { loadedLines } from './export-summary.js';
import {
  dayArgument,
  PLATFORM_ENVIRONMENT_HELP,
  withProjectOption,
  withWorkspaceOptions,
} from './options.js';
import type { Act, Runtime } from './runtime.js';
import { reportFaults } from './step-faults.js';
import { withSteps } from './with-steps.js';
import type { WorkspaceOptions } from './workspace.js';

interface ExportOptions extends WorkspaceOptions {
  readonly from?: Day;
  readonly to?: Day;
  readonly reload?: boolean;
  readonly plan?: boolean;
  readonly json?: boolean;
}

export function declareExport(program: Command, act: Act): void {
  withProjectOption(withWorkspaceOptions(program.command('export')))
    .summary('load missing, failed and not yet settled days')
    .description(
      'Loads the days that are missing, failed or not yet settled, newest first, and publishes the history. A final day is read again only with --reload. Today has not ended, so it is not loaded.',
    )
    .option('--from <day>', 'first day, YYYY-MM-DD (default: where the history starts)', dayArgument)
    .option('--to <day>', 'last day, included (default: yesterday, UTC)', dayArgument)
    .option(
      '--reload',
      'read every day from --from to --to again, final ones too, waiting for the hourly limit as long as that takes',
    )
    .option('--plan', 'print which days, in how many requests and until when; send nothing')
    .option('--json', 'with --plan: write JSON')
    .addHelpText(
      'after',
      `
Examples:
  readership export                                       all that is due
  readership export --plan                                what that would cost
  readership export --from 2026-01-01 --to 2026-01-31     what is due of January
  readership export --reload --from 2026-01-05 --to 2026-01-05   that day again
  readership export --shard 2/8                           of the second of eight parts of the projects
${PLATFORM_ENVIRONMENT_HELP}`,
    )
    .action((options: ExportOptions) => act((runtime) => runExport(options, runtime)));
}

async function runExport(options: ExportOptions, runtime: Runtime): Promise<ExitCode> {
  checkBounds(options, runtime.now());
  if (options.plan === true) return printExportPlan(options, runtime);
  return withSteps(
    'export',
    { ...options, waits: options.reload === true },
    runtime,
    async (context, _, progress) => {
      const runner = new StepRunner(context);
      const exported = await runner.step('export', () => exportStep(context, options));
      progress.end();
      await runner.step('publish', () => publishStep(context, runner.changed));
      for (const project of exported ?? [])
        runtime.output.data(loadedLines(project, progress.cost).join('\n'));
      reportFaults(runner.faults, runtime);
      return exitCodeOfFaults(runner.faults);
    },
  );
}

function checkBounds({ from, to, reload }: ExportOptions, now: Date): void {
  if (reload === true && from === undefined)
    throw new ConfigurationError(
      '--reload needs --from, the first day to read again: readership export --reload --from 2026-01-05 --to 2026-01-05. ' +
        'To find the days that differ, run: readership audit',
    );
  const yesterday = lastEndedDay(now);
  if (from !== undefined && to !== undefined && from > to)
    throw new ConfigurationError(`--from ${from} is after --to ${to}: swap them.`);
  if (from !== undefined && from > yesterday)
    throw new ConfigurationError(
      `--from ${from} has not ended yet (UTC): the last day to load is ${yesterday}.`,
    );
  if (to !== undefined && to > yesterday)
    throw new ConfigurationError(`--to ${to} has not ended yet (UTC): the last day to load is ${yesterday}.`);
}
