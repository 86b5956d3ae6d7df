import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { ReadershipError } from '../errors.js';
import { ask, connectionFailure, connections } from '../network.js';
import { type ParsedSitemap, type ParseLimits, parseSitemap, tooManyPages } from './sitemap-xml.js';

/** The configured sitemap cannot be used, so no page can be chosen. */
export class SitemapError extends ReadershipError {
  readonly exitCode = 1;

  constructor(source: string, what: string, options?: ErrorOptions) {
    super(
      `Cannot use the sitemap ${source} (improve.sitemap): ${what}. No page was chosen and no job was created.`,
      options,
    );
  }
}

export interface SitemapLimits extends ParseLimits {
  /** Per file, both compressed and decompressed. */
  readonly maxBytes: number;
  readonly maxRedirects: number;
  /** For all files together, parsing included. */
  readonly timeoutMs: number;
}

export const SITEMAP_LIMITS: SitemapLimits = {
  maxBytes: 50 * 1024 * 1024,
  maxDepth: 16,
  maxFiles: 100,
  maxPages: 500_000,
  maxRedirects: 5,
  timeoutMs: 30_000,
};

/** Whether the sitemap lists the page of a path. */
export type IsListed = (path: string) => boolean;

/**
 * Reads the sitemap once; the answer then looks up a site's pages by the site's address. Undefined when
 * no sitemap is configured. Throws a `SitemapError`.
 */
export async function readSitemap(
  source: string | undefined,
  signal: AbortSignal,
): Promise<(siteUrl: string | undefined) => IsListed | undefined> {
  if (source === undefined) return () => undefined;
  const addresses = await loadSitemap(source, signal);
  return (siteUrl) => listedPages(source, addresses, siteUrl);
}

/**
 * With the site's address, only its own pages count, and paths may start at its front page. A slash at
 * the end makes no difference. Throws a `SitemapError` when the sitemap lists no page of the site.
 */
export function listedPages(
  source: string,
  addresses: readonly URL[],
  siteUrl: string | undefined,
): IsListed {
  const site = siteUrl === undefined ? undefined : new URL(siteUrl);
  const base = site?.pathname.replace(/\/+$/, '') ?? '';
  const paths = new Set<string>();
  for (const { hostname, pathname } of addresses) {
    if (site !== undefined && hostname !== site.hostname) continue;
    paths.add(trimmed(pathname));
    if (base !== '' && `${pathname}/`.startsWith(`${base}/`)) paths.add(trimmed(pathname.slice(base.length)));
  }
  if (paths.size === 0)
    throw new SitemapError(source, `it lists no page of ${siteUrl ?? 'any site'}; check the siteUrl`);
  return (path) => paths.has(trimmed(path));
}

const trimmed = (path: string): string => path.replace(/\/+$/, '') || '/';

/**
 * The addresses that a sitemap lists, including those of the sitemaps it refers to. `source` is a file
 * or a web address. Throws a `SitemapError` when any of it cannot be read or passes a limit.
 */
export async function loadSitemap(
  source: string,
  signal: AbortSignal,
  limits: SitemapLimits = SITEMAP_LIMITS,
): Promise<URL[]> {
  const agent = connections();
  const timeout = AbortSignal.timeout(limits.timeoutMs);
  const deadline = AbortSignal.any([signal, timeout]);
  const read = async (file: string): Promise<ParsedSitemap> => {
    try {
      deadline.throwIfAborted();
      const chunks = isWebAddress(file)
        ? await fetched(file, agent, deadline, limits.maxRedirects)
        : await fileChunks(file, deadline);
      return await parseSitemap(await textOf(chunks, limits.maxBytes), deadline, limits);
    } catch (cause) {
      const late = `reading took longer than ${limits.timeoutMs / 1000} s; save it as a file and use that`;
      throw new SitemapError(file, timeout.aborted ? late : connectionFailure(cause), { cause });
    }
  };
  try {
    const first = await read(source);
    const pages = first.kind === 'urlset' ? [...first.addresses] : [];
    for (const child of first.kind === 'urlset' ? [] : first.addresses) {
      if (isWebAddress(source) && child.origin !== new URL(source).origin)
        throw new SitemapError(source, `it refers to a sitemap on another site, ${child.href}`);
      const { kind, addresses } = await read(child.href);
      if (kind !== 'urlset')
        throw new SitemapError(child.href, 'it is an index that another index refers to; use it instead');
      for (const address of addresses) pages.push(address);
      if (pages.length > limits.maxPages) throw new SitemapError(source, tooManyPages(limits.maxPages));
    }
    if (pages.length === 0)
      throw new SitemapError(source, 'it lists no pages; check that it is the sitemap of this site');
    return pages;
  } finally {
    await agent.destroy();
  }
}

const isWebAddress = (source: string): boolean => /^https?:\/\//i.test(source);

/** Follows redirects only within the site, so a site cannot redirect us to a private network. */
async function fetched(
  address: string,
  dispatcher: Dispatcher,
  signal: AbortSignal,
  redirectsLeft: number,
): Promise<AsyncIterable<Buffer>> {
  const { statusCode, headers, body } = await ask(address, { dispatcher, signal });
  if (statusCode === 200) return body;
  await body.dump();
  const { location } = headers;
  if (statusCode < 300 || statusCode >= 400 || typeof location !== 'string')
    throw new Error(`the server answered ${statusCode}; check the address in a browser`);
  const target = new URL(location, address);
  if (target.origin !== new URL(address).origin)
    throw new Error(
      `it redirects to another site, ${target.href}; if you trust that site, use this address instead`,
    );
  if (redirectsLeft === 0) throw new Error('it redirects too many times; use the final address');
  return fetched(target.href, dispatcher, signal, redirectsLeft - 1);
}

async function fileChunks(file: string, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
  if (!(await stat(file)).isFile()) throw new Error('it is not a regular file');
  return createReadStream(file, { signal });
}

/** Sitemaps are often `.xml.gz` files, compressed without a Content-Encoding. */
async function textOf(chunks: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const bytes = await collected(chunks, maxBytes);
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes.toString('utf8');
  const unpacked = createGunzip();
  unpacked.end(bytes);
  return (await collected(unpacked, maxBytes)).toString('utf8');
}

async function collected(chunks: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > maxBytes)
      throw new Error(`it is larger than ${maxBytes} bytes; split it, and list its parts in an index`);
    parts.push(chunk);
  }
  return Buffer.concat(parts);
}
