import { watch } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { selectingNow } from '../agents/plan.js';
import { withHistory } from '../app/state.js';
import { withoutSecrets } from '../app/secrets.js';
import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';
import { ConfigurationError, type ExitCode, messageOf, StorageError } from '../errors.js';
import { exists } from '../files.js';
import { eachLoaded } from '../reports/coverage.js';
import { findReport } from '../reports/definition.js';
import { writePage } from '../reports/report-pages.js';
import { choosePeriod } from '../reports/period.js';
import { type PreparedReport, prepareReport } from '../reports/render.js';
import { untilAborted } from '../sleep.js';
import { openInBrowser } from '../terminal/person.js';

/** How a report can be rendered without being sent. */
export const FORMATS = ['html', 'text', 'json'] as const;

export interface ReportOptions extends WorkspaceOptions {
  readonly period?: string;
  readonly format: (typeof FORMATS)[number];
  readonly output?: string;
  readonly open?: boolean;
}

/**
 * Renders a report from the history: pages to files, everything else to stdout or
 * `--output`.
 */
export async function renderReport(
  name: string,
  options: ReportOptions,
  runtime: Runtime,
): Promise<ExitCode> {
  const workspace = await readWorkspace(options, runtime, 'optional');
  const { settings, workspaceDir, projects } = workspace;
  // Of several projects, there can only be pages in a directory, and text.
  if (projects.length !== 1 && (options.format === 'json' || options.output !== undefined))
    throw new ConfigurationError(
      `${options.format === 'json' ? 'A JSON document' : 'A file'} covers one project: choose it with --project.`,
    );
  const report = await findReport(name, workspaceDir);
  const now = runtime.now();
  const period = choosePeriod(report.period, options.period, now, settings.reports);
  const { results: files, empty } = await withHistory(workspace, ({ history, state }) => {
    const selectNow = selectingNow({
      reader: history,
      state,
      rules: settings.improve,
      now,
      signal: runtime.signal,
    });
    return eachLoaded(projects, async (project) => {
      const prepared = await prepareReport(workspace, history, project, { report, period, now, selectNow });
      const isPage = options.format === 'html' && options.output === undefined;
      if (isPage) return writeNamedPage(workspace.reportsDir, project.id, prepared, runtime);
      const text = options.format === 'html' ? await prepared.page() : prepared[options.format]();
      return writeText(text, options.output, runtime);
    });
  });
  for (const { error } of empty) runtime.output.note(error.message);
  const environment = withoutSecrets(runtime.environment, settings);
  if (options.open === true)
    for (const file of files) if (file !== undefined) openInBrowser(file, environment, runtime.output);
  return 0;
}

/** Writes a page among those of all reports, and names it. Returns its file. */
async function writeNamedPage(
  reportsDir: string,
  project: string,
  prepared: PreparedReport,
  { workingDirectory, output }: Runtime,
): Promise<string> {
  const file = await writePage(reportsDir, project, prepared);
  output.data(relative(workingDirectory, file));
  output.note(prepared.subject);
  return file;
}

/** Writes text to the file that `--output` names, or else to stdout. Returns the file. */
async function writeText(
  text: string,
  file: string | undefined,
  { workingDirectory, output }: Runtime,
): Promise<string | undefined> {
  if (file === undefined) {
    output.data(text);
    return undefined;
  }
  const path = resolve(workingDirectory, file);
  await writeFile(path, text.endsWith('\n') ? text : `${text}\n`).catch((cause: unknown) => {
    throw new StorageError(`Cannot write the report to ${file}: ${messageOf(cause)}`, { cause });
  });
  return path;
}

/** Editors write a file in several steps, so the report is rendered after a pause. */
const PAUSE_MS = 100;

/**
 * Renders a report, and again whenever a file of it or a template changes, until it is interrupted.
 */
export async function watchReport(name: string, options: ReportOptions, runtime: Runtime): Promise<ExitCode> {
  const { output, signal } = runtime;
  const { workspaceDir } = await readWorkspace(options, runtime, 'none');
  if (workspaceDir === undefined)
    throw new ConfigurationError('--watch is for your own reports, and the sandbox has none.');
  const { folder } = await findReport(name, workspaceDir);
  const render = async (given: ReportOptions) => {
    await renderReport(name, given, runtime).catch((error: unknown) => {
      output.note(messageOf(error));
    });
  };
  await render(options);
  let rendering = Promise.resolve();
  let pause: NodeJS.Timeout | undefined;
  const changed = () => {
    clearTimeout(pause);
    pause = setTimeout(() => {
      rendering = rendering.then(() => render({ ...options, open: false }));
    }, PAUSE_MS);
  };
  const templates = join(workspaceDir, 'templates');
  const watched = [folder, ...((await exists(templates)) ? [templates] : [])];
  const watchers = watched.map((path) => watch(path, { recursive: true }, changed));
  output.note(`Watching ${watched.join(' and ')}; press Ctrl-C to stop.`);
  await untilAborted(signal);
  clearTimeout(pause);
  for (const watcher of watchers) watcher.close();
  await rendering;
  return 0;
}
