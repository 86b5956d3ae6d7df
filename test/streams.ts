import type { PassThrough } from 'node:stream';

/** What was written to a stream since it was last read. Since Node.js 26, `read()` returns one chunk. */
export function textOf(stream: PassThrough): string {
  const chunk = stream.read() as Buffer | null;
  return chunk === null ? '' : chunk.toString() + textOf(stream);
}
