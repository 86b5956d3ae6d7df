import { loadSitemap } from './load.js';
import { SitemapError } from './sitemap-error.js';

/** Whether the sitemap lists the page of a path. */
export type IsListed = (path: string) => boolean;

/**
 * Reads the sitemap once, to be asked about each site by its address. Without a sitemap there is nothing to ask:
 * undefined. Throws a `SitemapError`.
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
 * With the site's address, only its own pages count, and paths may be counted from its front page. A slash at the end
 * makes no difference. Throws a `SitemapError` when the sitemap lists none of the site's pages.
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
  if (paths.size === 0) throw new SitemapError(source, `it lists no page of ${siteUrl ?? 'any site'}`);
  return (path) => paths.has(trimmed(path));
}

const trimmed = (path: string): string => path.replace(/\/+$/, '') || '/';
