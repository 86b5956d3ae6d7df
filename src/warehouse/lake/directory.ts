import { chmod, mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Shard, shardName } from '../../config/shard.js';
import { ConfigurationError, messageOf, StorageError } from '../../errors.js';
import { syncToDisk } from '../../files.js';
import { filesOf, type Manifest, readManifest, readPending } from './manifest.js';

/** Manifests, and files that are not part of the lake yet: whoever reads `views` or `days` does not come by. */
const MANIFESTS = '_manifests';
const MANIFEST = /^(?:all|shard-\d+-of-(?<count>\d+))\.json(?:\.next)?$/;
const READABLE = 0o644;
const STAGED = /^(?:views|days)\.month=.+\.staged$/;

/** Where the manifest of a publisher is. */
export const manifestPath = (directory: string, shard: Shard | undefined): string =>
  join(directory, MANIFESTS, `${shardName(shard)}.json`);

/**
 * The directory of a lake, as one publisher sees it. Several publishers share it without knowing of each other: each
 * has a manifest, and its name in the names of its files.
 */
export class LakeDirectory {
  readonly #manifest: string;
  readonly #pending: string;

  private constructor(
    private readonly path: string,
    shard: Shard | undefined,
  ) {
    this.#manifest = manifestPath(path, shard);
    this.#pending = `${this.#manifest}.next`;
  }

  /**
   * Makes the directory, or makes sure that it is a lake, split as this publisher is. Throws a `ConfigurationError`
   * when it is anything else; then nothing in it was touched.
   */
  static async open(path: string, shard: Shard | undefined): Promise<LakeDirectory> {
    await makeDirectory(path);
    const entries = await readdir(path);
    if (!entries.includes(MANIFESTS) && entries.length > 0)
      throw new ConfigurationError(
        `${path} is no lake: it holds ${entries[0]}. Nothing in it was touched. Name a directory that is empty, or not there yet.`,
      );
    const manifests = join(path, MANIFESTS);
    if (await makeDirectory(manifests)) await openToReaders(path, manifests);
    for (const name of await readdir(manifests)) if (!STAGED.test(name)) checkManifest(name, path, shard);
    return new LakeDirectory(path, shard);
  }

  /** Where a file is written before it is a part. */
  staged(file: string): string {
    return join(this.path, MANIFESTS, `${file.replaceAll('/', '.')}.staged`);
  }

  final(file: string): string {
    return join(this.path, file);
  }

  /** Removes what a publish has begun or replaced, and the committed state does not name. Returns that state. */
  async sweep(): Promise<Manifest | undefined> {
    const committed = await readManifest(this.#manifest);
    const pending = await readPending(this.#pending);
    const kept = new Set(committed === undefined ? [] : filesOf(committed));
    const begun = pending === undefined ? [] : filesOf(pending);
    for (const file of begun) await rm(this.staged(file), { force: true });
    for (const file of [...begun, ...(committed?.replaced ?? [])])
      if (!kept.has(file)) await rm(this.final(file), { force: true });
    await rm(this.#pending, { force: true });
    return committed;
  }

  /** Announces a state, so that whatever is written from now on is known to whoever sweeps. */
  async announce(next: Manifest): Promise<void> {
    await writeFile(this.#pending, `${JSON.stringify(next, null, 2)}\n`);
    await syncToDisk(this.#pending);
    await syncToDisk(dirname(this.#pending));
  }

  /** Makes the staged files parts, and then the announced state the committed one, in one step. */
  async commit(written: readonly string[]): Promise<void> {
    for (const month of new Set(written.map((file) => dirname(this.final(file)))))
      for (const directory of [dirname(month), month])
        if (await makeDirectory(directory)) await openToReaders(this.path, directory);
    for (const file of written) {
      await chmod(this.staged(file), READABLE);
      await rename(this.staged(file), this.final(file));
    }
    const changed = written.flatMap((file) => [dirname(file), dirname(dirname(file)), '.']);
    for (const directory of new Set(changed)) await syncToDisk(join(this.path, directory));
    await chmod(this.#pending, READABLE);
    await rename(this.#pending, this.#manifest);
    await syncToDisk(dirname(this.#manifest));
  }
}

/** A directory within the lake is as open as the lake's own, which alone keeps readers out. */
async function openToReaders(lake: string, directory: string): Promise<void> {
  const { mode } = await stat(lake);
  await chmod(directory, (mode & 0o7777) | 0o555);
}

/** For its owner alone. Whether it was not there yet. */
async function makeDirectory(path: string): Promise<boolean> {
  try {
    return (await mkdir(path, { recursive: true, mode: 0o700 })) !== undefined;
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    if (code === 'EEXIST' || code === 'ENOTDIR')
      throw new ConfigurationError(`${path} is no lake: it is a file, or lies in one. Name a directory.`, {
        cause,
      });
    const words = `Cannot make the directory ${path} (${messageOf(cause)}). Name one that you may write.`;
    throw new StorageError(words, { cause });
  }
}

/** Projects split otherwise would be in the lake twice. */
function checkManifest(name: string, path: string, shard: Shard | undefined): void {
  const match = MANIFEST.exec(name);
  if (match === null)
    throw new ConfigurationError(
      `${path} is no lake: ${MANIFESTS} holds ${name}. Nothing in it was touched. Name a directory that is empty, or not there yet.`,
    );
  const count = match.groups?.['count'];
  if (count === shard?.count.toString()) return;
  const split = (shards: number | string | undefined) =>
    shards === undefined ? 'no shards' : `${shards} shards`;
  throw new ConfigurationError(
    `The lake ${path} is written by ${split(count)}, and this is one of ${split(shard?.count)}: its projects would be in it twice. ` +
      `Name another directory, or see docs/scale.md for how to change the number of shards.`,
  );
}
