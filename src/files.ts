import { access } from 'node:fs/promises';

/** For a `catch`: a file or folder that is not there gives undefined, anything else stays an error. */
export function ignoreMissing(error: unknown): undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error;
}

/** Whether there is a file or folder of that name. Throws when that cannot be told. */
export const exists = async (path: string): Promise<boolean> =>
  (await access(path).then(() => true, ignoreMissing)) ?? false;
