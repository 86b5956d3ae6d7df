import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { MAILED_REPORTS, type ProjectSettings, type Settings } from '../config/schema.js';
import { ConfigurationError, type ExitCode, messageOf, StorageError } from '../errors.js';
import { type MailAddress, NOBODY, parseMailAddress } from '../config/mail-address.js';
import { findReport, type ReportDefinition } from '../reports/catalog.js';
import { NothingLoadedError } from '../reports/errors.js';
import { writeIndex, writePage } from '../reports/pages.js';
import { lastEnded, parsePeriod, type Period } from '../reports/period.js';
import type { PreparedReport } from '../reports/render.js';
import { composeMails, recipientsOf, reportOn } from '../steps/mailing.js';
import type { Output } from '../terminal/output.js';
import { openHistory } from '../warehouse/published.js';
import { readWorkspace, type Runtime, type Workspace, type WorkspaceOptions } from '../app/workspace.js';

/** How a report can be rendered without being sent. */
export const FORMATS = ['html', 'text', 'json', 'eml'] as const;

export interface ReportOptions extends WorkspaceOptions {
  readonly period?: string;
  readonly format: (typeof FORMATS)[number];
  readonly output?: string;
  readonly open?: boolean;
  readonly send?: boolean;
  readonly force?: boolean;
  readonly to?: string;
}

/** The report of that name, and the period that `--period` names: by default the last that has ended. */
export async function chooseReport(
  name: string,
  { period }: Pick<ReportOptions, 'period'>,
  { settings, workspaceDir }: { settings: Settings; workspaceDir: string | undefined },
  now: Date,
): Promise<{ report: ReportDefinition; period: Period }> {
  const report = await findReport(name, workspaceDir);
  const calendar = settings.reports;
  return {
    report,
    period:
      period === undefined
        ? lastEnded(report.period, now, calendar)
        : parsePeriod(report.period, period, calendar),
  };
}

/** The configured recipients, or the one of them that was asked for. Throws a `ConfigurationError` when there is none. */
export function chooseRecipients(
  configured: readonly MailAddress[],
  report: string,
  to: string | undefined,
): readonly MailAddress[] {
  if (!MAILED_REPORTS.some((name) => name === report))
    throw new ConfigurationError(
      `Readership mails ${MAILED_REPORTS.join(' and ')} only. To send ${report} yourself, write it as an email: readership report ${report} --format eml --output ${report}.eml`,
    );
  if (configured.length === 0)
    throw new ConfigurationError(
      `${report} has no recipients: name them in the configuration, reports.${report}.to.`,
    );
  if (to === undefined) return configured;
  const chosen = configured.filter((address) => address === parseMailAddress(to));
  if (chosen.length === 0)
    throw new ConfigurationError(
      `${to} is not a recipient of ${report}; its recipients: ${configured.join(', ')}.`,
    );
  return chosen;
}

/**
 * Prepares a report for one project after another. One with nothing loaded for the period, as before
 * its launch, is noted and skipped; when that is true of all, the first `NothingLoadedError` is thrown.
 */
export async function* prepareEach(
  projects: readonly ProjectSettings[],
  prepare: (project: ProjectSettings) => Promise<PreparedReport>,
  output: Output,
): AsyncGenerator<{ readonly project: ProjectSettings; readonly report: PreparedReport }> {
  const empty: NothingLoadedError[] = [];
  for (const project of projects) {
    let report;
    try {
      report = await prepare(project);
    } catch (error) {
      if (!(error instanceof NothingLoadedError)) throw error;
      empty.push(error);
      continue;
    }
    yield { project, report };
  }
  const [first] = empty;
  if (first !== undefined && empty.length === projects.length) throw first;
  for (const { message } of empty) output.note(message);
}

/** Renders a report from the published history: pages to files, everything else to stdout or `--output`. */
export async function renderReport(
  name: string,
  options: ReportOptions,
  runtime: Runtime,
): Promise<ExitCode> {
  const workspace = await readWorkspace(options, runtime);
  const { projects, settings, historyFile, reportsDir, directory: workspaceDir } = workspace;
  const { format, output } = options;
  if (format === 'eml') onlyProject(projects, 'An email');
  if (output !== undefined) onlyProject(projects, 'A file');
  if (format === 'json') onlyProject(projects, 'A JSON document');
  const place = { settings, workspaceDir };
  const { report, period } = await chooseReport(name, options, place, runtime.now());
  const isStored = format === 'html' && output === undefined;
  const shown: string[] = [];
  const history = await openHistory(historyFile);
  try {
    const prepare = (project: ProjectSettings) => reportOn(place, history, project, report, period);
    for await (const { project, report } of prepareEach(projects, prepare, runtime.output)) {
      if (isStored) {
        const file = await writePage(reportsDir, project.id, report);
        runtime.output.data(relative(runtime.workingDirectory, file));
        runtime.output.note(report.subject);
        shown.push(file);
      } else if (output === undefined) {
        runtime.output.data(await inFormat(report, project, workspace, options, runtime));
      } else {
        const text = await inFormat(report, project, workspace, options, runtime);
        await writeOutput(output, text, format, runtime);
        if (format === 'html') shown.push(resolve(runtime.workingDirectory, output));
      }
    }
    if (options.open === true) for (const file of shown) openInBrowser(file, runtime);
    if (isStored) await writeIndex(reportsDir, { workspaceDir, calendar: settings.reports });
    return 0;
  } finally {
    history.close();
  }
}

/** The report as text; an email as its bytes, each a character of Latin-1. */
async function inFormat(
  report: PreparedReport,
  project: ProjectSettings,
  { settings }: Workspace,
  options: ReportOptions,
  runtime: Runtime,
): Promise<string> {
  switch (options.format) {
    case 'html':
      return report.page();
    case 'text':
      return report.text();
    case 'json':
      return report.json();
    case 'eml':
      return writtenMail(report, project, settings, options, runtime);
  }
}

/**
 * The email that the first recipient, or the one asked for, would get. Sends and records nothing, so
 * it needs neither recipients nor a sender.
 */
async function writtenMail(
  report: PreparedReport,
  project: ProjectSettings,
  settings: Settings,
  { to }: ReportOptions,
  { output, now }: Runtime,
): Promise<string> {
  const configured = recipientsOf(settings, report.name);
  const mail = settings.mail ?? { from: NOBODY };
  const isPreview = configured.length === 0 && to === undefined;
  const recipients = isPreview
    ? [mail.from.address]
    : chooseRecipients(configured, report.name, to).slice(0, 1);
  const messages = await composeMails({ ...settings, mail }, project, report, recipients, now());
  if (isPreview)
    output.note(
      `${report.name} has no recipients yet, so this email is addressed to ${mail.from.address}${settings.mail === undefined ? ', also its sender: mail.from is not set' : ''}.`,
    );
  return messages.map(({ bytes }) => bytes.toString('latin1')).join('');
}

/** Writes to the file that `--output` names. Throws a `StorageError` when it cannot be written. */
async function writeOutput(
  file: string,
  text: string,
  format: ReportOptions['format'],
  { workingDirectory }: Pick<Runtime, 'workingDirectory'>,
): Promise<void> {
  try {
    const path = resolve(workingDirectory, file);
    if (format === 'eml') await writeFile(path, text, 'latin1');
    else await writeFile(path, text.endsWith('\n') ? text : `${text}\n`);
  } catch (cause) {
    throw new StorageError(`Cannot write the report to ${file}: ${messageOf(cause)}`, { cause });
  }
}

/** The one project of a single file or email. Throws a `ConfigurationError` when there are others. */
function onlyProject(projects: readonly ProjectSettings[], what: string): void {
  if (projects.length !== 1)
    throw new ConfigurationError(`${what} is about one project: choose it with --project.`);
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
