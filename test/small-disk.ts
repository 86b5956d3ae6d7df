import { execFile } from 'node:child_process';
import { statfs } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { TestContext } from 'vitest';

const run = promisify(execFile);

const ROOMY_BYTES = 256 * 2 ** 20;

/** A separate in-memory disk for a directory that can be filled up and made read-only. Needs root and Linux. */
export class SmallDisk {
  private constructor(readonly directory: string) {}

  /** Undefined where this user, or this machine, may not mount. */
  static async mountedOn(directory: string): Promise<SmallDisk | undefined> {
    try {
      await run('mount', ['-t', 'tmpfs', '-o', `size=${ROOMY_BYTES},mode=0700`, 'tmpfs', directory]);
    } catch {
      return undefined;
    }
    return new SmallDisk(directory);
  }

  /** Leaves room for this many more bytes. */
  async leaveRoom(bytes: number): Promise<void> {
    const { blocks, bfree, bsize } = await statfs(this.directory);
    await this.#remount(`size=${(blocks - bfree) * bsize + bytes}`);
  }

  makeRoom(): Promise<void> {
    return this.#remount(`size=${ROOMY_BYTES}`);
  }

  async setReadOnly(isReadOnly: boolean): Promise<void> {
    await this.#remount(isReadOnly ? 'ro' : 'rw');
  }

  /** Unmounts it at once; it is freed when the last process has closed its files. */
  async unmount(): Promise<void> {
    await run('umount', ['--lazy', this.directory]);
  }

  async #remount(option: string): Promise<void> {
    await run('mount', ['-o', `remount,${option}`, this.directory]);
  }
}

/** One until the end of the test, which is skipped if none can be mounted. */
export async function smallDisk(context: TestContext, directory: string): Promise<SmallDisk> {
  const disk = await SmallDisk.mountedOn(directory);
  if (disk === undefined) return context.skip('only root can mount a small disk, on Linux');
  context.onTestFinished(() => disk.unmount());
  return disk;
}
