import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { messageOf, StorageError } from '../../errors.js';
import { ignoreMissing } from '../../files.js';

/** What a lake holds: the views, and which days are stored. Each has files by month. */
export const DATASETS = ['views', 'days'] as const;

/** Named for its month, who wrote it, and what it says; so a file never changes, and one that is named is the one meant. */
const fileSchema = z
  .string()
  .regex(/^(?:views|days)\/month=\d{4}-\d{2}\/(?:all|shard-\d+-of-\d+)-[0-9a-f]{16}\.parquet$/);
const partsSchema = z.array(z.object({ file: fileSchema, rows: z.int() }));

const manifestSchema = z.object({
  version: z.literal(1),
  views: partsSchema,
  days: partsSchema,
  /** Files that the state before this one had instead; they are removed right after the commit. */
  replaced: z.array(fileSchema),
});

/** One committed state of what one publisher has in a lake. */
export type Manifest = z.infer<typeof manifestSchema>;

export const filesOf = ({ views, days }: Pick<Manifest, 'views' | 'days'>): string[] =>
  [...views, ...days].map(({ file }) => file);

/** The committed state; undefined before the first. Throws a `StorageError` when the file says something else. */
export async function readManifest(path: string): Promise<Manifest | undefined> {
  const text = await readFile(path, 'utf8').catch(ignoreMissing);
  if (text === undefined) return undefined;
  try {
    return manifestSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw new StorageError(
      `${path} is not a manifest that this version can read (${messageOf(cause)}). Nothing was removed: without it nobody knows which files are part of the lake. ` +
        `If a newer Readership wrote it, install that; otherwise publish to another directory`,
      { cause },
    );
  }
}

/**
 * The state that a publish was about to commit when it ended; undefined when there is none, or only half of it: nothing
 * else is written before it is whole.
 */
export async function readPending(path: string): Promise<Manifest | undefined> {
  const text = await readFile(path, 'utf8').catch(ignoreMissing);
  try {
    return text === undefined ? undefined : manifestSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
