import type { Environment } from '../../config/load.js';
import { ReadershipError } from '../../errors.js';

/** Where a lake is, a directory or `s3://bucket/prefix`, and how to reach it. */
export interface LakePlace {
  readonly location: string;
  readonly endpoint?: string | undefined;
  readonly region?: string | undefined;
  /** Has the credentials of object storage. */
  readonly environment: Environment;
  /** How long replaced files are kept, so that readers who opened the table before can finish. */
  readonly keepReplacedMs: number;
}

/** The files of a lake by their paths in it, on a disk or in a bucket. */
export interface LakeStorage {
  /** The directory or address, as messages name it. */
  readonly location: string;
  /** A local directory of this publisher alone, for files before they are put in place. */
  readonly staging: string;
  /** Bytes sent to and received from object storage; zero on a disk. */
  readonly traffic: { sentBytes: number; receivedBytes: number };
  /** The text of a small file; undefined when it does not exist. */
  read(path: string): Promise<string | undefined>;
  /** The path of a file on this machine, for DuckDB to read. A file of a bucket is copied to `staging`. */
  localCopy(path: string): Promise<string>;
  /** Makes a small file in one step, durably. Returns false, and changes nothing, when it exists. */
  putIfAbsent(path: string, text: string): Promise<boolean>;
  /** Moves a local file into place in one step, durably, replacing any file of that name. */
  put(local: string, path: string): Promise<void>;
  /** All files of the lake, and when each was written. */
  list(): Promise<Map<string, Date>>;
  remove(path: string): Promise<void>;
}

/** The store of the lake does not answer now; the next publish tries again. */
export class LakeAwayError extends ReadershipError {
  readonly exitCode = 75;
}
