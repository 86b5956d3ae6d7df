import { Decompress } from 'fzstd';
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';

/** 250 rows of long paths fit many times over. */
export const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

/** The text of a body in its `Content-Encoding`. Throws an error whose message says why it cannot be read. */
export function decodeBody(body: Buffer, encodings: string): string {
  const names = encodings
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity');
  const text = names.reduceRight((data, name) => decompress(data, name), body).toString();
  return text.startsWith('\uFEFF') ? text.slice(1) : text;
}

function decompress(body: Buffer, encoding: string): Buffer {
  const limit = { maxOutputLength: MAX_RESPONSE_BYTES };
  switch (encoding) {
    case 'gzip':
    case 'x-gzip':
      return gunzipSync(body, limit);
    case 'br':
      return brotliDecompressSync(body, limit);
    case 'deflate':
      return inflateSync(body, limit);
    case 'zstd':
      return unzstd(body);
    default:
      throw new Error(`the content encoding ${encoding} is unknown`);
  }
}

/** Node.js 20 has no zstd. */
function unzstd(body: Buffer): Buffer {
  const pieces: Uint8Array[] = [];
  let size = 0;
  const stream = new Decompress((piece) => {
    size += piece.length;
    if (size > MAX_RESPONSE_BYTES) throw new Error(`it is larger than ${MAX_RESPONSE_BYTES} bytes`);
    pieces.push(piece);
  });
  stream.push(body, true);
  return Buffer.concat(pieces);
}
