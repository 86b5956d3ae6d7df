import { readSitemapFile } from '../agents/sitemap.js';
import { guessVariants, type Variants } from '../agents/ranking.js';
import type { Runtime } from '../app/workspace.js';
import { pageOf } from '../page.js';
import { timeLimit } from '../sleep.js';

const TIMEOUT_MS = 5_000;

/** Where a site has its sitemap, usually. */
export const sitemapOf = (siteUrl: string): string => `${siteUrl.replace(/\/+$/, '')}/sitemap.xml`;

/** A sitemap, and the translations and versions in it. */
export interface FoundSitemap {
  readonly address: string;
  readonly variants: Variants;
}

/** The sitemap of a site, found with one request; undefined without one. */
export async function findSitemap(siteUrl: string, { signal }: Runtime): Promise<FoundSitemap | undefined> {
  const address = sitemapOf(siteUrl);
  try {
    const { root, addresses } = await readSitemapFile(address, timeLimit(TIMEOUT_MS, signal));
    const pages = root === 'urlset' ? addresses.map(({ pathname }) => pageOf(pathname)) : [];
    return { address, variants: guessVariants(pages) };
  } catch {
    // Most sites without one answer 404, and others a page of HTML.
    signal.throwIfAborted();
    return undefined;
  }
}
