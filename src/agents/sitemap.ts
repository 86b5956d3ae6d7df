import { ReadershipError } from '../errors.js';
import { connectionFailure, connections } from '../network.js';
import { pageOf } from '../page.js';
import { timeLimit } from '../sleep.js';
import {
  isWebAddress,
  readSitemapFile,
  SITEMAP_LIMITS,
  type SitemapLimits,
  tooManyPages,
} from './sitemap-file.js';

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

/**
 * Reads the sitemap once; the answer then looks up a site's pages by the site's address. Undefined
 * when no sitemap is configured. Throws a `SitemapError`.
 */
export async function readSitemap(
  source: string | undefined,
  signal: AbortSignal,
): Promise<(siteUrl: string | undefined) => IsListed | undefined> {
  if (source === undefined) return () => undefined;
  const addresses = await loadSitemap(source, signal);
  return (siteUrl) => listedPages(source, addresses, siteUrl);
}

/** The path of a site's address; empty for a whole host. */
export const basePath = (siteUrl: string | undefined): string =>
  siteUrl === undefined ? '' : new URL(siteUrl).pathname.replace(/\/+$/, '');

/** A path from the site's address; undefined outside of the site. */
export const pathBelow = (base: string, path: string): string | undefined =>
  `${path}/`.startsWith(`${base}/`) ? path.slice(base.length) : undefined;

/**
 * The pages of a site in its sitemap, from the site's address. Throws a `SitemapError` when the sitemap lists none of
 * them.
 */
export function sitePaths(source: string, addresses: readonly URL[], siteUrl: string | undefined): string[] {
  const base = basePath(siteUrl);
  const host = siteUrl === undefined ? undefined : new URL(siteUrl).hostname;
  const paths = new Set<string>();
  for (const { hostname, pathname } of addresses) {
    const path = host === undefined || hostname === host ? pathBelow(base, pageOf(pathname)) : undefined;
    if (path !== undefined) paths.add(path || '/');
  }
  if (paths.size === 0)
    throw new SitemapError(source, `it lists no page of ${siteUrl ?? 'any site'}; check the siteUrl`);
  return [...paths];
}

/**
 * Only the site's own pages count. The paths in question may start at the site's front page or at its
 * root. Throws a `SitemapError` as `sitePaths` does.
 */
export function listedPages(
  source: string,
  addresses: readonly URL[],
  siteUrl: string | undefined,
): IsListed {
  const base = basePath(siteUrl);
  const paths = new Set(sitePaths(source, addresses, siteUrl));
  return (path) => {
    const page = pageOf(path);
    return [page, pathBelow(base, page)].some((one) => one !== undefined && paths.has(one || '/'));
  };
}

/**
 * The addresses of the pages in a sitemap, and in the sitemaps of an index. `source` is a file
 * or a web address. Throws a `SitemapError` when any of it cannot be read or exceeds a limit.
 */
export async function loadSitemap(
  source: string,
  signal: AbortSignal,
  limits: SitemapLimits = SITEMAP_LIMITS,
): Promise<URL[]> {
  const agent = connections();
  const deadline = timeLimit(limits.timeoutMs, signal);
  const read = async (file: string) => {
    try {
      deadline.throwIfAborted();
      return await readSitemapFile(file, agent, deadline, limits);
    } catch (cause) {
      const late = `reading took longer than ${limits.timeoutMs / 1000} s; save it as a file and use that`;
      throw new SitemapError(file, deadline.aborted && !signal.aborted ? late : connectionFailure(cause), {
        cause,
      });
    }
  };
  try {
    const { kind, addresses } = await read(source);
    const pages = kind === 'urlset' ? addresses : [];
    for (const child of kind === 'urlset' ? [] : addresses) {
      if (isWebAddress(source) && child.origin !== new URL(source).origin)
        throw new SitemapError(source, `it refers to a sitemap on another site, ${child.href}`);
      const listed = await read(child.href);
      if (listed.kind !== 'urlset')
        throw new SitemapError(child.href, 'it is an index that another index refers to; use it instead');
      for (const address of listed.addresses) pages.push(address);
      if (pages.length > limits.maxPages) throw new SitemapError(source, tooManyPages(limits));
    }
    if (pages.length === 0)
      throw new SitemapError(source, 'it lists no pages; check that it is the sitemap of this site');
    return pages;
  } finally {
    await agent.destroy();
  }
}
