import { execFile } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const SOURCE = fileURLToPath(new URL('tear.c', import.meta.url));

/** The change of a file at which a process is killed, counted from 1: before it, or in the middle of it. */
export interface KilledChange {
  readonly change: number;
  readonly isTorn: boolean;
  /** How much of a torn change is made. */
  readonly permille: number;
}

/** The compiled `tear.c`; undefined if there is no C compiler or no LD_PRELOAD. */
export async function buildShim(): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined;
  const shim = join(await mkdtemp(join(tmpdir(), 'readership-tear-')), 'tear.so');
  try {
    await promisify(execFile)('cc', ['-shared', '-fPIC', '-O1', '-o', shim, SOURCE, '-ldl', '-lpthread']);
    return shim;
  } catch {
    return undefined;
  }
}

/** The environment of a process for which one change of a file by `call` fails, or, without a number, its changes are counted. */
export const failedAt = (
  shim: string,
  call: string,
  change: number | undefined,
  directory: string,
  file: string,
) => ({
  LD_PRELOAD: shim,
  TEAR: [directory, change ?? 0, change === undefined ? 'count' : 'failed', 0].join('\t'),
  TEAR_FILES: file,
  TEAR_CALL: call,
});

/** The environment of a process that dies at a change of a file in `directory` whose name contains one of `files`. */
export const killedAt = (
  shim: string,
  { change, isTorn, permille }: KilledChange,
  directory: string,
  files: readonly string[],
) => ({
  LD_PRELOAD: shim,
  TEAR: [directory, change, isTorn ? 'torn' : 'whole', permille].join('\t'),
  TEAR_FILES: files.join(' '),
});
