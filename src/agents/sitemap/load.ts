import { readFile, stat } from 'node:fs/promises';
import { gunzipSync } from 'node:zlib';
import { Agent, interceptors, request } from 'undici';
import { messageOf } from '../../errors.js';
import { type ParsedSitemap, parseSitemap } from './parse.js';
import { SitemapError } from './sitemap-error.js';

/** Bounds on what a sitemap may ask of us. */
export interface SitemapLimits {
  /** Of one file, compressed or not. */
  readonly maxBytes: number;
  readonly maxFiles: number;
  readonly maxPages: number;
  readonly maxRedirects: number;
  /** For all files together. */
  readonly timeoutMs: number;
}

export const SITEMAP_LIMITS: SitemapLimits = {
  maxBytes: 50 * 1024 * 1024,
  maxFiles: 100,
  maxPages: 500_000,
  maxRedirects: 5,
  timeoutMs: 30_000,
};

/**
 * The addresses that a sitemap lists, those of the sitemaps it refers to included. `source` is a file or a web
 * address. Throws a `SitemapError` when it cannot be had whole, or passes a limit.
 */
export async function loadSitemap(
  source: string,
  signal: AbortSignal,
  limits: SitemapLimits = SITEMAP_LIMITS,
): Promise<URL[]> {
  const agent = new Agent({ maxResponseSize: limits.maxBytes }).compose(
    interceptors.redirect({ maxRedirections: limits.maxRedirects }),
  );
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(limits.timeoutMs)]);
  const read = (file: string): Promise<ParsedSitemap> =>
    asSitemapError(file, async () => {
      deadline.throwIfAborted();
      const bytes = isWebAddress(file)
        ? await fetchBytes(file, agent, deadline)
        : await readBytes(file, limits.maxBytes);
      return parseSitemap(textOf(bytes, limits.maxBytes));
    });
  try {
    const first = await read(source);
    if (first.kind === 'urlset') return bounded(source, [...first.addresses], limits);
    if (first.addresses.length > limits.maxFiles)
      throw new SitemapError(
        source,
        `it refers to ${first.addresses.length} sitemaps, more than ${limits.maxFiles}`,
      );
    const pages: URL[] = [];
    for (const child of first.addresses) {
      if (isWebAddress(source) && child.origin !== new URL(source).origin)
        throw new SitemapError(source, `it refers to a sitemap of another site, ${child.href}`);
      const { kind, addresses } = await read(child.href);
      if (kind !== 'urlset')
        throw new SitemapError(child.href, 'an index refers to it, yet it is an index itself');
      pages.push(...addresses);
    }
    return bounded(source, pages, limits);
  } finally {
    await agent.destroy();
  }
}

const isWebAddress = (source: string): boolean => /^https?:\/\//i.test(source);

function bounded(source: string, pages: URL[], { maxPages }: SitemapLimits): URL[] {
  if (pages.length === 0) throw new SitemapError(source, 'it lists no page');
  if (pages.length > maxPages) throw new SitemapError(source, `it lists more than ${maxPages} pages`);
  return pages;
}

async function asSitemapError<Result>(source: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    throw new SitemapError(source, messageOf(cause), { cause });
  }
}

async function fetchBytes(
  address: string,
  dispatcher: ReturnType<Agent['compose']>,
  signal: AbortSignal,
): Promise<Buffer> {
  const { statusCode, body } = await request(address, { dispatcher, signal });
  const bytes = Buffer.from(await body.arrayBuffer());
  if (statusCode >= 300 && statusCode < 400) throw new Error('it redirects too often');
  if (statusCode !== 200) throw new Error(`the server answered ${statusCode}`);
  return bytes;
}

async function readBytes(file: string, maxBytes: number): Promise<Buffer> {
  const { size } = await stat(file);
  if (size > maxBytes) throw new Error(`it has ${size} bytes, more than ${maxBytes}`);
  return readFile(file);
}

/** Sitemaps are often served as `.xml.gz`, the compression being the file's, not the transport's. */
const textOf = (bytes: Buffer, maxOutputLength: number): string =>
  (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes, { maxOutputLength }) : bytes).toString('utf8');
