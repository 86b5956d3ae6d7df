import { paginateListObjectsV2, S3, S3ServiceException } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigurationError, messageOf } from '../../errors.js';
import { LakeAwayError, type LakePlace, type LakeStorage, OTHER_STORE } from './storage.js';

/** An upload holds part size times concurrency in memory. */
const PARTS = { partSize: 16 * 1024 * 1024, queueSize: 3 };
/** A request fails, and is tried again, if no byte goes either way for that long. */
const TIMEOUTS = { connectionTimeout: 10_000, socketTimeout: 60_000 };

const statusOf = (error: unknown): number =>
  (error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined) ?? 500;

/** A lake in S3 or a compatible store. The official client handles checksums and retries. */
export class BucketStorage implements LakeStorage {
  readonly traffic = { sentBytes: 0, receivedBytes: 0 };
  readonly #client: S3;
  /** A file's location in the client's terms. */
  readonly #at: (path: string) => { readonly Bucket: string; readonly Key: string };

  constructor(
    private readonly place: LakePlace,
    readonly staging: string,
    private readonly signal: AbortSignal,
  ) {
    const { location, endpoint, region, credentials } = place;
    const accessKeyId = credentials['AWS_ACCESS_KEY_ID'];
    const secretAccessKey = credentials['AWS_SECRET_ACCESS_KEY'];
    const sessionToken = credentials['AWS_SESSION_TOKEN'];
    const [bucket = '', ...prefix] = location.slice('s3://'.length).replace(/\/+$/, '').split('/');
    this.#at = (path) => ({ Bucket: bucket, Key: [...prefix, path].join('/') });
    this.#client = new S3({
      maxAttempts: 5,
      requestHandler: TIMEOUTS,
      region: region ?? credentials['AWS_REGION'] ?? 'us-east-1',
      // Without a key, the client looks for other credentials in the environment of the process.
      ...(accessKeyId &&
        secretAccessKey && {
          credentials: { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) },
        }),
      ...(endpoint && { endpoint, forcePathStyle: true }),
    });
  }

  /**
   * Throws a `ConfigurationError` if the store ignores the condition of `put`. A file left by an
   * earlier attempt makes no difference: of two attempts, the second must fail.
   */
  async expectConditions(): Promise<void> {
    const probe = `_staged/condition-${randomUUID()}`;
    const attempt = async (): Promise<boolean> => {
      const file = await this.stage();
      await writeFile(file, 'Tests whether the store honors If-None-Match: *');
      return this.put(file, probe, true);
    };
    try {
      await attempt();
      if (await attempt())
        throw new ConfigurationError(`${this.place.location} ignores If-None-Match: *. ${OTHER_STORE}`);
    } finally {
      await this.remove(probe).catch(() => undefined);
    }
  }

  async stage(): Promise<string> {
    await mkdir(this.staging, { recursive: true });
    return join(this.staging, randomUUID());
  }

  /** Uploads a large file in parts; if one fails, none is kept. */
  async put(local: string, path: string, ifAbsent = false): Promise<boolean> {
    this.traffic.sentBytes += (await stat(local)).size;
    const body = { Body: createReadStream(local), ...(ifAbsent && { IfNoneMatch: '*' }) };
    const params = { ...this.#at(path), ...body };
    const abortController = { signal: this.signal, abort: () => undefined };
    const upload = new Upload({ client: this.#client, params, abortController, ...PARTS });
    const sent = upload.done().catch((cause: unknown) => {
      if (ifAbsent && [409, 412].includes(statusOf(cause))) return undefined;
      if (!ifAbsent || ![400, 501].includes(statusOf(cause))) throw cause;
      const words = `${this.place.location}: the store does not support conditional writes (If-None-Match: *; ${messageOf(cause)}). ${OTHER_STORE}`;
      throw new ConfigurationError(words, { cause });
    });
    const answer = await this.#attempt(`write ${path}`, sent);
    await rm(local);
    return answer !== undefined;
  }

  async localCopy(path: string): Promise<string> {
    const local = await this.stage();
    const asked = this.#client.getObject(this.#at(path), { abortSignal: this.signal });
    const received = asked.then(
      async ({ Body: body }) => {
        await writeFile(local, body?.transformToWebStream() ?? '');
        this.traffic.receivedBytes += (await stat(local)).size;
      },
      (error: unknown) => {
        if (!(error instanceof S3ServiceException && error.name === 'NoSuchKey')) throw error;
      },
    );
    await this.#attempt(`read ${path}`, received);
    return local;
  }

  async list(): Promise<Map<string, Date>> {
    const found = new Map<string, Date>();
    const { Bucket, Key: Prefix } = this.#at('');
    const pages = paginateListObjectsV2({ client: this.#client }, { Bucket, Prefix });
    for (;;) {
      const { value, done } = await this.#attempt('list its files', pages.next());
      if (done === true) return found;
      for (const { Key: key = '', LastModified: modified = new Date() } of value.Contents ?? [])
        found.set(key.slice(Prefix.length), modified);
    }
  }

  async remove(path: string): Promise<void> {
    const removal = this.#client.deleteObject(this.#at(path), { abortSignal: this.signal });
    await this.#attempt(`remove ${path}`, removal);
  }

  /** A person has to fix a refusal; any other error is temporary. */
  async #attempt<Result>(what: string, work: Promise<Result>): Promise<Result> {
    try {
      return await work;
    } catch (cause) {
      if (cause instanceof ConfigurationError || this.signal.aborted || !(cause instanceof Error))
        throw cause;
      const failure = `The lake ${this.place.location}: could not ${what} (${cause.name}: ${cause.message}).`;
      const isRefused = statusOf(cause) < 500 && ![408, 429].includes(statusOf(cause));
      if (!isRefused && cause.name !== 'CredentialsProviderError')
        throw new LakeAwayError(`${failure} Try again later.`, { cause });
      throw new ConfigurationError(
        `${failure} Check the bucket, publish.region, publish.endpoint and the credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a web identity); ` +
          `they must be allowed to list, read, write and delete there.`,
        { cause },
      );
    }
  }
}
