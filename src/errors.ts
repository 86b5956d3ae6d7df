/** 0 done · 1 failed · 2 usage or configuration · 75 try again later. */
export type ExitCode = 0 | 1 | 2 | 75;

/** An expected error; the command exits with `exitCode`. Its message says what was being done, to what, and what to do next. */
export abstract class ReadershipError extends Error {
  readonly exitCode: Exclude<ExitCode, 0> = 1;
  /** When it can resume, if the platform or our own limit gives a time. */
  readonly resumeAt?: Date | undefined;
  override get name(): string {
    return this.constructor.name;
  }
}

/** The command line or the configuration is wrong; nothing was done. */
export class ConfigurationError extends ReadershipError {
  override readonly exitCode = 2;
}

/** A database or file of ours cannot be opened, read or written, or a query failed. */
export class StorageError extends ReadershipError {}

/** A file has the tables of another version, or of another program. */
export class SchemaError extends StorageError {}

/** Another version wrote the views of the history; the next run writes them again. */
export class OtherVersionError extends StorageError {}

/** Another process is the worker; the same command will work after it ends. */
export class LockedError extends ReadershipError {
  override readonly exitCode = 75;
}

export const exitCodeOf = (error: unknown): Exclude<ExitCode, 0> =>
  error instanceof ReadershipError ? error.exitCode : 1;

/** A message for any thrown value. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The code of a system call or a connection that failed, such as `ENOENT`. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;

/** Whether a connection failed because its host does not exist: asking again would not help soon. */
export const isUnresolvable = (cause: unknown): boolean => codeOf(cause) === 'ENOTFOUND';

/** What TLS says of a server, by the codes and words of OpenSSL, which adds its own source file and line. */
const TLS_WORDS = [
  [/wrong[ _]version[ _]number/, 'this port does not speak TLS, so https:// may be wrong'],
  [
    /no[ _]application[ _]protocol/,
    'the server speaks no HTTP/1.1, perhaps only HTTP/2: let it, or a proxy before it, accept HTTP/1.1',
  ],
  [
    /alert[ _]protocol[ _]version|unsupported[ _]protocol/,
    'the server has no TLS 1.2 or later, and older versions are not safe: update the server',
  ],
  [/certificate[ _]required/, 'the server asks for a client certificate, which Readership does not send'],
  [
    /handshake[ _]failure/,
    'the server accepts none of the usual TLS ciphers, or asks for a client certificate, which Readership does not send',
  ],
  [/unrecognized[ _]name/, 'the server does not know this host name'],
] as const;

/** What went wrong with TLS, in a person's words; undefined if it was something else. */
export function tlsWords(cause: unknown): string | undefined {
  const text = `${codeOf(cause) ?? ''} ${messageOf(cause)}`;
  const known = TLS_WORDS.find(([sign]) => sign.test(text.toLowerCase()))?.[1];
  const [, reason] = /:SSL routines:[^:]*:([^:]+):/.exec(text) ?? [];
  return known ?? (reason === undefined ? undefined : `TLS failed: ${reason}`);
}
