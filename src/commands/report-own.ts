import { watch } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';
import { ConfigurationError, type ExitCode, messageOf, StorageError } from '../errors.js';
import { exists, packageFile } from '../files.js';
import { inTitle } from '../format/text.js';
import { findReport } from '../reports/definition.js';
import { untilAborted } from '../sleep.js';
import { renderReport, type ReportOptions } from './report-render.js';

const FILES = packageFile('templates/workspace/report/');

/** Writes a new report that works as is. Replaces nothing. */
export async function newReport(
  name: string,
  options: WorkspaceOptions,
  runtime: Runtime,
): Promise<ExitCode> {
  const { output, workingDirectory } = runtime;
  const { directory } = await readWorkspace(options, runtime, false);
  if (directory === undefined)
    throw new ConfigurationError(
      'The sandbox cannot have its own reports: run readership init, and then report new without --sandbox.',
    );
  if (!/^[a-z][a-z0-9_]*$/.test(name))
    throw new ConfigurationError(
      `“${name}” cannot be the name of a report: write lowercase letters, digits and underscores, such as busy_pages.`,
    );
  const folder = join(directory, 'reports', name);
  if (await exists(folder))
    throw new ConfigurationError(
      `${relative(workingDirectory, folder)} already exists. Nothing was changed.`,
    );
  try {
    await mkdir(folder, { recursive: true });
    for (const file of (await readdir(FILES)).sort()) {
      const text = await readFile(join(FILES, file), 'utf8');
      await writeFile(join(folder, file), text.replace('TITLE', inTitle(name)));
      output.data(relative(workingDirectory, join(folder, file)));
    }
  } catch (cause) {
    throw new StorageError(`Cannot write the report to ${folder}: ${messageOf(cause)}`, { cause });
  }
  output.note(`To see it while you edit it: readership report ${name} --watch --open`);
  output.note(`To email it, add recipients to the configuration: reports.${name}.to`);
  return 0;
}

/** Editors write a file in several steps, so the report is rendered after a pause. */
const PAUSE_MS = 100;

/** Renders a report, and again whenever a file of it or a template changes, until it is interrupted. */
export async function watchReport(name: string, options: ReportOptions, runtime: Runtime): Promise<ExitCode> {
  const { output, signal } = runtime;
  const { directory } = await readWorkspace(options, runtime);
  if (directory === undefined)
    throw new ConfigurationError('--watch is for your own reports, and the sandbox has none.');
  const { folder } = await findReport(name, directory);
  const render = async (open: boolean) => {
    await renderReport(name, { ...options, open }, runtime).catch((error: unknown) => {
      output.note(messageOf(error));
    });
  };
  await render(options.open === true);
  let rendering = Promise.resolve();
  let pause: NodeJS.Timeout | undefined;
  const changed = () => {
    clearTimeout(pause);
    pause = setTimeout(() => {
      rendering = rendering.then(() => render(false));
    }, PAUSE_MS);
  };
  const templates = join(directory, 'templates');
  const watched = [folder, ...((await exists(templates)) ? [templates] : [])];
  const watchers = watched.map((path) => watch(path, { recursive: true }, changed));
  output.note(`Watching ${watched.join(' and ')}; Ctrl-C ends it.`);
  await untilAborted(signal);
  clearTimeout(pause);
  for (const watcher of watchers) watcher.close();
  await rendering;
  return 0;
}
