import { execFile } from 'node:child_process';
import { statfs } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

const ROOMY_BYTES = 256 * 2 ** 20;

/** A disk of its own for a directory, in memory, that can be filled up and made read-only. Needs root, and Linux. */
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

  /** Leaves room for so many bytes beyond what is there. */
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

  /** Gone from the directory at once, and for good when the last process has let go of it. */
  async unmount(): Promise<void> {
    await run('umount', ['--lazy', this.directory]);
  }

  async #remount(option: string): Promise<void> {
    await run('mount', ['-o', `remount,${option}`, this.directory]);
  }
}
