import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { notesFileIn } from '../config/notes.js';
import { dayOf } from '../day.js';
import type { WorkspaceView } from '../steps/parts.js';
import { ignoreMissing, packageFile, stampOf, version } from '../files.js';

/**
 * A digest of all that the results of steps depend on, besides the state and the history: settings and secrets, notes, the
 * workspace's own reports and templates, the sitemap if it is a file, the program, and the day (UTC).
 */
export async function inputsOf(workspace: WorkspaceView, now: Date): Promise<string> {
  const { settings, settingsDigest, projects, workspaceDir, historyFile } = workspace;
  const { sitemap } = settings.improve;
  const digest = createHash('sha256');
  const add = (part: unknown) => digest.update(`${JSON.stringify(part)}\n`);
  add([version, dayOf(now), settingsDigest, projects.map(({ id }) => id)]);
  for (const file of [
    packageFile('dist/cli.js'),
    notesFileIn(workspaceDir ?? dirname(historyFile)),
    sitemap ?? '',
  ])
    add(await stampOf(file));
  if (workspaceDir !== undefined)
    for (const folder of ['reports', 'templates']) add(await stampsIn(join(workspaceDir, folder)));
  return digest.digest('base64');
}

/** The stamps of all files in a folder. */
const stampsIn = async (folder: string): Promise<unknown[]> =>
  Promise.all((await namesIn(folder)).map((name) => stampOf(join(folder, name))));

/** The names of all files in a folder, in an order that does not change; none if there is no such folder. */
export const namesIn = async (folder: string): Promise<string[]> =>
  ((await readdir(folder, { recursive: true }).catch(ignoreMissing)) ?? []).sort();
