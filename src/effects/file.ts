import { constants } from 'node:fs';
import { appendFile, type FileHandle, open, readdir, readFile, stat, truncate } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { z } from 'zod';
import { codeOf, messageOf, StorageError } from '../errors.js';
import { syncToDisk } from '../files.js';
import { storageFailure } from '../storage.js';
import { type JournalLine, lineSchema } from './entries.js';

export const CURRENT = 'effects.log';
const JOURNAL = /^effects(-\d{4})?\.log$/;
const NEWLINE = 0x0a;

/** A line, with its number in the whole journal and a checksum of everything before it. */
export function seal(line: JournalLine, number: number): string {
  const text = JSON.stringify({ ...line, n: number });
  return `${text.slice(0, -1)},"crc":"${checksum(text)}"}\n`;
}

const SEALED = /^(\{.*),"crc":"([^"]*)"\}$/s;
const checksum = (text: string): string => crc32(text).toString(16).padStart(8, '0');

/** Reads lines in order, and checks that none is damaged, missing, repeated or out of order. */
export class LineReader {
  /** How many lines were read. */
  count = 0;

  /** Throws an `Error` that says what is wrong. */
  read(text: string): JournalLine {
    const [, body, sum] = SEALED.exec(text) ?? [];
    const expected = this.count + 1;
    if (body === undefined) throw new Error('it has no checksum.');
    if (checksum(`${body}}`) !== sum) throw new Error('its checksum does not match.');
    const json: unknown = JSON.parse(text);
    const { n } = z.looseObject({ n: z.int() }).parse(json);
    if (n > expected) throw new Error(`it is entry ${n}, and entry ${expected} is missing before it.`);
    if (n < expected)
      throw new Error(`it is entry ${n} again, or out of order: the entry before it is ${this.count}.`);
    this.count = n;
    return lineSchema.parse(json);
  }
}

/** The paths of the journal's files, oldest first. Throws a `StorageError` for anything but a file. */
export async function journalFiles(directory: string): Promise<string[]> {
  const names = (await readdir(directory)).filter((name) => JOURNAL.test(name)).sort();
  const paths = names.map((name) => join(directory, name));
  for (const path of paths) await expectFile(path);
  return paths;
}

/** Reading a pipe would wait forever. */
async function expectFile(path: string): Promise<void> {
  const found = await stat(path).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ELOOP') throw error;
  });
  if (found?.isFile() === true) return;
  throw new StorageError(
    `The effects journal ${path} is ${found === undefined ? 'a link that leads to no file' : 'not a file'}. Nothing was sent. ` +
      'Move it away, and put the journal or its newest backup there (docs/backup.md).',
  );
}

interface FileLines {
  readonly lines: JournalLine[];
  readonly cutBytes: number;
  /** Where the next line belongs. */
  readonly end: number;
}

/**
 * Reads the lines of one file. What follows its last line feed is the room that was reserved for an
 * outcome, or a line that was being written when the process or machine stopped, so nothing was
 * sent for it and it is cut off. Throws a `StorageError` that names a line that cannot be read.
 */
export async function readLines(
  path: string,
  reader: LineReader,
  as: 'holder' | 'reader',
): Promise<FileLines> {
  const bytes = await readFile(path).catch((cause: unknown) => {
    throw storageFailure(`read the effects journal ${path}`, cause);
  });
  const end = bytes.lastIndexOf(NEWLINE) + 1;
  const lines = bytes
    .toString('utf8', 0, end)
    .split('\n')
    .flatMap((text, index) => (text === '' ? [] : numbered(reader, text, path, index + 1)));
  const rest = bytes.toString('utf8', end).trimEnd();
  if (rest === '') return { lines, cutBytes: 0, end };
  if (!isWhole(rest)) {
    if (as === 'holder') await truncate(path, end);
    return { lines, cutBytes: bytes.length - end, end };
  }
  const last = numbered(reader, rest, path, lines.length + 1);
  const size = end + Buffer.byteLength(rest);
  if (as === 'holder') {
    await truncate(path, size);
    await appendFile(path, '\n');
  }
  return { lines: [...lines, last], cutBytes: 0, end: size + 1 };
}

/** Whether a line is complete but for its line feed, which may be damaged. */
const isWhole = (rest: string): boolean => /,"crc":"[^"]{8}"\}[^]?$/u.test(rest) || isJson(rest);

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function numbered(reader: LineReader, text: string, path: string, number: number): JournalLine {
  try {
    return reader.read(text);
  } catch (cause) {
    const problem = cause instanceof z.ZodError ? z.prettifyError(cause) : messageOf(cause);
    throw new StorageError(
      `Line ${number} of the effects journal ${path} cannot be read: ${problem.replaceAll('\n', ' ')}\n` +
        `Nothing was sent. The journal prevents jobs, messages and emails from being sent twice, so restore an intact copy of it, ` +
        `or fix the line. If there is no copy, and the live database was not restored from an older one, ` +
        `move the file away: the next command rebuilds it from the database.\n  mv "${path}" "${path}.damaged"`,
      { cause },
    );
  }
}

/**
 * The file that the journal is written to. Blanks after its last line reserve room for what must be
 * written later, even if the disk is full by then.
 */
export class JournalFile {
  #file: FileHandle | undefined;
  /** How many bytes are reserved. */
  reserved = 0;

  /** `end` is where the next line begins. */
  constructor(
    readonly path: string,
    private end: number,
  ) {}

  /**
   * Writes lines and syncs them, and changes the room reserved after them by `room` bytes. If that
   * fails, the file is as before.
   */
  async write(text: string, room: number): Promise<void> {
    const file = (this.#file ??= await create(this.path));
    const before = this.reserved;
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
    this.reserved = after;
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
