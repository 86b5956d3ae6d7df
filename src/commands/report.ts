import { type Command, Option } from 'commander';
import { spawn } from 'node:child_process';
import { relative } from 'node:path';
import { ConfigurationError } from '../errors.js';
import { listReports } from '../reports/catalog.js';
import { writePage } from '../reports/write.js';
import { renderFor } from '../schedule/mailing.js';
import { openHistory } from '../warehouse/history.js';
import type { ExitCode } from './exit-code.js';
import { ENVIRONMENT_HELP, withProjectOption, withWorkspaceOptions } from './options.js';
import { writeMail } from './report-mail.js';
import { sendReport, type SendOptions } from './report-send.js';
import type { Act, Runtime } from './runtime.js';
import { readWorkspace } from './workspace.js';

interface ReportOptions extends SendOptions {
  readonly open?: boolean;
  readonly send?: boolean;
  readonly format: 'html' | 'eml';
  readonly output?: string;
}

export function declareReport(program: Command, act: Act): void {
  withProjectOption(withWorkspaceOptions(program.command('report')))
    .summary('render a report to an HTML page, or mail it; without a name, list the reports')
    .description(
      'Renders a report from the published history to an HTML page under data/reports/. With --send, mails it instead, from the live database, to the configured recipients who have not had it. Without a name, lists the reports there are.',
    )
    .argument('[name]', 'the report, such as weekly')
    .option(
      '--period <period>',
      'an ISO week such as 2026-W46, or a day in it (default: the last week that has ended)',
    )
    .option('--open', 'open the page in the browser')
    .addOption(
      new Option('--format <format>', 'html: a page; eml: the mail, as it would be sent')
        .choices(['html', 'eml'])
        .default('html'),
    )
    .option('--output <file>', 'write the mail to a file (default: standard output)')
    .option('--send', 'mail it now to the configured recipients who have not had it')
    .option('--force', 'with --send: also to those who had it, or may have')
    .option('--to <address>', 'only this one of the configured recipients')
    .addHelpText(
      'after',
      `
Examples:
  readership report
  readership report weekly --open
  readership report weekly --period 2026-W46
  readership report weekly --format eml --output weekly.eml
  readership report weekly --send
${ENVIRONMENT_HELP}`,
    )
    .action((name: string | undefined, options: ReportOptions) =>
      act((runtime) => report(name, options, runtime)),
    );
}

function report(name: string | undefined, options: ReportOptions, runtime: Runtime): Promise<ExitCode> {
  if (name === undefined) return list(options, runtime);
  if (options.send === true) return sendReport(name, options, runtime);
  if (options.force === true)
    throw new ConfigurationError('--force goes with --send: it mails a report again.');
  return options.format === 'eml' ? writeMail(name, options, runtime) : render(name, options, runtime);
}

async function list(options: ReportOptions, runtime: Runtime): Promise<ExitCode> {
  const { directory } = await readWorkspace(options, runtime);
  const reports = await listReports({ workspaceDir: directory });
  for (const { name, title } of reports) runtime.output.data(`${name.padEnd(12)}  ${title}`);
  return 0;
}

async function render(name: string, options: ReportOptions, runtime: Runtime): Promise<ExitCode> {
  const {
    projects,
    settings,
    historyFile,
    reportsDir,
    directory: workspaceDir,
  } = await readWorkspace(options, runtime);
  const history = await openHistory(historyFile);
  try {
    for (const project of projects) {
      const place = { settings, workspaceDir, now: runtime.now };
      const rendered = await renderFor(place, history, project, { name, period: options.period });
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
