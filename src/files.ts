import { readFileSync } from 'node:fs';
import { access, open, statfs } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** For a `catch`: a file or folder that is not there gives undefined, anything else stays an error. */
export function ignoreMissing(error: unknown): undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error;
}

/** Whether there is a file or folder of that name. Throws when that cannot be told. */
export const exists = async (path: string): Promise<boolean> =>
  (await access(path).then(() => true, ignoreMissing)) ?? false;

/** Bytes that may still be written where a directory lies. */
export async function freeDisk(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/** Waits until a file, or the names in a directory, would survive a loss of power. */
export async function syncToDisk(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

// Both src and dist lie right below the package.
const packageDir = fileURLToPath(new URL('../', import.meta.url));

/** A file of the package itself, such as one of its documentation. */
export const packageFile = (name: string): string => packageDir + name;

export const { version } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as {
  readonly version: string;
};

/** Where reports and templates are looked for: those of the workspace come before the built-in ones. */
export const searchedDirs = (workspaceDir: string | undefined): string[] =>
  workspaceDir === undefined ? [packageDir] : [workspaceDir, packageDir];

/** Whether a report's folder is one of the package. */
export const isBuiltIn = (folder: string): boolean => folder.startsWith(packageDir + 'reports');
