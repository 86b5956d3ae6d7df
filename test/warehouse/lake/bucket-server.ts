import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
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

const error = (response: ServerResponse, status: number, code: string): void => {
  response.writeHead(status, { 'content-type': 'application/xml' });
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`);
};

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

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

/** The part of the S3 API that a lake uses, on this machine, with a bucket named `bucket`. Closed after the test. */
export async function serveBucket(faults: BucketFaults = {}) {
  const files = new Map<string, { body: Buffer; modified: Date }>();
  const uploads = new Map<string, Map<number, Buffer>>();
  const requests: string[] = [];

  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '', 'http://store');
    const body = decoded(request, await bodyOf(request));
    const [, bucket, ...rest] = decodeURIComponent(url.pathname).split('/');
    const key = rest.join('/');
    requests.push(`${request.method ?? ''} ${key}${url.search}`);
    if (faults.status !== undefined) {
      error(response, faults.status, 'Fault');
      return;
    }
    if (bucket !== 'bucket') {
      error(response, 404, 'NoSuchBucket');
      return;
    }
    const store = (bytes: Buffer) => files.set(key, { body: bytes, modified: new Date() });
    const upload = uploads.get(url.searchParams.get('uploadId') ?? '');
    switch (request.method) {
      case 'GET':
        if (key === '') {
          list(url, response);
          return;
        }
        if (!files.has(key)) {
          error(response, 404, 'NoSuchKey');
          return;
        }
        return response.end(files.get(key)?.body);
      case 'DELETE':
        uploads.delete(url.searchParams.get('uploadId') ?? '');
        files.delete(key);
        return response.writeHead(204).end();
      case 'POST':
        if (url.searchParams.has('uploads')) {
          uploads.set(`upload-${uploads.size}`, new Map());
          return response.end(
            `<InitiateMultipartUploadResult><UploadId>upload-${uploads.size - 1}</UploadId></InitiateMultipartUploadResult>`,
          );
        }
        store(Buffer.concat([...(upload ?? [])].sort(([a], [b]) => a - b).map(([, part]) => part)));
        return response.end(
          '<CompleteMultipartUploadResult><ETag>"whole"</ETag></CompleteMultipartUploadResult>',
        );
      case undefined:
      default:
        if (upload !== undefined) {
          upload.set(Number(url.searchParams.get('partNumber')), body);
          return response.setHeader('etag', '"part"').end();
        }
        if (request.headers['if-none-match'] === '*') {
          if (faults.conditions === 'refused') {
            error(response, 501, 'NotImplemented');
            return;
          }
          if (files.has(key) && faults.conditions !== 'ignored') {
            error(response, 412, 'PreconditionFailed');
            return;
          }
          if ((faults.lostReplies ?? 0) > 0) {
            faults.lostReplies = (faults.lostReplies ?? 0) - 1;
            store(body);
            return request.socket.destroy();
          }
        }
        store(body);
        return response.setHeader('etag', '"whole"').end();
    }
  };

  const PAGE = 5;
  const list = (url: URL, response: ServerResponse) => {
    const from = url.searchParams.get('continuation-token') ?? '';
    const prefix = url.searchParams.get('prefix') ?? '';
    const keys = [...files.keys()].filter((key) => key.startsWith(prefix) && key > from).sort();
    const contents = keys.slice(0, PAGE).map((key) => {
      const modified = files.get(key)?.modified.toISOString() ?? '';
      return `<Contents><Key>${key}</Key><LastModified>${modified}</LastModified></Contents>`;
    });
    const next =
      keys.length > PAGE ? `<NextContinuationToken>${keys[PAGE - 1] ?? ''}</NextContinuationToken>` : '';
    response.end(
      `<ListBucketResult><IsTruncated>${keys.length > PAGE}</IsTruncated>${next}${contents.join('')}</ListBucketResult>`,
    );
  };

  const server = createServer((request, response) => void respond(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { endpoint: `http://127.0.0.1:${port}`, files, requests, uploads };
}
