import type { Command } from 'commander';
import { spawn } from 'node:child_process';
import { relative } from 'node:path';
import { listReports } from '../reports/catalog.js';
import { renderReport } from '../reports/render.js';
import { writePage } from '../reports/write.js';
import { openHistory } from '../warehouse/history.js';
import type { ExitCode } from './exit-code.js';
import { withProjectOption, withWorkspaceOptions } from './options.js';
import type { Act, Runtime } from './runtime.js';
import { readWorkspace, type WorkspaceOptions } from './workspace.js';

interface ReportOptions extends WorkspaceOptions {
  readonly period?: string;
  readonly open?: boolean;
}

export function declareReport(program: Command, act: Act): void {
  withProjectOption(withWorkspaceOptions(program.command('report')))
    .summary('render a report to an HTML page; without a name, list the reports')
    .description(
      'Renders a report from the published history to an HTML page under data/reports/. Without a name, lists the reports there are.',
    )
    .argument('[name]', 'the report, such as weekly')
    .option(
      '--period <period>',
      'an ISO week such as 2026-W46, or a day in it (default: the last week that has ended)',
    )
    .option('--open', 'open the page in the browser')
    .addHelpText(
      'after',
      '\nExamples:\n  readership report\n  readership report weekly --open\n  readership report weekly --period 2026-W46',
    )
    .action((name: string | undefined, options: ReportOptions) =>
      act((runtime) => (name === undefined ? list(options, runtime) : render(name, options, runtime))),
    );
}

async function list(options: ReportOptions, runtime: Runtime): Promise<ExitCode> {
  const { directory } = await readWorkspace(options, runtime);
  const reports = await listReports({ workspaceDir: directory });
  for (const { name, title } of reports) runtime.output.data(`${name.padEnd(12)}  ${title}`);
  return 0;
}

async function render(name: string, options: ReportOptions, runtime: Runtime): Promise<ExitCode> {
  const { projects, historyFile, reportsDir, directory } = await readWorkspace(options, runtime);
  const history = await openHistory(historyFile);
  try {
    for (const project of projects) {
      const rendered = await renderReport({
        ...{ reader: history, name, period: options.period, now: runtime.now(), workspaceDir: directory },
        project: { id: project.id, name: project.name ?? project.id, siteUrl: project.siteUrl },
      });
      const file = await writePage(reportsDir, project.id, rendered);
      runtime.output.data(relative(runtime.workingDirectory, file));
      runtime.output.note(rendered.subject);
      if (options.open === true) openInBrowser(file, runtime);
    }
    return 0;
  } finally {
    history.close();
  }
}

function openInBrowser(file: string, { output }: Runtime): void {
  const opener =
    process.platform === 'darwin' ? 'open' : process.platform === 'win32' ? 'explorer' : 'xdg-open';
  const child = spawn(opener, [file], { detached: true, stdio: 'ignore' });
  child.on('error', () => {
    output.note(`There is no ${opener} here to open the page with; open it yourself: ${file}`);
  });
  child.unref();
}
