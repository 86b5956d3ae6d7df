import { Option, type Command } from 'commander';
import { spawn } from 'node:child_process';
import { relative } from 'node:path';
import { listReports } from '../reports/catalog.js';
import { FORMATS, inFormat, type Format } from '../reports/formats.js';
import { writeIndex } from '../reports/index-page.js';
import { renderReport } from '../reports/render.js';
import { writePage } from '../reports/write.js';
import { openHistory } from '../warehouse/history.js';
import type { ExitCode } from './exit-code.js';
import { withProjectOption, withWorkspaceOptions } from './options.js';
import type { Act, Runtime } from './runtime.js';
import { readWorkspace, type WorkspaceOptions } from './workspace.js';

interface ReportOptions extends WorkspaceOptions {
  readonly period?: string;
  readonly format: Format;
  readonly open?: boolean;
}

export function declareReport(program: Command, act: Act): void {
  withProjectOption(withWorkspaceOptions(program.command('report')))
    .summary('render a report; without a name, list the reports')
    .description(
      'Renders a report from the published history: to an HTML page under data/reports/, beside an index of all pages, or as text or JSON to stdout. Without a name, lists the reports there are.',
    )
    .argument('[name]', 'the report, such as weekly')
    .option(
      '--period <period>',
      'an ISO week such as 2026-W46, a month such as 2026-11, or a day in it (default: the last that has ended)',
    )
    .addOption(
      new Option('--format <format>', 'a page in a file, or text or JSON to stdout')
        .choices(FORMATS)
        .default('html'),
    )
    .option('--open', 'open the page in the browser')
    .addHelpText(
      'after',
      '\nExamples:\n  readership report\n  readership report weekly --open\n  readership report weekly --period 2026-W46\n  readership report weekly --format json | jq .human',
    )
    .action((name: string | undefined, options: ReportOptions) =>
      act((runtime) => (name === undefined ? list(options, runtime) : render(name, options, runtime))),
    );
}

async function list(options: ReportOptions, runtime: Runtime): Promise<ExitCode> {
  const { directory } = await readWorkspace(options, runtime);
  const reports = await listReports({ workspaceDir: directory });
  const rows = reports.map(({ name, title, period, audience, isBuiltIn, folder }) => {
    const origin = isBuiltIn ? 'built in' : relative(runtime.workingDirectory, folder);
    return [name, title, `a ${period}`, audience, origin];
  });
  const widthOf = (column: number): number => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  for (const row of rows) {
    runtime.output.data(
      row
        .map((cell, column) => cell.padEnd(widthOf(column)))
        .join('  ')
        .trimEnd(),
    );
  }
  return 0;
}

async function render(name: string, options: ReportOptions, runtime: Runtime): Promise<ExitCode> {
  const { projects, settings, historyFile, reportsDir, directory } = await readWorkspace(options, runtime);
  const calendar = settings.reports;
  const history = await openHistory(historyFile);
  try {
    for (const project of projects) {
      const rendered = await renderReport({
        ...{ reader: history, name, period: options.period, now: runtime.now() },
        ...{ calendar, workspaceDir: directory, withMail: false },
        project: { id: project.id, name: project.name ?? project.id, siteUrl: project.siteUrl },
      });
      if (options.format !== 'html') {
        runtime.output.data(inFormat(rendered, options.format));
        continue;
      }
      const file = await writePage(reportsDir, project.id, rendered);
      runtime.output.data(relative(runtime.workingDirectory, file));
      runtime.output.note(rendered.subject);
      if (options.open === true) openInBrowser(file, runtime);
    }
    if (options.format === 'html') await writeIndex(reportsDir, { workspaceDir: directory, calendar });
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
