import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

/** How a store misbehaves; by default it does not. */
export interface BucketFaults {
  /** Answers every request with this status. */
  status?: number;
  /** Answers writes that must not replace a file with this status. */
  conditions?: 'ignored' | 'refused';
  /** Carries out this many of these writes, but closes the connection instead of answering. */
  lostReplies?: number;
}

interface Answer {
  readonly status?: number;
  readonly body?: string | Buffer;
  readonly etag?: string;
}

const refusal = (status: number, code: string): Answer => ({
  ...{ status, body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>` },
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

type Files = Map<string, { body: Buffer; modified: Date }>;

const PAGE = 5;
function listed(files: Files, query: URLSearchParams): string {
  const [from, prefix] = [query.get('continuation-token') ?? '', query.get('prefix') ?? ''];
  const keys = [...files.keys()].filter((key) => key.startsWith(prefix) && key > from).sort();
  const contents = keys.slice(0, PAGE).map((key) => {
    const modified = files.get(key)?.modified.toISOString() ?? '';
    return `<Contents><Key>${key}</Key><LastModified>${modified}</LastModified></Contents>`;
  });
  const isCut = keys.length > PAGE;
  const next = isCut ? `<NextContinuationToken>${keys[PAGE - 1] ?? ''}</NextContinuationToken>` : '';
  return `<ListBucketResult><IsTruncated>${isCut}</IsTruncated>${next}${contents.join('')}</ListBucketResult>`;
}

/** The part of the S3 API that a lake uses, on this machine, with a bucket named `bucket`. Closed after the test. */
export async function serveBucket(faults: BucketFaults = {}) {
  const files: Files = new Map();
  const uploads = new Map<string, Map<number, Buffer>>();
  const requests: string[] = [];

  /** Undefined if the connection is closed instead. */
  const answerTo = (
    { method = '', headers }: IncomingMessage,
    url: URL,
    body: Buffer,
  ): Answer | undefined => {
    const [, bucket, ...rest] = decodeURIComponent(url.pathname).split('/');
    const key = rest.join('/');
    requests.push(`${method} ${key}${url.search}`);
    if (faults.status !== undefined) return refusal(faults.status, 'Fault');
    if (bucket !== 'bucket') return refusal(404, 'NoSuchBucket');
    const id = url.searchParams.get('uploadId') ?? '';
    const upload = uploads.get(id);
    const store = (bytes: Buffer) => files.set(key, { body: bytes, modified: new Date() });
    if (method === 'GET' && key === '') return { body: listed(files, url.searchParams) };
    if (method === 'GET') return files.get(key) ?? refusal(404, 'NoSuchKey');
    if (method === 'DELETE') {
      uploads.delete(id);
      files.delete(key);
      return { status: 204 };
    }
    if (method === 'POST' && url.searchParams.has('uploads')) {
      const started = `upload-${uploads.size}`;
      uploads.set(started, new Map());
      return {
        body: `<InitiateMultipartUploadResult><UploadId>${started}</UploadId></InitiateMultipartUploadResult>`,
      };
    }
    if (method === 'POST') {
      store(Buffer.concat([...(upload ?? [])].sort(([a], [b]) => a - b).map(([, part]) => part)));
      return { body: '<CompleteMultipartUploadResult><ETag>"whole"</ETag></CompleteMultipartUploadResult>' };
    }
    if (upload !== undefined) {
      upload.set(Number(url.searchParams.get('partNumber')), body);
      return { etag: '"part"' };
    }
    const isNewOnly = headers['if-none-match'] === '*';
    if (isNewOnly && faults.conditions === 'refused') return refusal(501, 'NotImplemented');
    if (isNewOnly && files.has(key) && faults.conditions !== 'ignored')
      return refusal(412, 'PreconditionFailed');
    store(body);
    const { lostReplies = 0 } = faults;
    if (!isNewOnly || lostReplies === 0) return { etag: '"whole"' };
    faults.lostReplies = lostReplies - 1;
    return undefined;
  };

  const server = createServer((request, response) => {
    void buffer(request).then((sent) => {
      const answer = answerTo(request, new URL(request.url ?? '', 'http://store'), decoded(request, sent));
      if (answer === undefined) return request.socket.destroy();
      const { status = 200, body, etag } = answer;
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
  return { endpoint: `http://127.0.0.1:${port}`, files, requests };
}
