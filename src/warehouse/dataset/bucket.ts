import { paginateListObjectsV2, S3, S3ServiceException } from '@aws-sdk/client-s3';
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../errors.js';
import { datasetError, type DatasetError, type DatasetPlace, type DatasetStore } from './store.js';

/** A request fails, and is tried again, if no byte goes either way for that long. */
const TIMEOUTS = { connectionTimeout: 10_000, socketTimeout: 60_000 };

/**
 * A dataset in S3 or a compatible store. The official client handles checksums and retries. Each file is one object, sent
 * from memory in one request, which S3 limits to 5 GB: far more than the platform lets anybody load of a month.
 */
export class BucketStore implements DatasetStore {
  readonly #client: S3;
  readonly #bucket: string;
  readonly #prefix: string;

  constructor(
    private readonly place: DatasetPlace,
    private readonly staging: string,
    private readonly signal: AbortSignal,
  ) {
    const [bucket = '', ...prefix] = place.location.slice('s3://'.length).replace(/\/+$/, '').split('/');
    this.#bucket = bucket;
    this.#prefix = prefix.map((part) => `${part}/`).join('');
    const { environment } = place;
    const accessKeyId = environment['AWS_ACCESS_KEY_ID'];
    const secretAccessKey = environment['AWS_SECRET_ACCESS_KEY'];
    const sessionToken = environment['AWS_SESSION_TOKEN'];
    const endpoint = environment['AWS_ENDPOINT_URL_S3'] ?? environment['AWS_ENDPOINT_URL'];
    this.#client = new S3({
      requestHandler: TIMEOUTS,
      region: environment['AWS_REGION'] ?? environment['AWS_DEFAULT_REGION'] ?? 'us-east-1',
      // Without a key, the client looks for other credentials in the environment of the process.
      ...(accessKeyId &&
        secretAccessKey && {
          credentials: { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) },
        }),
      ...(endpoint && { endpoint, forcePathStyle: true }),
    });
  }

  async list(folder: string): Promise<Map<string, string>> {
    const stamps = new Map<string, string>();
    const where = { Bucket: this.#bucket, Prefix: `${this.#prefix}${folder}/` };
    const pages = paginateListObjectsV2({ client: this.#client }, where);
    for (;;) {
      const { value, done } = await this.#attempt(`list ${folder}`, pages.next());
      if (done === true) return stamps;
      for (const { Key: key = '', ETag: tag = '' } of value.Contents ?? [])
        stamps.set(key.slice(this.#prefix.length), tag);
    }
  }

  read(path: string): Promise<string | undefined> {
    const answer = this.#client.getObject(this.#at(path), { abortSignal: this.signal }).then(
      ({ Body: body }) => body?.transformToString(),
      (error: unknown) => {
        if (!(error instanceof S3ServiceException && error.name === 'NoSuchKey')) throw error;
        return undefined;
      },
    );
    return this.#attempt(`read ${path}`, answer);
  }

  async stage(): Promise<string> {
    await mkdir(this.staging, { recursive: true });
    return join(this.staging, randomUUID());
  }

  async put(staged: string, path: string): Promise<string> {
    const object = { ...this.#at(path), Body: await readFile(staged) };
    const sent = this.#client.putObject(object, { abortSignal: this.signal });
    const { ETag: tag = '' } = await this.#attempt(`write ${path}`, sent);
    await rm(staged);
    return tag;
  }

  async create(staged: string, path: string): Promise<boolean> {
    const object = { ...this.#at(path), Body: await readFile(staged), IfNoneMatch: '*' };
    const sent = this.#client.putObject(object, { abortSignal: this.signal }).then(
      () => true,
      (error: unknown) => {
        const status = error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
        if (status !== 412 && status !== 409 && status !== 501) throw error;
        return status === 501 ? undefined : false;
      },
    );
    const isCreated = await this.#attempt(`write ${path}`, sent);
    // A store that has no such condition.
    if (isCreated === undefined) await this.put(staged, path);
    return isCreated !== false;
  }

  async remove(path: string): Promise<void> {
    const removed = this.#client.deleteObject(this.#at(path), { abortSignal: this.signal });
    await this.#attempt(`remove ${path}`, removed);
  }

  clear(): Promise<void> {
    return rm(this.staging, { recursive: true, force: true });
  }

  #at(path: string) {
    return { Bucket: this.#bucket, Key: `${this.#prefix}${path}` };
  }

  async #attempt<Result>(what: string, work: Promise<Result>): Promise<Result> {
    try {
      return await work;
    } catch (cause) {
      throw this.signal.aborted ? cause : this.#explained(what, cause);
    }
  }

  #explained(what: string, cause: unknown): DatasetError {
    const name = cause instanceof Error ? cause.name : 'Error';
    const status = cause instanceof S3ServiceException ? cause.$metadata.httpStatusCode : undefined;
    const said = [status, name, messageOf(cause)].filter((part) => part !== undefined && part !== 'Error');
    const fail = (why: string, next: string) => datasetError(this.place.location, why, next, cause);
    if (name === 'NoSuchBucket')
      return fail(`there is no bucket ${this.#bucket}`, 'create it, or choose another place');
    if (name === 'CredentialsProviderError')
      return fail('there are no credentials', 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
    const why = `could not ${what} (${[...new Set(said)].join(', ')})`;
    return status === undefined || status >= 500 || status === 408 || status === 429
      ? fail(why, 'the next publication tries again')
      : fail(
          why,
          'check the address and AWS_ENDPOINT_URL_S3, AWS_REGION, and whether the credentials may list, read, write and delete there',
        );
  }
}
