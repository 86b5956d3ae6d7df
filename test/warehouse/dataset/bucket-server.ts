import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

/** How a store misbehaves; by default it does not. */
export interface BucketFaults {
  /** Answers every request with this status. */
  status?: number;
  /** Closes every connection instead of answering. */
  isDropping?: boolean;
  /** Knows no conditional writes. */
  hasNoConditions?: boolean;
  /** After this many more files were written, it answers 503. */
  writesLeft?: number;
}

interface Answer {
  readonly status?: number;
  readonly body?: string | Buffer;
  readonly etag?: string;
}

const refusal = (status: number, code: string): Answer => ({
  status,
  body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`,
});

/** The chunks of a body whose checksum follows it. */
function decoded(request: IncomingMessage, body: Buffer): Buffer {
  if (!String(request.headers['content-encoding']).includes('aws-chunked')) return body;
  const chunks: Buffer[] = [];
  for (let at = 0; ;) {
    const end = body.indexOf('\r\n', at);
    const size = parseInt(body.toString('latin1', at, end), 16);
    if (size === 0) return Buffer.concat(chunks);
    chunks.push(body.subarray(end + 2, end + 2 + size));
    at = end + 2 + size + 2;
  }
}

type Files = Map<string, Buffer>;

const etagOf = (body: Buffer): string => `"${createHash('md5').update(body).digest('hex')}"`;

const PAGE = 5;
function listed(files: Files, query: URLSearchParams): string {
  const [from, prefix] = [query.get('continuation-token') ?? '', query.get('prefix') ?? ''];
  const found = [...files].filter(([key]) => key.startsWith(prefix) && key > from).sort();
  const contents = found
    .slice(0, PAGE)
    .map(
      ([key, body]) =>
        `<Contents><Key>${key.replaceAll('&', '&amp;')}</Key><ETag>${etagOf(body)}</ETag></Contents>`,
    );
  const isCut = found.length > PAGE;
  const next = isCut ? `<NextContinuationToken>${found[PAGE - 1]?.[0]}</NextContinuationToken>` : '';
  return `<ListBucketResult><IsTruncated>${isCut}</IsTruncated>${next}${contents.join('')}</ListBucketResult>`;
}

/** The part of the S3 API that a dataset uses, on this machine, with a bucket named `bucket`. Closed after the test. */
export async function serveBucket(faults: BucketFaults = {}) {
  const files: Files = new Map();
  const requests: string[] = [];

  const answerTo = (method: string, url: URL, body: Buffer, isNew: boolean): Answer => {
    const [, bucket, ...rest] = decodeURIComponent(url.pathname).split('/');
    const key = rest.join('/');
    requests.push(`${method} ${key}${url.search}`);
    if (faults.status !== undefined) return refusal(faults.status, 'Fault');
    if (bucket !== 'bucket') return refusal(404, 'NoSuchBucket');
    if (method === 'GET' && key === '') return { body: listed(files, url.searchParams) };
    const file = files.get(key);
    if (method === 'GET') return file === undefined ? refusal(404, 'NoSuchKey') : { body: file };
    if (method === 'DELETE') {
      files.delete(key);
      return { status: 204 };
    }
    if (isNew && faults.hasNoConditions === true) return refusal(501, 'NotImplemented');
    if (isNew && file !== undefined) return refusal(412, 'PreconditionFailed');
    if (faults.writesLeft === 0) return refusal(503, 'SlowDown');
    if (faults.writesLeft !== undefined) faults.writesLeft--;
    files.set(key, body);
    return { etag: etagOf(body) };
  };

  const server = createServer((request, response) => {
    void buffer(request).then((sent) => {
      if (faults.isDropping === true) return request.socket.destroy();
      const url = new URL(request.url ?? '', 'http://store');
      const isNew = request.headers['if-none-match'] === '*';
      const { method = '' } = request;
      const { status = 200, body, etag } = answerTo(method, url, decoded(request, sent), isNew);
      return response
        .writeHead(status, { 'content-type': 'application/xml', ...(etag && { etag }) })
        .end(body);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const endpoint = `http://127.0.0.1:${port}`;
  const environment = {
    AWS_ENDPOINT_URL_S3: endpoint,
    AWS_ACCESS_KEY_ID: 'id',
    AWS_SECRET_ACCESS_KEY: 'k3y-that-nobody-may-read',
  };
  return { endpoint, environment, files, requests };
}
