import { paginateListObjectsV2, S3, S3ServiceException } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigurationError, messageOf } from '../../errors.js';
import { LakeAwayError, type LakePlace, type LakeStorage } from './storage.js';

/** An upload holds this much in memory: one size times the other. */
const PARTS = { partSize: 16 * 1024 * 1024, queueSize: 3 };
const PATIENCE = {
  maxAttempts: 5,
  requestHandler: { connectionTimeout: 10_000, requestTimeout: 120_000, throwOnRequestTimeout: true },
};

const statusOf = (error: unknown): number =>
  (error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined) ?? 500;

/** A lake in a bucket of S3, or of a store that speaks its protocol. The official client does checksums and retries. */
export class BucketStorage implements LakeStorage {
  readonly location: string;
  readonly traffic = { sentBytes: 0, receivedBytes: 0 };
  readonly #client: S3;
  readonly #bucket: string;
  readonly #prefix: string;

  constructor(
    { location, endpoint, region, environment }: LakePlace,
    readonly staging: string,
    private readonly abortSignal: AbortSignal,
  ) {
    // The client looks for credentials in the environment of the process only, and not in `.env`.
    for (const [name, value] of Object.entries(environment))
      if (name.startsWith('AWS_') && value !== undefined) process.env[name] = value;
    const [bucket = '', ...prefix] = location.slice('s3://'.length).replace(/\/+$/, '').split('/');
    this.location = location;
    this.#bucket = bucket;
    this.#prefix = prefix.map((part) => `${part}/`).join('');
    this.#client = new S3({
      ...PATIENCE,
      region: region ?? environment['AWS_REGION'] ?? 'us-east-1',
      ...(endpoint && { endpoint, forcePathStyle: true }),
    });
  }

  async read(path: string): Promise<string | undefined> {
    return (await this.#get(path))?.toString();
  }

  async localCopy(path: string): Promise<string> {
    const local = join(this.staging, randomUUID());
    await mkdir(this.staging, { recursive: true });
    await writeFile(local, (await this.#get(path)) ?? '');
    return local;
  }

  putIfAbsent(path: string, text: string): Promise<boolean> {
    this.traffic.sentBytes += Buffer.byteLength(text);
    return this.#attempt(`write ${path}`, async (options) => {
      try {
        await this.#client.putObject({ ...this.#at(path), Body: text, IfNoneMatch: '*' }, options);
        return true;
      } catch (cause) {
        if ([409, 412].includes(statusOf(cause))) return false;
        if (![400, 501].includes(statusOf(cause))) throw cause;
        throw new ConfigurationError(
          `${this.location}: the store refused a write that must not replace a file (If-None-Match: *; ${messageOf(cause)}). ` +
            `Without it two publishers could overwrite each other. Use a store that has conditional writes, or a disk.`,
          { cause },
        );
      }
    });
  }

  /** In parts when it is large; when one fails, none is kept. */
  async put(local: string, path: string): Promise<void> {
    this.traffic.sentBytes += (await stat(local)).size;
    await this.#attempt(`write ${path}`, ({ abortSignal: signal }) => {
      const params = { ...this.#at(path), Body: createReadStream(local) };
      const abortController = { signal, abort: () => undefined };
      return new Upload({ client: this.#client, params, abortController, ...PARTS }).done();
    });
    await rm(local);
  }

  list(): Promise<Map<string, Date>> {
    return this.#attempt('list its files', async () => {
      const found = new Map<string, Date>();
      const request = { Bucket: this.#bucket, Prefix: this.#prefix };
      for await (const { Contents: files } of paginateListObjectsV2({ client: this.#client }, request))
        for (const { Key: key = '', LastModified: modified = new Date() } of files ?? [])
          found.set(key.slice(this.#prefix.length), modified);
      return found;
    });
  }

  async remove(path: string): Promise<void> {
    await this.#attempt(`remove ${path}`, (options) => this.#client.deleteObject(this.#at(path), options));
  }

  #get(path: string): Promise<Buffer | undefined> {
    return this.#attempt(`read ${path}`, async (options) => {
      try {
        const { Body: body } = await this.#client.getObject(this.#at(path), options);
        const bytes = Buffer.from((await body?.transformToByteArray()) ?? []);
        this.traffic.receivedBytes += bytes.length;
        return bytes;
      } catch (error) {
        if (error instanceof S3ServiceException && error.name === 'NoSuchKey') return undefined;
        throw error;
      }
    });
  }

  #at(path: string): { Bucket: string; Key: string } {
    return { Bucket: this.#bucket, Key: this.#prefix + path };
  }

  /** A person has to fix what the store refuses; anything else passes. */
  async #attempt<Result>(
    what: string,
    work: (options: { abortSignal: AbortSignal }) => Promise<Result>,
  ): Promise<Result> {
    try {
      return await work({ abortSignal: this.abortSignal });
    } catch (cause) {
      if (cause instanceof ConfigurationError || this.abortSignal.aborted || !(cause instanceof Error))
        throw cause;
      const failure = `The lake ${this.location}: could not ${what} (${cause.name}: ${cause.message}).`;
      const isRefused = statusOf(cause) < 500 && ![408, 429].includes(statusOf(cause));
      if (!isRefused && cause.name !== 'CredentialsProviderError')
        throw new LakeAwayError(`${failure} What was committed before stays; the next publish goes on.`, {
          cause,
        });
      throw new ConfigurationError(
        `${failure} Check the bucket, publish.region, publish.endpoint and the credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a web identity); ` +
          `they must be allowed to list, read, write and delete there.`,
        { cause },
      );
    }
  }
}
