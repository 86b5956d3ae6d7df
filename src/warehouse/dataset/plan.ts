import { createHash } from 'node:crypto';
import { z } from 'zod';

/** Raised when the columns of the files change, or how a path becomes a page: then every file is written again. */
const FORMAT = 1;

export const monthRow = z.object({
  project: z.string(),
  month: z.string().regex(/^\d{4}-\d{2}$/),
  /** How many views it has. */
  rows: z.int(),
  /** Changes whenever one of its days is loaded, or changes its state. */
  days: z.string(),
});
/** A month of a project in the history. */
export type StoredMonth = z.infer<typeof monthRow>;

/** Identifies a value that consists of texts and numbers. */
export const digestOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex');

/** Identifies the dataset that the history makes at a location. */
export const versionOf = (location: string, months: readonly StoredMonth[]): string =>
  digestOf([location, FORMAT, months]);

const writtenFile = z.object({
  /** Identifies the days that it was written from. */
  version: z.string(),
  /** Identifies its bytes. */
  content: z.string(),
  /** Its stamp after it was written: see `DatasetStore.list`. */
  stamp: z.string(),
});
export type WrittenFile = z.infer<typeof writtenFile>;

/**
 * The file `_workspace.json` of a project: the workspace that writes its folders, and what it wrote there. It is next to
 * those files, and not in the database, so that it is still right after either of them is restored, moved or lost.
 */
export const workspaceFile = z.object({
  workspace: z.string(),
  project: z.string(),
  files: z.record(z.string(), writtenFile),
});
export type WorkspaceFile = z.infer<typeof workspaceFile>;

/** The folder of a project in each table, named as Hive does: only ASCII characters are escaped. */
export function folderOf(project: string): string {
  const escaped = project.replace(/[^\w.\u0080-\u{10ffff}-]/gu, escapeCharacter);
  // Engines read these words as NULL.
  const isNull = /^(null|__hive_default_partition__)$/i.test(project);
  return `project=${isNull ? escaped.replace(/^./, escapeCharacter) : escaped}`;
}

const escapeCharacter = (character: string): string =>
  `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;

/** Not beside the views: some engines read every file in the directory of a table. */
export const workspacePath = (project: string): string => `days/${folderOf(project)}/_workspace.json`;

const VIEWS = /^views\/[^/]+\/month=\d{4}-\d{2}\/views\.parquet$/;

/** A file of the dataset: the views of a month, or all days of a project. */
export interface DatasetFile {
  readonly path: string;
  readonly month?: string;
  readonly version: string;
}

/** All files that a project has in the dataset. The days come last, so that each of them has its views. */
export function filesOf(project: string, months: readonly StoredMonth[]): DatasetFile[] {
  const folder = folderOf(project);
  const views = months
    .filter(({ rows }) => rows > 0)
    .map(({ month, days }) => ({
      path: `views/${folder}/month=${month}/views.parquet`,
      month,
      version: digestOf([FORMAT, days]),
    }));
  const version = digestOf([FORMAT, months.map(({ days }) => days)]);
  return [...views, { path: `days/${folder}/days.parquet`, version }];
}

/** The files to write: those that were not written from the same days, and those that were since lost or replaced. */
export const changedFiles = (
  files: readonly DatasetFile[],
  written: ReadonlyMap<string, WrittenFile>,
  stamps: ReadonlyMap<string, string>,
): DatasetFile[] =>
  files.filter(({ path, version }) => {
    const last = written.get(path);
    return last?.version !== version || last.stamp !== stamps.get(path);
  });

/** The files to remove: months that the history does not have. Anything else in the folders is not ours. */
export function removedFiles(files: readonly DatasetFile[], stamps: ReadonlyMap<string, string>): string[] {
  const paths = new Set(files.map(({ path }) => path));
  return [...stamps.keys()].filter((path) => VIEWS.test(path) && !paths.has(path));
}
