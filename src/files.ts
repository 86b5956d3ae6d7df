import {
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  Stats,
  writeFileSync,
} from 'node:fs';
import { access, constants, lstat, open, readdir, readFile, rm, stat, statfs } from 'node:fs/promises';
import { basename, dirname, extname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeOf, ConfigurationError, messageOf, StorageError } from './errors.js';

/** For a `catch`: returns undefined for a missing file or folder, and throws any other error. */
export function ignoreMissing(error: unknown): undefined {
  const code = codeOf(error);
  if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error;
}

/** Whether a file or folder exists. Throws if that cannot be determined. */
export const exists = async (path: string): Promise<boolean> =>
  (await access(path).then(() => true, ignoreMissing)) ?? false;

/** What a file in another encoding, such as Latin-1 or UTF-16, has when it is read as UTF-8. */
const NOT_UTF8 = /[\uFFFD\0]/;

/**
 * The text of a file that people write; undefined if there is none. Throws a `ConfigurationError` if it
 * cannot be read, or is not in UTF-8.
 */
export async function readText(
  path: string,
  read: (path: string) => Promise<string> = readFileOnly,
): Promise<string | undefined> {
  const text = await read(path)
    .catch(ignoreMissing)
    .catch((cause: unknown) => {
      throw new ConfigurationError(
        `Cannot read ${path}: ${messageOf(cause)}. Check that it is a file, and who may read it.`,
        { cause },
      );
    });
  const [before = '', ...others] = text?.split(NOT_UTF8) ?? [];
  if (others.length === 0) return text;
  const place = `${basename(path)}:${before.split('\n').length}`;
  throw new ConfigurationError(
    `${path} has a problem:\n  ${place}  is not in UTF-8: save it in that encoding`,
  );
}

/** The text of a file. Throws for anything else: opening a pipe would wait for its writer, and no signal ends that. */
export async function readFileOnly(path: string): Promise<string> {
  if (!(await stat(path)).isFile()) throw new Error('it is not a file');
  return readFile(path, 'utf8');
}

/** Throws a `StorageError` if there is something else in the place of a data directory. */
export async function expectDirectory(path: string): Promise<void> {
  const isThere = (await lstat(path).catch(() => undefined)) !== undefined;
  const target = await stat(path).catch((error: unknown) => error);
  if (!isThere || (target instanceof Stats && target.isDirectory()) || codeOf(target) === 'EACCES') return;
  const what = target instanceof Stats ? 'not a directory' : 'a link to a directory that does not exist';
  throw new StorageError(
    `The data directory ${path} is ${what}. Set dataDir to a directory, or restore what is missing.`,
  );
}

/**
 * Creates a directory, and those above it. Returns the first that did not exist, if any. On a read-only disk, Node.js says
 * that there is no such file, and this the reason.
 */
export function makeDirectories(path: string, mode?: number): string | undefined {
  const create = () => mkdirSync(path, { recursive: true, mode });
  try {
    return create();
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    let missing = path;
    while (!existsSync(dirname(missing))) missing = dirname(missing);
    mkdirSync(missing, { mode });
    return create();
  }
}

/** Creates a private directory. Returns the first of the directories that did not exist, if any. */
export async function makeDirectory(path: string): Promise<string | undefined> {
  try {
    return makeDirectories(path, 0o700);
  } catch (cause) {
    await expectDirectory(path);
    throw new StorageError(
      `Cannot create the data directory ${path}: ${messageOf(cause)}. Set dataDir to a directory you can write to.`,
      { cause },
    );
  }
}

/** A path as messages show it: relative to `directory`. */
export const relativePath = (path: string, directory: string): string => relative(directory, path) || '.';

/** Free bytes on the file system of a directory. */
export async function freeDisk(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/** Whether a directory is on a disk that is mounted read-only, as after errors of the disk. */
export const isOnReadOnlyDisk = async (directory: string): Promise<boolean> =>
  access(`${directory}/.`, constants.W_OK).then(
    () => false,
    (error: unknown) => codeOf(error) === 'EROFS',
  );

/**
 * The file that a path leads to through symbolic links, even if it does not exist yet: renaming a file over a link
 * would replace the link.
 */
export function behindLinks(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    try {
      return resolve(dirname(path), readlinkSync(path));
    } catch {
      return path;
    }
  }
}

/**
 * Writes a file under another name and renames it, so that no reader sees half of it. Directories
 * that are created for it can be entered by everyone whom `mode` lets read the file.
 */
export function writeWhole(path: string, text: string, mode = 0o600): void {
  const file = behindLinks(path);
  const beside = `${file}.${process.pid}.new`;
  makeDirectories(dirname(file), mode | ((mode & 0o444) >> 2));
  try {
    writeFileSync(beside, text, { mode });
    renameSync(beside, file);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
}

const isWindows = process.platform === 'win32';

/** How the names of unfinished next versions of a file begin, with which a killed process may leave logs and directories. */
export const nextOf = (path: string): string => `${path}.next-`;

/** Removes the files and directories whose paths begin so. */
export async function removeStarting(beginning: string): Promise<void> {
  const [directory, start] = [dirname(beginning), basename(beginning)];
  for (const name of (await readdir(directory).catch(ignoreMissing)) ?? [])
    if (name.startsWith(start)) await rm(join(directory, name), { recursive: true, force: true });
}

/** The mode of files that nobody should change. Windows cannot replace a file with a read-only one. */
export const READ_ONLY = isWindows ? 0o644 : 0o444;

/**
 * Syncs a file, or the names in a directory, to disk. Windows cannot sync directories, and syncs
 * only files that are open for writing.
 */
export async function syncToDisk(path: string): Promise<void> {
  if (isWindows && (await stat(path)).isDirectory()) return;
  const handle = await open(path, isWindows ? 'r+' : 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** What changes when a file is replaced or written to; undefined if there is none. */
export async function stampOf(path: string): Promise<string | undefined> {
  // What a setting names may be an address.
  const found = await stat(path).catch(() => undefined);
  return found && `${found.ino} ${found.size} ${found.mtimeMs}`;
}

// In the package, src is directly below it, and a build in dist.
const above = fileURLToPath(new URL('../', import.meta.url));
const packageDir = existsSync(`${above}package.json`)
  ? above
  : fileURLToPath(new URL('../../', import.meta.url));

/** A file of the package itself, such as a documentation page. */
export const packageFile = (name: string): string => packageDir + name;

export const { version } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as {
  readonly version: string;
};

/** Where reports and templates are searched for: the workspace's override the built-in ones. */
export const searchedDirs = (workspaceDir: string | undefined): string[] =>
  workspaceDir === undefined ? [packageDir] : [workspaceDir, packageDir];

/** A file of the workspace, or else the built-in one of the same name. */
export function ownOrBuiltIn(name: string, workspaceDir: string | undefined): string {
  const files = searchedDirs(workspaceDir).map((dir) => join(dir, name));
  const file = files.find((candidate) => existsSync(candidate));
  if (file === undefined) throw new ConfigurationError(`${name} is missing: reinstall Readership`);
  return file;
}

/** Whether a report's folder or a template is built in. */
export const isBuiltIn = (path: string): boolean =>
  /^(?:reports|templates)\b/.test(relative(packageDir, path));

/** The format for the name of `--output`; `hint` lists the known names. */
export function formatOf<Format>(
  file: string,
  formats: Readonly<Record<string, Format>>,
  hint: string,
): Format {
  const format = formats[extname(file).toLowerCase()];
  if (format === undefined) throw new ConfigurationError(`${file}: ${hint}`);
  return format;
}
