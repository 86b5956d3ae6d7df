declare const pagePathBrand: unique symbol;

/**
 * The path that identifies a page. Platforms count `/guide`, `/guide/`, `/guide.md` and `/guide/index.html` separately,
 * although they are the addresses of one page: people read one of them, and AI another.
 */
export type PagePath = string & { readonly [pagePathBrand]: true };

/** What an address may have at its end; none of them is the end of another. */
const ENDINGS = ['/', '/index', '.html', '.md', '.mdx'];

/**
 * The page of a path as the platform sent it. Idempotent: the page of a page is itself. The macro `page_of` is the same
 * in SQL.
 */
export function pageOf(path: string): PagePath {
  const end = path.search(/[?#]/);
  const address = end < 0 ? path : path.slice(0, end);
  let page = (address.startsWith('/') ? address : `/${address}`).replace(/\/{2,}/g, '/');
  for (let ending: string | undefined; (ending = ENDINGS.find((end) => page.endsWith(end)));)
    page = page.slice(0, -ending.length);
  return (page || '/') as PagePath;
}

/** Pages by a pattern: without a wildcard, it names one page by any of its addresses. */
export const pagePattern = (pattern: string): string =>
  /[*?[\]{}()]/.test(pattern) ? pattern.replace(/(?<=.)\/+$/, '') : pageOf(pattern);
