import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';
import { SaxesParser } from 'saxes';
import type { Dispatcher } from 'undici';
import { ReadershipError } from '../errors.js';
import { connectionFailure, connections, requestUrl } from '../network.js';
import { pageOf } from '../page.js';
import { timeLimit } from '../sleep.js';

const SITEMAP_LIMITS = {
  /** Per file, both compressed and decompressed. */
  maxBytes: 50 * 1024 * 1024,
  /** Sitemaps of an index. */
  maxFiles: 100,
  maxPages: 500_000,
  /** For all files together, parsing included. */
  timeoutMs: 30_000,
};
type SitemapLimits = typeof SITEMAP_LIMITS;

const MAX_REDIRECTS = 5;
/** Characters parsed between checks of the signal. */
const SLICE = 65_536;

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
  limits: SitemapLimits = SITEMAP_LIMITS,
): Promise<Sitemap | undefined> {
  if (source === undefined) return undefined;
  const agent = connections();
  const deadline = timeLimit(limits.timeoutMs, signal);
  const read = async (file: string) => {
    try {
      deadline.throwIfAborted();
      return await readSitemapFile(file, agent, deadline, limits);
    } catch (cause) {
      const late = `reading took longer than ${limits.timeoutMs / 1000} s; save it as a file and use that`;
      const what = deadline.aborted && !signal.aborted ? late : connectionFailure(cause);
      throw new SitemapError(file, what, { cause });
    }
  };
  try {
    const { root, addresses } = await read(source);
    const pages = root === 'urlset' ? addresses : [];
    for (const child of root === 'urlset' ? [] : addresses) {
      if (isWebAddress(source) && child.origin !== new URL(source).origin)
        throw new SitemapError(source, `it refers to a sitemap on another site, ${child.href}`);
      const listed = await read(child.href);
      if (listed.root !== 'urlset')
        throw new SitemapError(child.href, 'it is an index that another index refers to; use it instead');
      for (const address of listed.addresses) pages.push(address);
      if (pages.length > limits.maxPages) throw new SitemapError(source, tooManyPages(limits));
    }
    if (pages.length === 0)
      throw new SitemapError(source, 'it lists no pages; check that it is the sitemap of this site');
    return new Sitemap(source, pages);
  } finally {
    await agent.destroy();
  }
}

const isWebAddress = (source: string): boolean => /^https?:\/\//i.test(source);

const tooManyPages = ({ maxPages }: SitemapLimits): string =>
  `it lists more than ${maxPages} pages; use a sitemap of part of the site`;

/**
 * Reads one sitemap (sitemaps.org) from a file or a web address. Throws an `Error` that says why it
 * is not a sitemap or which limit it exceeds, or the signal's reason.
 */
export async function readSitemapFile(
  source: string,
  dispatcher: Dispatcher,
  signal: AbortSignal,
  limits: SitemapLimits = SITEMAP_LIMITS,
) {
  if (isWebAddress(source))
    return parseSitemap(await textOf(await fetched(source, dispatcher, signal), limits), signal, limits);
  if (!(await stat(source)).isFile()) throw new Error('it is not a regular file');
  return parseSitemap(await textOf(createReadStream(source, { signal }), limits), signal, limits);
}

/** Follows redirects only within the site, so a site cannot redirect us to a private network. */
async function fetched(
  address: string,
  dispatcher: Dispatcher,
  signal: AbortSignal,
  redirectsLeft = MAX_REDIRECTS,
): Promise<AsyncIterable<Buffer>> {
  const { statusCode, headers, body } = await requestUrl(address, { dispatcher, signal });
  if (statusCode === 200) return body;
  await body.dump();
  const { location } = headers;
  if (statusCode < 300 || statusCode >= 400 || location === undefined)
    throw new Error(`the server answered ${statusCode}; check the address in a browser`);
  const target = new URL(location, address);
  if (target.origin !== new URL(address).origin)
    throw new Error(
      `it redirects to another site, ${target.href}; if you trust that site, use this address instead`,
    );
  if (redirectsLeft === 0) throw new Error('it redirects too many times; use the final address');
  return fetched(target.href, dispatcher, signal, redirectsLeft - 1);
}

/** Sitemaps are often `.xml.gz` files, compressed without a Content-Encoding. */
async function textOf(chunks: AsyncIterable<Buffer>, limits: SitemapLimits): Promise<string> {
  const bytes = await collected(chunks, limits);
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes.toString('utf8');
  const unpacked = createGunzip();
  unpacked.end(bytes);
  return (await collected(unpacked, limits)).toString('utf8');
}

async function collected(chunks: AsyncIterable<Buffer>, { maxBytes }: SitemapLimits): Promise<Buffer> {
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

/** The root element, and the addresses of pages or of further sitemaps. Other work goes on between its slices. */
async function parseSitemap(xml: string, signal: AbortSignal, limits: SitemapLimits) {
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
    root ||= name.replace(/^.*:/, '');
    if (root !== 'urlset' && root !== 'sitemapindex')
      throw new Error(`its root element is <${name.slice(0, 100)}>, not <urlset> or <sitemapindex>`);
  });
  for (const event of ['text', 'cdata'] as const)
    parser.on(event, (part) => {
      text += part;
    });
  parser.on('closetag', () => {
    // Images and other extensions have their own addresses, one level deeper.
    const element = open.length === 3 ? open.join('/') : '';
    if (element === 'urlset/url/loc' || element === 'sitemapindex/sitemap/loc')
      addresses.push(webAddress(text));
    if (root === 'urlset' && addresses.length > limits.maxPages) throw new Error(tooManyPages(limits));
    if (root === 'sitemapindex' && addresses.length > limits.maxFiles)
      throw new Error(
        `it refers to more than ${limits.maxFiles} sitemaps; use one of them, or a smaller index`,
      );
    open.pop();
  });
  for (let start = 0; start < xml.length; start += SLICE) {
    parser.write(xml.slice(start, start + SLICE));
    await setImmediate();
    signal.throwIfAborted();
  }
  parser.close();
  return { root, addresses };
}

function webAddress(text: string): URL {
  const trimmed = text.trim();
  if (!isWebAddress(trimmed) || !URL.canParse(trimmed))
    throw new Error(`it lists “${trimmed.slice(0, 100)}”, which is not a web address`);
  return new URL(trimmed);
}
