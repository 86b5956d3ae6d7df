import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncToDisk } from '../files.js';

/**
 * The file that the journal is written to. Blanks after its last line reserve room for what must be
 * written later, even if the disk is full by then.
 */
export class JournalFile {
  #file: FileHandle | undefined;
  #reserved = 0;

  /** `end` is where the next line begins. */
  constructor(
    readonly path: string,
    private end: number,
  ) {}

  get isReserved(): boolean {
    return this.#reserved > 0;
  }

  /**
   * Writes lines and syncs them, and changes the room reserved after them by `room` bytes. If that
   * fails, the file is as before.
   */
  async write(text: string, room: number): Promise<void> {
    const file = (this.#file ??= await create(this.path));
    const before = this.#reserved;
    const after = before + room;
    const { end } = this;
    try {
      await writeAt(file, text + ' '.repeat(after), end);
      await file.truncate(end + Buffer.byteLength(text) + after);
      await file.datasync();
    } catch (error) {
      // A partial line would corrupt the next one.
      await file.truncate(end + before).catch(() => undefined);
      await writeAt(file, ' '.repeat(before), end).catch(() => undefined);
      throw error;
    }
    this.end += Buffer.byteLength(text);
    this.#reserved = after;
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }
}

async function create(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  // A restored copy may be readable by others. The user may also not own it.
  await file.chmod(0o600).catch(() => undefined);
  await syncToDisk(dirname(path));
  return file;
}

async function writeAt(file: FileHandle, text: string, at: number): Promise<void> {
  const bytes = Buffer.from(text);
  for (let done = 0; done < bytes.length;)
    done += (await file.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
}
