import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, StorageError } from '../errors.js';
import type { RenderedReport } from './render.js';

/**
 * Writes a rendered page to `<directory>/<project>/<report>-<period>.html`, in one step, and returns that path. Throws
 * a `StorageError` when it cannot be written.
 */
export async function writePage(
  directory: string,
  project: string,
  { name, period, html }: RenderedReport,
): Promise<string> {
  // A project id is the platform's text: encoded, it cannot name another directory.
  const folder = join(directory, encodeURIComponent(project).replaceAll('.', '%2E'));
  const file = join(folder, `${name}-${period}.html`);
  try {
    await mkdir(folder, { recursive: true });
    await writeFile(`${file}.unfinished`, html);
    await rename(`${file}.unfinished`, file);
    return file;
  } catch (cause) {
    throw new StorageError(`Cannot write the report to ${file}: ${messageOf(cause)}`, { cause });
  }
}
