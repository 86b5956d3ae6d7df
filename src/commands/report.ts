import { type Command, Option } from 'commander';
import { relative } from 'node:path';
import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';
import { ConfigurationError, type ExitCode } from '../errors.js';
import { listReports } from '../reports/definition.js';
import { type Act, ENVIRONMENT_HELP, formatOf, withProjectOption, withWorkspaceOptions } from './options.js';
import { newReport } from './report-new.js';
import { FORMATS, renderReport, type ReportOptions } from './report-render.js';
import { sendReport, settleDelivery, type SettleOptions } from './report-send.js';
import { watchReport } from './report-watch.js';

interface Options extends ReportOptions, SettleOptions {
  readonly watch?: boolean;
}

type GivenOptions = Omit<Options, 'format'> & Partial<Pick<Options, 'format'>>;

const FORMAT_OF: Readonly<Record<string, Options['format']>> = {
  '': 'html',
  '.html': 'html',
  '.txt': 'text',
  '.json': 'json',
  '.eml': 'eml',
};

const NAMES =
  'a report can be written as .html, .txt, .json or .eml, or name its --format. For a PDF, print the page from a browser.';

export function declareReport(program: Command, act: Act): void {
  const command = withProjectOption(withWorkspaceOptions(program.command('report')));
  declareNew(command, act);
  command
    .summary('render a report, or email it; without a name, list the reports')
    .description(
      'Renders a report from the published history: as an HTML page in data/reports/, or as text, JSON or an email to stdout; with --output, to that file instead. With --send, emails it from the live database to the configured recipients who have not received it. Without a name, lists the reports.',
    )
    .argument('[name]', 'the report, such as weekly')
    .option(
      '--period <period>',
      'an ISO week such as 2026-W46, a month such as 2026-11, or a day in it (default: the last period that has ended)',
    )
    .addOption(
      new Option(
        '--format <format>',
        'html writes a page; text, json and eml (the email as it would be sent) go to stdout (default: from the name of --output, else html)',
      ).choices(FORMATS),
    )
    .option('--open', 'open the page in the browser')
    .option('--watch', 'render again whenever a file of the report or a template changes')
    .option('--output <file>', 'write to this file, in any format')
    .option('--send', 'email it now to the configured recipients who have not received it')
    .option('--force', 'with --send: also to those who received it, or may have')
    .option('--to <recipient>', 'with --send or --format eml: only this configured address or channel')
    .option('--delivered <recipient>', 'an email or post of unknown outcome arrived: never send it again')
    .option('--not-delivered <recipient>', 'it did not arrive: send it again when it is next due')
    .addHelpText(
      'after',
      `
Examples:
  readership report
  readership report weekly --open
  readership report new sections        start a report of your own
  readership report sections --watch --open
  readership report weekly --period 2026-W46
  readership report weekly --format json | jq .human
  readership report weekly --output weekly.html
  readership report weekly --output weekly.eml
  readership report weekly --send
  readership report weekly --period 2026-W46 --delivered docs@example.com
  readership report weekly --send --to docs-chat    to a channel (Slack, Teams, webhook): docs/reports.md
${ENVIRONMENT_HELP}`,
    )
    .action((name: string | undefined, options: GivenOptions) =>
      act((runtime) => report(name, options, runtime), { endsByInterruption: options.watch === true }),
    );
}

/** A subcommand, so that no report can be called `new`. */
function declareNew(command: Command, act: Act): void {
  withWorkspaceOptions(command.command('new <name>'))
    .summary('write a report of your own: one query and five lines of YAML')
    .description(
      'Writes reports/NAME/ next to the configuration: report.yaml and one query, for you to edit.',
    )
    .addHelpText('after', '\nExample:\n  readership report new sections')
    .action((name: string, options: WorkspaceOptions) => act((runtime) => newReport(name, options, runtime)));
}

function report(name: string | undefined, given: GivenOptions, runtime: Runtime): Promise<ExitCode> {
  const options = { ...given, format: given.format ?? formatOf(given.output ?? '', FORMAT_OF, NAMES) };
  const { delivered, notDelivered, send, watch, format } = options;
  if (name === undefined) {
    refuse(given, 'without a report', [...RENDERING, ...SENDING, ...SETTLING]);
    return list(options, runtime);
  }
  if (delivered !== undefined || notDelivered !== undefined) {
    refuse(given, 'with --delivered or --not-delivered', [...RENDERING, ...SENDING]);
    return settleDelivery(name, options, runtime);
  }
  if (send === true) {
    refuse(given, 'with --send', RENDERING);
    return sendReport(name, options, runtime);
  }
  refuse(given, 'without --send', ['force']);
  if (format !== 'eml') refuse(given, 'without --send or --format eml', ['to']);
  if (format !== 'html') refuse(given, `with --format ${format}`, ['open']);
  return watch === true ? watchReport(name, options, runtime) : renderReport(name, options, runtime);
}

const RENDERING = ['format', 'output', 'open', 'watch'] as const;
const SENDING = ['send', 'force', 'to'] as const;
const SETTLING = ['delivered', 'notDelivered', 'period', 'project'] as const;

/** Rejects options without effect, which point to a misunderstanding. */
function refuse(given: GivenOptions, when: string, options: readonly (keyof GivenOptions)[]): void {
  const found = options.find((option) => given[option] !== undefined);
  if (found === undefined) return;
  const flag = found.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new ConfigurationError(`--${flag} has no effect ${when}. Nothing was done. Omit it, or see --help.`);
}

/** Lists the working reports, and the problems of the others. */
async function list(options: WorkspaceOptions, runtime: Runtime): Promise<ExitCode> {
  const { output, workingDirectory } = runtime;
  const { directory } = await readWorkspace(options, runtime);
  const { reports, broken } = await listReports(directory);
  const rows = reports.map(({ name, title, period, audience, isBuiltIn, folder }) => {
    const origin = isBuiltIn ? 'built in' : relative(workingDirectory, folder);
    return [name, title, period === 'day' ? 'daily' : `${period}ly`, audience, origin];
  });
  const widthOf = (column: number): number => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  for (const row of rows)
    output.data(
      row
        .map((cell, column) => cell.padEnd(widthOf(column)))
        .join('  ')
        .trimEnd(),
    );
  for (const { message } of broken) output.note(message);
  return broken.length > 0 ? 2 : 0;
}
