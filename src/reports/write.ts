import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { storageFailure } from '../warehouse/storage-failure.js';
import type { RenderedReport } from './render.js';

/** Writes a rendered page to `<directory>/<project>/<report>-<period>.html`, and returns that path. */
export async function writePage(
  directory: string,
  project: string,
  { name, period, html }: RenderedReport,
): Promise<string> {
  // A project id is the platform's text: encoded, it cannot name another directory.
  const folder = join(directory, encodeURIComponent(project).replaceAll('.', '%2E'));
  const file = join(folder, `${name}-${period}.html`);
  await writeWhole(file, html);
  return file;
}

/** Writes a file in one step, so that nobody sees half of it. Throws a `StorageError` when it cannot be written. */
export async function writeWhole(file: string, text: string): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(`${file}.unfinished`, text, { mode: 0o600 });
    await rename(`${file}.unfinished`, file);
  } catch (cause) {
    throw storageFailure(`write the report to ${file}`, cause);
  }
}
