import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readWorkspace, type Runtime, type WorkspaceOptions } from '../app/workspace.js';
import { ConfigurationError, type ExitCode, messageOf, StorageError } from '../errors.js';
import { exists } from '../files.js';
import { inTitle } from '../format/text.js';

const FILES = fileURLToPath(new URL('../../templates/workspace/report/', import.meta.url));

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
