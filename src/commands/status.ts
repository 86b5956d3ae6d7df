import { type Command, Option } from 'commander';
import type { ExitCode } from '../errors.js';
import { escapeUnsafe } from '../format/text.js';
import { withHistory } from '../app/open.js';
import type { Runtime, WorkspaceOptions } from '../app/workspace.js';
import { metricsText } from '../print/metrics.js';
import { needsOf, operationsLines, statusLines } from '../print/status.js';
import { readStatus } from '../service/status.js';
import { type Act, withProjectOption, withWorkspaceOptions } from './options.js';

type StatusOptions = WorkspaceOptions & { readonly json?: boolean; readonly format?: 'json' | 'prometheus' };

export function declareStatus(program: Command, act: Act): void {
  withProjectOption(withWorkspaceOptions(program.command('status')))
    .summary('what is stored, what is missing, and what needs attention')
    .description(
      'Shows the coverage of the history: first and last day, gaps, provisional, failed, inconsistent and restated days, how long days take to settle, the requests of the last hour, and when the backfill will be done. Also shows the last runs, jobs, emails and disk space. Exits 1 if something needs attention. Reads the published history, so other commands cannot block it.',
    )
    .option('--json', 'write JSON')
    .addOption(
      new Option('--format <format>', 'json, or prometheus: metrics for a textfile collector')
        .choices(['json', 'prometheus'])
        .conflicts('json'),
    )
    .addHelpText(
      'after',
      '\nExamples:\n  readership status\n  readership status || echo attention needed\n  readership status --json | jq .needs\n  readership status --format prometheus > readership.prom.new && mv readership.prom.new readership.prom',
    )
    .action((options: StatusOptions) => act((runtime) => status(options, runtime)));
}

const status = (options: StatusOptions, runtime: Runtime): Promise<ExitCode> =>
  withHistory<ExitCode>(options, runtime, async (history, workspace) => {
    const { output } = runtime;
    const now = runtime.now();
    const { projects, operations } = await readStatus(history, workspace, now);
    const needs = needsOf(projects, operations, workspace, now);
    if (options.format === 'prometheus') output.write(metricsText(projects, operations, needs));
    else if (options.json === true || options.format === 'json')
      output.json({ ...operations, projects, needs });
    else {
      const { bold, red } = output.colors;
      for (const project of projects) output.words(statusLines(project, output.colors).join('\n'));
      output.words([bold('Operations'), ...operationsLines(operations, now)].join('\n'));
      for (const need of needs) output.data(`${red('needs you')}  ${escapeUnsafe(need)}`);
    }
    return needs.length === 0 ? 0 : 1;
  });
