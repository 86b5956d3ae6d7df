import { Option, type Command } from 'commander';
import { spawn } from 'node:child_process';
import { relative, resolve } from 'node:path';
import { ConfigurationError } from '../errors.js';
import type { ProjectSettings } from '../config/schema.js';
import { listReports } from '../reports/catalog.js';
import { FORMATS, inFormat, type Format } from '../reports/formats.js';
import { writeIndex } from '../reports/index-page.js';
import { writePage } from '../reports/write.js';
import { renderFor } from '../schedule/mailing.js';
import { renderEach } from './render-each.js';
import { openHistory } from '../warehouse/history.js';
import type { ExitCode } from './exit-code.js';
import { ENVIRONMENT_HELP, withProjectOption, withWorkspaceOptions } from './options.js';
import { writeMail } from './report-mail.js';
import { onlyProject, writeOutput } from './report-output.js';
import { sendReport, type SendOptions } from './report-send.js';
import { settleDelivery, type SettleOptions } from './report-settle.js';
import type { Act, Runtime } from './runtime.js';
import { readWorkspace } from './workspace.js';

interface ReportOptions extends SendOptions, SettleOptions {
  readonly open?: boolean;
  readonly send?: boolean;
  readonly format: Format | 'eml';
  readonly output?: string;
}

export function declareReport(program: Command, act: Act): void {
  withProjectOption(withWorkspaceOptions(program.command('report')))
    .summary('render a report, or mail it; without a name, list the reports')
    .description(
      'Renders a report from the published history: to an HTML page under data/reports/, beside an index of all pages, or as text, JSON or a mail to stdout; with --output, to that file instead. With --send, mails it instead, from the live database, to the configured recipients who have not had it. Without a name, lists the reports there are.',
    )
    .argument('[name]', 'the report, such as weekly')
    .option(
      '--period <period>',
      'an ISO week such as 2026-W46, a month such as 2026-11, or a day in it (default: the last that has ended)',
    )
    .addOption(
      new Option(
        '--format <format>',
        'a page in a file; text, JSON, or the mail as it would be sent, to stdout',
      )
        .choices([...FORMATS, 'eml'])
        .default('html'),
    )
    .option('--open', 'open the page in the browser')
    .option('--output <file>', 'write it to this file, whatever the format')
    .option('--send', 'mail it now to the configured recipients who have not had it')
    .option('--force', 'with --send: also to those who had it, or may have')
    .option(
      '--delivered <address>',
      'an email of unknown outcome arrived at this address: never send it again',
    )
    .option('--not-delivered <address>', 'it did not arrive: send it again when it is next due')
    .option('--to <address>', 'with --send or --format eml: only this one of the configured recipients')
    .addHelpText(
      'after',
      `
Examples:
  readership report
  readership report weekly --open
  readership report weekly --period 2026-W46
  readership report weekly --format json | jq .human
  readership report weekly --output weekly.html
  readership report weekly --format eml --output weekly.eml
  readership report weekly --send
  readership report weekly --period 2026-W46 --delivered docs@example.com
${ENVIRONMENT_HELP}`,
    )
    .action((name: string | undefined, options: ReportOptions) =>
      act((runtime) => report(name, options, runtime)),
    );
}

function report(name: string | undefined, options: ReportOptions, runtime: Runtime): Promise<ExitCode> {
  if (name === undefined) return list(options, runtime);
  const { send, force, to, output, format, delivered, notDelivered } = options;
  if (delivered !== undefined || notDelivered !== undefined) return settleDelivery(name, options, runtime);
  if (send === true && output !== undefined)
    throw new ConfigurationError('--output does not go with --send: nothing is written to a file.');
  if (send === true) return sendReport(name, options, runtime);
  if (force === true) throw new ConfigurationError('--force goes with --send: it mails a report again.');
  if (to !== undefined && format !== 'eml')
    throw new ConfigurationError('--to goes with --send or --format eml: it says who gets the mail.');
  return format === 'eml' ? writeMail(name, options, runtime) : render(name, format, options, runtime);
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

async function render(
  name: string,
  format: Format,
  options: ReportOptions,
  runtime: Runtime,
): Promise<ExitCode> {
  const workspace = await readWorkspace(options, runtime);
  const { projects, settings, historyFile, reportsDir, directory: workspaceDir } = workspace;
  const { output } = options;
  if (output !== undefined) onlyProject(projects, 'A file');
  if (format === 'json') onlyProject(projects, 'A JSON document');
  const place = { settings, workspaceDir, now: runtime.now };
  const history = await openHistory(historyFile);
  const shown: string[] = [];
  try {
    const wanted = { name, period: options.period, withMail: false };
    const renderOne = (project: ProjectSettings) => renderFor(place, history, project, wanted);
    for await (const { project, rendered } of renderEach(projects, renderOne, runtime.output)) {
      if (output !== undefined) {
        const text = inFormat(rendered, format);
        await writeOutput(output, text.endsWith('\n') ? text : `${text}\n`, runtime);
        if (format === 'html') shown.push(resolve(runtime.workingDirectory, output));
      } else if (format === 'html') {
        const file = await writePage(reportsDir, project.id, rendered);
        runtime.output.data(relative(runtime.workingDirectory, file));
        runtime.output.note(rendered.subject);
        shown.push(file);
      } else {
        runtime.output.data(inFormat(rendered, format));
      }
    }
    if (options.open === true) for (const file of shown) openInBrowser(file, runtime);
    if (format === 'html' && output === undefined)
      await writeIndex(reportsDir, { workspaceDir, calendar: settings.reports });
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
