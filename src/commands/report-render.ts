import { writeFile } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { ConfigurationError, type ExitCode, messageOf, StorageError } from '../errors.js';
import { isAddress, NOBODY, parseRecipient } from '../config/recipients.js';
import { compose } from '../mail/compose.js';
import { findReport, type ReportDefinition } from '../reports/definition.js';
import { eachLoaded } from '../reports/coverage.js';
import { writePage } from '../reports/pages.js';
import { lastEnded, parsePeriod, type Period } from '../reports/period.js';
import { prepareReport } from '../reports/render.js';
import type { Reader } from '../warehouse/query.js';
import { type Mailing, mailingsOf, noticeOf } from '../steps/mailing.js';
import { openInBrowser } from '../terminal/person.js';
import { openOwnHistory } from '../warehouse/published.js';
import { readWorkspace, type Runtime, type Workspace, type WorkspaceOptions } from '../app/workspace.js';

/** How a report can be rendered without being sent. */
export const FORMATS = ['html', 'text', 'json', 'eml'] as const;

export interface ReportOptions extends WorkspaceOptions {
  readonly period?: string;
  readonly format: (typeof FORMATS)[number];
  readonly output?: string;
  readonly open?: boolean;
  readonly force?: boolean;
  readonly to?: string;
}

/** The period that `--period` names: by default the last that has ended. */
export const choosePeriod = (
  report: ReportDefinition,
  { period }: Pick<ReportOptions, 'period'>,
  { reports: calendar }: Settings,
  now: Date,
): Period =>
  period === undefined
    ? lastEnded(report.period, now, calendar)
    : parsePeriod(report.period, period, calendar);

/**
 * The mailings of a report: to everyone, or to the one recipient that `--to` names. Throws a
 * `ConfigurationError` when there is no recipient.
 */
export function chooseMailings(
  mailings: readonly Mailing[],
  report: string,
  to: string | undefined,
): Mailing[] {
  if (mailings.length === 0)
    throw new ConfigurationError(
      `${report} has no recipients: add them to the configuration, reports.${report}.to.`,
    );
  if (to === undefined) return [...mailings];
  const wanted = parseRecipient(to);
  const chosen = mailings.flatMap((mailing) => {
    const only = mailing.audience.to.filter((one) => one === wanted);
    return only.length === 0 ? [] : { ...mailing, audience: { ...mailing.audience, to: only } };
  });
  const all = new Set(mailings.flatMap(({ audience }) => audience.to));
  if (chosen.length === 0)
    throw new ConfigurationError(
      `${to} is not a recipient of ${report}; its recipients: ${[...all].join(', ')}.`,
    );
  return chosen;
}

/** A report about a project, and the history to render it from. */
interface Rendering {
  readonly workspace: Workspace;
  readonly history: Reader;
  readonly report: ReportDefinition;
  readonly period: Period;
  readonly project: ProjectSettings;
}

/** Renders a report from the published history: pages to files, everything else to stdout or `--output`. */
export async function renderReport(
  name: string,
  options: ReportOptions,
  runtime: Runtime,
): Promise<ExitCode> {
  const workspace = await readWorkspace(options, runtime);
  const { projects, settings, historyFile, directory } = workspace;
  expectOneProject(projects, options);
  const report = await findReport(name, directory);
  const period = choosePeriod(report, options, settings, runtime.now());
  const history = await openOwnHistory(historyFile);
  try {
    const { results: files, empty } = await eachLoaded(projects, (project) =>
      renderOne({ workspace, history, report, period, project }, options, runtime),
    );
    for (const { message } of empty) runtime.output.note(message);
    for (const file of files) if (file !== undefined && options.open === true) openInBrowser(file, runtime);
    return 0;
  } finally {
    history.close();
  }
}

/** Throws a `ConfigurationError` if only pages in a directory could show several projects. */
function expectOneProject(projects: readonly unknown[], { format, output }: ReportOptions): void {
  const single =
    (format === 'eml' && 'An email') ||
    (output !== undefined && 'A file') ||
    (format === 'json' && 'A JSON document');
  if (single !== false && projects.length !== 1)
    throw new ConfigurationError(`${single} covers one project: choose it with --project.`);
}

/** Renders a report about one project. Returns its file; undefined if it went to stdout. */
async function renderOne(
  rendering: Rendering,
  options: ReportOptions,
  runtime: Runtime,
): Promise<string | undefined> {
  const { format, output } = options;
  if (format === 'eml') return writeText(await emailText(rendering, options, runtime), output, runtime);
  const { workspace, history, project, report, period } = rendering;
  const place = { settings: workspace.settings, workspaceDir: workspace.directory };
  const prepared = await prepareReport(place, history, project, { report, period });
  if (format !== 'html') return writeText(prepared[format](), output, runtime);
  if (output !== undefined) return writeText(await prepared.page(), output, runtime);
  const file = await writePage(workspace.reportsDir, project.id, prepared);
  runtime.output.data(relative(runtime.workingDirectory, file));
  runtime.output.note(prepared.subject);
  return file;
}

/** Writes text to the file that `--output` names, or else to stdout. Returns the file. */
async function writeText(
  text: string,
  output: string | undefined,
  { workingDirectory, output: screen }: Runtime,
): Promise<string | undefined> {
  if (output === undefined) {
    screen.data(text);
    return undefined;
  }
  const file = resolve(workingDirectory, output);
  await writeFile(file, text.endsWith('\n') ? text : `${text}\n`).catch((cause: unknown) => {
    throw new StorageError(`Cannot write the report to ${output}: ${messageOf(cause)}`, { cause });
  });
  return file;
}

/**
 * The email that the first recipient, or the one asked for, would get. Sends and records nothing, so
 * it needs neither recipients nor a sender.
 */
async function emailText(
  { workspace, history, report, period, project }: Rendering,
  { to }: ReportOptions,
  { output, now }: Runtime,
): Promise<string> {
  const { settings, shard, directory } = workspace;
  const place = { settings, workspaceDir: directory };
  const mail = settings.mail ?? { from: NOBODY };
  if (to !== undefined && to in settings.channels)
    throw new ConfigurationError(`${to} is a channel, which gets no email: omit --format eml.`);
  const mailings = mailingsOf({ settings, projects: [project], shard }, report).filter(({ audience }) =>
    audience.to.some(isAddress),
  );
  const isPreview = mailings.length === 0 && to === undefined;
  const preview: Mailing = {
    ...{ report, projects: [project], project: project.id },
    audience: { to: [mail.from.address], digest: false, attach: [] },
  };
  const [mailing = preview] = isPreview ? [] : chooseMailings(mailings, report.name, to);
  const recipient = mailing.audience.to.find(isAddress) ?? mail.from.address;
  const content = await (await noticeOf(place, history, mailing, period)).email();
  const key = { report: report.name, project: mailing.project, period: period.name, recipient };
  const { bytes } = await compose(key, content, mail, now());
  if (isPreview)
    output.note(
      `${report.name} has no recipients yet, so this email is addressed to ${mail.from.address}${settings.mail === undefined ? ', also its sender: mail.from is not set' : ''}.`,
    );
  return bytes.toString();
}
