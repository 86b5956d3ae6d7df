import type { Command } from 'commander';
import { stat } from 'node:fs/promises';
import { openHistory } from '../warehouse/history.js';
import { duration } from '../terminal/export-progress.js';
import type { ExitCode } from './exit-code.js';
import { withProjectOption, withWorkspaceOptions } from './options.js';
import type { Act, Runtime } from './runtime.js';
import { statusLines } from './status-lines.js';
import { type ProjectStatus, readProjectStatus } from './project-status.js';
import { readWorkspace, type WorkspaceOptions } from './workspace.js';

type StatusOptions = WorkspaceOptions & { readonly json?: boolean };

export function declareStatus(program: Command, act: Act): void {
  withProjectOption(withWorkspaceOptions(program.command('status')))
    .summary('what is stored, what is missing, and what it waits for')
    .description(
      'Shows the coverage of the history: first and last day, gaps, provisional, failed, inconsistent and restated days, how long days take to settle, the requests of the last hour, and when the backfill ends. Reads the published history, so it is never blocked.',
    )
    .option('--json', 'write JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  readership status\n  readership status --json | jq .projects[0].gaps',
    )
    .action((options: StatusOptions) => act((runtime) => status(options, runtime)));
}

async function status(options: StatusOptions, runtime: Runtime): Promise<ExitCode> {
  const workspace = await readWorkspace(options, runtime);
  const { output, now } = runtime;
  const history = await openHistory(workspace.historyFile);
  try {
    const projects: ProjectStatus[] = [];
    for (const project of workspace.projects)
      projects.push(await readProjectStatus(history, project, workspace.settings, now()));
    const publishedAt = (await stat(workspace.historyFile)).mtime;
    if (options.json === true) output.data(JSON.stringify({ publishedAt, projects }, null, 2));
    else {
      for (const project of projects) output.data(statusLines(project, output.colors).join('\n'));
      output.data(
        `\npublished ${duration(now().getTime() - publishedAt.getTime())} ago: ${workspace.historyFile}`,
      );
    }
    return 0;
  } finally {
    history.close();
  }
}
