import { SaxesParser } from 'saxes';

/** What a sitemap file lists: pages, or further sitemaps. Addresses as written, `http` and `https` only. */
export interface ParsedSitemap {
  readonly kind: 'urlset' | 'sitemapindex';
  readonly addresses: readonly URL[];
}

/** The element that holds the address, by the root element. */
const ENTRY = { urlset: 'url', sitemapindex: 'sitemap' } as const;

/** Reads a sitemap (sitemaps.org). Throws an `Error` that says where it is not well-formed, or why it is no sitemap. */
export function parseSitemap(xml: string): ParsedSitemap {
  const open: string[] = [];
  const addresses: URL[] = [];
  let kind: ParsedSitemap['kind'] | undefined;
  let text = '';
  // Strict, and without entities of a document's own: nothing in it can expand.
  const parser = new SaxesParser({ xmlns: true });
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ local }) => {
    open.push(local);
    if (open.length === 1) kind = rootKind(local);
    text = '';
  });
  const addText = (part: string) => {
    text += part;
  };
  parser.on('text', addText);
  parser.on('cdata', addText);
  parser.on('closetag', () => {
    // Only the address itself: extensions such as images have addresses of their own, one level deeper.
    if (kind !== undefined && open.slice(1).join('/') === `${ENTRY[kind]}/loc`) addresses.push(address(text));
    open.pop();
  });
  parser.write(xml).close();
  if (kind === undefined) throw new Error('it is empty');
  return { kind, addresses };
}

function rootKind(local: string): ParsedSitemap['kind'] {
  if (local === 'urlset' || local === 'sitemapindex') return local;
  throw new Error(`its root element is <${local}>, not <urlset> or <sitemapindex>`);
}

function address(text: string): URL {
  const trimmed = text.trim();
  if (!/^https?:/i.test(trimmed) || !URL.canParse(trimmed))
    throw new Error(`it lists “${trimmed.slice(0, 100)}”, which is no web address`);
  return new URL(trimmed);
}
