import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { ConfigurationError, messageOf, StorageError } from '../errors.js';
import type { Runtime } from './runtime.js';

/** Writes to the file that `--output` names. Throws a `StorageError` when it cannot be written. */
export async function writeOutput(
  file: string,
  content: string | Uint8Array,
  runtime: Pick<Runtime, 'workingDirectory'>,
): Promise<void> {
  try {
    await writeFile(resolve(runtime.workingDirectory, file), content);
  } catch (cause) {
    throw new StorageError(`Cannot write the report to ${file}: ${messageOf(cause)}`, { cause });
  }
}

/** The one project that a single file or mail can be about. Throws a `ConfigurationError` when there are others. */
export function onlyProject<Project>(projects: readonly Project[], what: string): Project {
  const [project, ...others] = projects;
  if (project === undefined || others.length > 0)
    throw new ConfigurationError(`${what} is about one project: choose it with --project.`);
  return project;
}
