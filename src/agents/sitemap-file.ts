import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';
import { SaxesParser } from 'saxes';
import type { Dispatcher } from 'undici';
import { requestUrl } from '../network.js';

export const SITEMAP_LIMITS = {
  /** Per file, both compressed and decompressed. */
  maxBytes: 50 * 1024 * 1024,
  /** Sitemaps of an index. */
  maxFiles: 100,
  maxPages: 500_000,
  /** For all files together, parsing included. */
  timeoutMs: 30_000,
};
export type SitemapLimits = typeof SITEMAP_LIMITS;

const MAX_REDIRECTS = 5;
/** The deepest element of a real sitemap, an image's address, is the fourth. */
const MAX_DEPTH = 16;
/** Characters parsed between checks of the signal. */
const SLICE = 65_536;

export const isWebAddress = (source: string): boolean => /^https?:\/\//i.test(source);

export const tooManyPages = ({ maxPages }: SitemapLimits): string =>
  `it lists more than ${maxPages} pages; use a sitemap of part of the site`;

/**
 * Reads one sitemap (sitemaps.org) from a file or a web address. Throws an `Error` that says why it
 * is not a sitemap or which limit it exceeds, or the signal's reason.
 */
export async function readSitemapFile(
  source: string,
  dispatcher: Dispatcher,
  signal: AbortSignal,
  limits: SitemapLimits,
) {
  const chunks = await (isWebAddress(source)
    ? fetched(source, dispatcher, signal)
    : fileChunks(source, signal));
  return parseSitemap(await textOf(chunks, limits.maxBytes), signal, limits);
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

/** The element that holds an address, by the root element. */
const ENTRY = { urlset: 'url/loc', sitemapindex: 'sitemap/loc' } as const;

/**
 * The `http` and `https` addresses of pages or of further sitemaps, parsed slice by slice, so that
 * signals and timers are served meanwhile.
 */
export async function parseSitemap(xml: string, signal: AbortSignal, limits: SitemapLimits) {
  const root: { kind?: keyof typeof ENTRY } = {};
  const addresses: URL[] = [];
  const open: string[] = [];
  let text = '';
  // It is strict and ignores entity declarations, so nothing expands.
  const parser = new SaxesParser({ xmlns: true });
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ local }) => {
    open.push(local);
    if (open.length === 1) root.kind = rootKind(local);
    // The parser looks up a namespace through all open elements: deep nesting takes quadratic time.
    if (open.length > MAX_DEPTH)
      throw new Error(`its elements are nested more than ${MAX_DEPTH} deep, so it is not a sitemap`);
    text = '';
  });
  for (const event of ['text', 'cdata'] as const)
    parser.on(event, (part) => {
      text += part;
    });
  parser.on('closetag', () => {
    const { kind } = root;
    // Images and other extensions have their own addresses, one level deeper.
    if (kind !== undefined && open.slice(1).join('/') === ENTRY[kind]) addresses.push(address(text));
    if (kind === 'urlset' && addresses.length > limits.maxPages) throw new Error(tooManyPages(limits));
    if (kind === 'sitemapindex' && addresses.length > limits.maxFiles)
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
  const { kind } = root;
  if (kind === undefined) throw new Error('it is empty');
  return { kind, addresses };
}

function rootKind(local: string): keyof typeof ENTRY {
  if (local === 'urlset' || local === 'sitemapindex') return local;
  throw new Error(`its root element is <${local.slice(0, 100)}>, not <urlset> or <sitemapindex>`);
}

function address(text: string): URL {
  const trimmed = text.trim();
  if (!/^https?:/i.test(trimmed) || !URL.canParse(trimmed))
    throw new Error(`it lists “${trimmed.slice(0, 100)}”, which is not a web address`);
  return new URL(trimmed);
}
