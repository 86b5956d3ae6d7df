import { setImmediate } from 'node:timers/promises';
import { SaxesParser } from 'saxes';

/** What a sitemap file lists: pages or further sitemaps, as `http` and `https` addresses. */
export interface ParsedSitemap {
  readonly kind: 'urlset' | 'sitemapindex';
  readonly addresses: readonly URL[];
}

export interface ParseLimits {
  /** The deepest element of a real sitemap, an image's address, is the fourth. */
  readonly maxDepth: number;
  /** Sitemaps of an index. */
  readonly maxFiles: number;
  readonly maxPages: number;
}

/** The element that holds an address, by the root element. */
const ENTRY = { urlset: 'url/loc', sitemapindex: 'sitemap/loc' } as const;

/** Per element: the parser handles all attributes of one at once. */
const MAX_ATTRIBUTES = 100;

/** Characters parsed between checks of the signal. */
const SLICE = 65_536;

/**
 * Reads a sitemap (sitemaps.org), slice by slice, so that signals and timers are served meanwhile.
 * Throws an `Error` that says why it is not a sitemap or which limit it passes, or the signal's reason.
 */
export async function parseSitemap(
  xml: string,
  signal: AbortSignal,
  limits: ParseLimits,
): Promise<ParsedSitemap> {
  const found: { kind?: ParsedSitemap['kind']; addresses: URL[] } = { addresses: [] };
  const parser = parserInto(found, limits);
  for (let start = 0; start < xml.length; start += SLICE) {
    parser.write(xml.slice(start, start + SLICE));
    await setImmediate();
    signal.throwIfAborted();
  }
  parser.close();
  const { kind, addresses } = found;
  if (kind === undefined) throw new Error('it is empty');
  return { kind, addresses };
}

function parserInto(found: { kind?: ParsedSitemap['kind']; addresses: URL[] }, limits: ParseLimits) {
  const open: string[] = [];
  let attributes = 0;
  let text = '';
  // It is strict and ignores entity declarations, so nothing expands.
  const parser = new SaxesParser({ xmlns: true });
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('attribute', () => {
    attributes += 1;
    if (attributes > MAX_ATTRIBUTES) throw new Error(`an element has more than ${MAX_ATTRIBUTES} attributes`);
  });
  parser.on('opentag', ({ local }) => {
    open.push(local);
    attributes = 0;
    if (open.length === 1) found.kind = rootKind(local);
    // The parser looks up a namespace through all open elements: deep nesting takes quadratic time.
    if (open.length > limits.maxDepth)
      throw new Error(`its elements are nested more than ${limits.maxDepth} deep, so it is not a sitemap`);
    text = '';
  });
  const addText = (part: string) => {
    text += part;
  };
  parser.on('text', addText);
  parser.on('cdata', addText);
  parser.on('closetag', () => {
    const { kind, addresses } = found;
    // Images and other extensions have their own addresses, one level deeper.
    if (kind !== undefined && open.slice(1).join('/') === ENTRY[kind]) {
      addresses.push(address(text));
      checkCount(kind, addresses.length, limits);
    }
    open.pop();
  });
  return parser;
}

function checkCount(kind: ParsedSitemap['kind'], count: number, { maxFiles, maxPages }: ParseLimits): void {
  if (kind === 'urlset' && count > maxPages) throw new Error(tooManyPages(maxPages));
  if (kind === 'sitemapindex' && count > maxFiles)
    throw new Error(`it refers to more than ${maxFiles} sitemaps; use one of them, or a smaller index`);
}

export const tooManyPages = (maxPages: number): string =>
  `it lists more than ${maxPages} pages; use a sitemap of part of the site`;

function rootKind(local: string): ParsedSitemap['kind'] {
  if (local === 'urlset' || local === 'sitemapindex') return local;
  throw new Error(`its root element is <${local.slice(0, 100)}>, not <urlset> or <sitemapindex>`);
}

function address(text: string): URL {
  const trimmed = text.trim();
  if (!/^https?:/i.test(trimmed) || !URL.canParse(trimmed))
    throw new Error(`it lists “${trimmed.slice(0, 100)}”, which is not a web address`);
  return new URL(trimmed);
}
