import { watch } from 'node:fs';
import { join } from 'node:path';
import { readWorkspace, type Runtime } from '../app/workspace.js';
import { ConfigurationError, type ExitCode, messageOf } from '../errors.js';
import { exists } from '../files.js';
import { findReport } from '../reports/definition.js';
import { renderReport, type ReportOptions } from './report-render.js';

/** Editors write a file in several steps, so the report is rendered after a pause. */
const PAUSE_MS = 100;

/** Renders a report, and again whenever a file of it or a template changes, until it is interrupted. */
export async function watchReport(name: string, options: ReportOptions, runtime: Runtime): Promise<ExitCode> {
  const { directory } = await readWorkspace(options, runtime);
  if (directory === undefined)
    throw new ConfigurationError('--watch is for your own reports, and the sandbox has none.');
  const { folder } = await findReport(name, directory);
  const render = async ({ open }: { open: boolean }) => {
    await renderReport(name, { ...options, open }, runtime).catch((error: unknown) => {
      runtime.output.note(messageOf(error));
    });
  };
  await render({ open: options.open === true });
  let rendering = Promise.resolve();
  let pause: NodeJS.Timeout | undefined;
  const changed = () => {
    clearTimeout(pause);
    pause = setTimeout(() => {
      rendering = rendering.then(() => render({ open: false }));
    }, PAUSE_MS);
  };
  const templates = join(directory, 'templates');
  const watched = [folder, ...((await exists(templates)) ? [templates] : [])];
  const watchers = watched.map((path) => watch(path, { recursive: true }, changed));
  runtime.output.note(`Watching ${watched.join(' and ')}; Ctrl-C ends it.`);
  if (!runtime.signal.aborted)
    await new Promise((resolve) => {
      runtime.signal.addEventListener('abort', resolve, { once: true });
    });
  clearTimeout(pause);
  for (const watcher of watchers) watcher.close();
  await rendering;
  return 0;
}
