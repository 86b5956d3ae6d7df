import type { DuckDBConnection } from '@duckdb/node-api';
import type { LimitFunction } from 'p-limit';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { literal } from '../duckdb.js';
import { filledIn, readSql } from '../query.js';
import {
  changedFiles,
  type DatasetFile,
  filesOf,
  folderOf,
  removedFiles,
  type StoredMonth,
  workspaceFile,
  type WorkspaceFile,
  workspacePath,
  type WrittenFile,
} from './plan.js';
import { type DatasetError, datasetError, type DatasetStore } from './store.js';

const VIEWS = readSql(import.meta.url, 'views.sql');
const DAYS = readSql(import.meta.url, 'days.sql');

/** The folders of a project in a dataset. */
export interface Folders {
  readonly project: string;
  /** The files in them, with their stamps. */
  readonly stamps: ReadonlyMap<string, string>;
  /** What `_workspace.json` says; undefined if there is none, as in new folders. */
  readonly known: WorkspaceFile | undefined;
}

export async function readFolders(store: DatasetStore, project: string): Promise<Folders> {
  const folder = folderOf(project);
  const stamps = new Map([...(await store.list(`views/${folder}`)), ...(await store.list(`days/${folder}`))]);
  const path = workspacePath(project);
  const text = stamps.has(path) ? await store.read(path) : undefined;
  return { project, stamps, known: text === undefined ? undefined : parseWorkspaceFile(text) };
}

function parseWorkspaceFile(text: string): WorkspaceFile {
  try {
    return workspaceFile.parse(JSON.parse(text));
  } catch {
    return { workspace: 'unknown', project: 'unknown', files: {} };
  }
}

/** Whether a workspace may write the folders. Where case does not matter, two projects can have the same ones. */
export const areOwn = ({ known, project }: Folders, workspace: string): boolean =>
  known === undefined || (known.workspace === workspace && known.project === project);

/** Names the folders that a workspace may not write, and says how it could. */
export function ofOthers(folders: readonly Folders[], location: string): DatasetError {
  const owners = folders.map(
    ({ project, known }) => `days/${folderOf(project)} belongs to workspace ${known?.workspace}`,
  );
  const files = folders.map(({ project }) => workspacePath(project));
  return datasetError(
    location,
    owners.join(', '),
    `choose another place, or, if that workspace no longer exists, remove ${files.join(', ')}, and the next publication makes the folders those of this workspace`,
  );
}

/** What updates need. Files are written one after another, because there is one connection. */
export interface FolderWriter {
  readonly store: DatasetStore;
  readonly location: string;
  readonly connection: DuckDBConnection;
  readonly workspace: string;
  readonly isWhole: boolean;
  readonly signal: AbortSignal;
  readonly inTurn: LimitFunction;
}

/** Brings the folders of a project up to date with its months. */
export async function updateFolders(writer: FolderWriter, folders: Folders, months: readonly StoredMonth[]) {
  const { store, workspace, isWhole, signal } = writer;
  const { project, stamps, known } = folders;
  const written = new Map(Object.entries(known?.files ?? {}));
  const stageWorkspace = async (): Promise<string> => {
    const staged = await store.stage();
    const content: WorkspaceFile = { workspace, project, files: Object.fromEntries(written) };
    await writeFile(staged, `${JSON.stringify(content, undefined, 2)}\n`);
    return staged;
  };
  // First of all, so that no other workspace takes them. It may have done so since they were read.
  if (known === undefined && !(await store.create(await stageWorkspace(), workspacePath(project)))) {
    const now = await readFolders(store, project);
    if (!areOwn(now, workspace)) throw ofOthers([now], writer.location);
  }
  const files = filesOf(project, months);
  const changed = isWhole ? files : changedFiles(files, written, stamps);
  const removed = removedFiles(files, stamps);
  let count = 0;
  for (const file of changed) {
    signal.throwIfAborted();
    const last = await updateFile(writer, folders, file);
    if (last.stamp !== stamps.get(file.path)) count++;
    written.set(file.path, last);
  }
  for (const path of removed) {
    await store.remove(path);
    written.delete(path);
  }
  if (changed.length + removed.length > 0) await store.put(await stageWorkspace(), workspacePath(project));
  return { files: files.length, written: count, removed: removed.length };
}

/** Writes a file, unless it would have the bytes that it has already. */
async function updateFile(writer: FolderWriter, folders: Folders, file: DatasetFile): Promise<WrittenFile> {
  const { store, connection, isWhole, inTurn } = writer;
  const { path, month, version } = file;
  const staged = await store.stage();
  const rows = filledIn(month === undefined ? DAYS : VIEWS, {
    project: folders.project,
    first: `${month}-01`,
  });
  await inTurn(() =>
    connection.run(`COPY (${rows}) TO ${literal(staged)} (FORMAT parquet, COMPRESSION zstd)`),
  );
  const content = createHash('sha256')
    .update(await readFile(staged))
    .digest('hex');
  const before = folders.known?.files[path];
  if (!isWhole && before?.content === content && before.stamp === folders.stamps.get(path))
    return { ...before, version };
  return { version, content, stamp: await store.put(staged, path) };
}
