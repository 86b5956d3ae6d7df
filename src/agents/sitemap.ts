import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import { SaxesParser } from 'saxes';
import { ReadershipError } from '../errors.js';
import { connectionFailure, connections, requestUrl } from '../network.js';
import { pageOf } from '../page.js';
import { timeLimit } from '../sleep.js';

/** Per file, both compressed and decompressed, as the protocol allows (sitemaps.org). */
const MAX_BYTES = 50 * 1024 * 1024;
/** Sitemaps of an index. */
const MAX_FILES = 100;
/** For all files together. */
const TIMEOUT_MS = 30_000;
const MAX_REDIRECTS = 5;

/** The configured sitemap cannot be used, so no page can be chosen. */
export class SitemapError extends ReadershipError {
  constructor(source: string, what: string, options?: ErrorOptions) {
    super(
      `Cannot use the sitemap ${source} (improve.sitemap): ${what}. No page was flagged and no job was created.`,
      options,
    );
  }
}

/** Whether the sitemap lists the page of a path. */
export type IsListed = (path: string) => boolean;

/** The pages that a sitemap lists. Only those of a site itself count. */
export class Sitemap {
  constructor(
    private readonly source: string,
    private readonly addresses: readonly URL[],
  ) {}

  /** The pages of a site, from the site's address. Throws a `SitemapError` if there are none. */
  pagesOf(siteUrl: string | undefined): string[] {
    const base = basePath(siteUrl);
    const host = siteUrl === undefined ? undefined : new URL(siteUrl).hostname;
    const paths = new Set<string>();
    for (const { hostname, pathname } of this.addresses) {
      const path = host === undefined || hostname === host ? pathBelow(base, pageOf(pathname)) : undefined;
      if (path !== undefined) paths.add(path || '/');
    }
    if (paths.size === 0)
      throw new SitemapError(this.source, `it lists no page of ${siteUrl ?? 'any site'}; check the siteUrl`);
    return [...paths];
  }

  /** Looks up paths that start at the site's front page or at its root. Throws as `pagesOf` does. */
  listedOn(siteUrl: string | undefined): IsListed {
    const base = basePath(siteUrl);
    const paths = new Set(this.pagesOf(siteUrl));
    return (path) => {
      const page = pageOf(path);
      return [page, pathBelow(base, page)].some((one) => one !== undefined && paths.has(one || '/'));
    };
  }
}

/** The path of a site's address; empty for a whole host. */
export const basePath = (siteUrl: string | undefined): string =>
  siteUrl === undefined ? '' : new URL(siteUrl).pathname.replace(/\/+$/, '');

/** A path from the site's address; undefined outside of the site. */
export const pathBelow = (base: string, path: string): string | undefined =>
  `${path}/`.startsWith(`${base}/`) ? path.slice(base.length) : undefined;

/**
 * Reads a sitemap, and the sitemaps of an index, from a file or a web address; undefined if none is configured. Throws a
 * `SitemapError` if any of it cannot be read or exceeds a limit.
 */
export async function readSitemap(
  source: string | undefined,
  signal: AbortSignal,
  timeoutMs = TIMEOUT_MS,
): Promise<Sitemap | undefined> {
  if (source === undefined) return undefined;
  const deadline = timeLimit(timeoutMs, signal);
  const read = (file: string) =>
    readSitemapFile(file, deadline).catch((cause: unknown) => {
      const late = `reading took longer than ${timeoutMs / 1000} s; save it as a file and use that`;
      const what = deadline.aborted && !signal.aborted ? late : connectionFailure(cause);
      throw new SitemapError(file, what, { cause });
    });
  const { root, addresses } = await read(source);
  if (root === 'urlset') return new Sitemap(source, addresses);
  if (addresses.length > MAX_FILES)
    throw new SitemapError(source, `it refers to more than ${MAX_FILES} sitemaps; use one of them`);
  const pages: URL[] = [];
  for (const { href, origin } of addresses) {
    if (isWebAddress(source) && origin !== new URL(source).origin)
      throw new SitemapError(source, `it refers to a sitemap on another site, ${href}`);
    const listed = await read(href);
    if (listed.root !== 'urlset')
      throw new SitemapError(href, 'it is an index that another index refers to; use it instead');
    for (const address of listed.addresses) pages.push(address);
  }
  return new Sitemap(source, pages);
}

const isWebAddress = (source: string): boolean => /^https?:\/\//i.test(source);

/**
 * Reads one sitemap from a file or a web address: its root element, and the addresses of pages or of further sitemaps. Throws
 * an `Error` that says why it is not a sitemap or which limit it exceeds, or the signal's reason.
 */
export async function readSitemapFile(source: string, signal: AbortSignal) {
  signal.throwIfAborted();
  if (!isWebAddress(source)) {
    if (!(await stat(source)).isFile()) throw new Error('it is not a regular file');
    return parseSitemap(await textOf(createReadStream(source, { signal })));
  }
  const dispatcher = connections();
  try {
    return parseSitemap(await textOf(await fetched(source, { dispatcher, signal })));
  } finally {
    await dispatcher.destroy();
  }
}

/** Follows redirects only within the site, so a site cannot redirect us to a private network. */
async function fetched(
  address: string,
  options: Parameters<typeof requestUrl>[1],
  redirectsLeft = MAX_REDIRECTS,
): Promise<AsyncIterable<Buffer>> {
  const { statusCode, headers, body } = await requestUrl(address, options);
  if (statusCode === 200) return body;
  await body.dump();
  const { location } = headers;
  if (statusCode < 300 || statusCode >= 400 || location === undefined || redirectsLeft === 0)
    throw new Error(`the server answered ${statusCode}; check the address in a browser`);
  const target = new URL(location, address);
  if (target.origin !== new URL(address).origin)
    throw new Error(
      `it redirects to another site, ${target.href}; if you trust that site, use this address instead`,
    );
  return fetched(target.href, options, redirectsLeft - 1);
}

/** Sitemaps are often `.xml.gz` files, compressed without a Content-Encoding. */
async function textOf(chunks: AsyncIterable<Buffer>): Promise<string> {
  const bytes = await collected(chunks);
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes.toString('utf8');
  const unpacked = createGunzip();
  unpacked.end(bytes);
  return (await collected(unpacked)).toString('utf8');
}

async function collected(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > MAX_BYTES)
      throw new Error(`it is larger than ${MAX_BYTES} bytes; split it, and list its parts in an index`);
    parts.push(chunk);
  }
  return Buffer.concat(parts);
}

function parseSitemap(xml: string) {
  const addresses: URL[] = [];
  const open: string[] = [];
  let root = '';
  let text = '';
  // It is strict and ignores entity declarations, so nothing expands.
  const parser = new SaxesParser();
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ name }) => {
    open.push(name.replace(/^.*:/, ''));
    text = '';
    root ||= open[0] ?? '';
    if (root !== 'urlset' && root !== 'sitemapindex')
      throw new Error(`its root element is <${name.slice(0, 100)}>, not <urlset> or <sitemapindex>`);
  });
  for (const event of ['text', 'cdata'] as const)
    parser.on(event, (part) => {
      text += part;
    });
  parser.on('closetag', () => {
    // Images and other extensions have their own addresses, one level deeper.
    if (open.length === 3 && open[2] === 'loc') addresses.push(webAddress(text));
    open.pop();
  });
  parser.write(xml).close();
  return { root, addresses };
}

function webAddress(text: string): URL {
  const trimmed = text.trim();
  if (!isWebAddress(trimmed) || !URL.canParse(trimmed))
    throw new Error(`it lists “${trimmed.slice(0, 100)}”, which is not a web address`);
  return new URL(trimmed);
}
