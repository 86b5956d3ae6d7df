import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { listedPages, readSitemap } from '../../src/agents/sitemap/listed.js';
import { loadSitemap, SITEMAP_LIMITS } from '../../src/agents/sitemap/load.js';
import { parseSitemap } from '../../src/agents/sitemap/parse.js';
import { SitemapError } from '../../src/agents/sitemap/sitemap-error.js';
import { serve } from '../serve.js';
import { tempDir } from '../temp-dir.js';

const SITE = 'https://docs.example.com';
const signal = new AbortController().signal;

const urlset = (...addresses: string[]): string =>
  `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
${addresses.map((loc) => `<url><loc>${loc}</loc><image:image><image:loc>${SITE}/no-page.png</image:loc></image:image></url>`).join('')}
</urlset>`;

const index = (...addresses: string[]): string =>
  `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${addresses
    .map((loc) => `<sitemap><loc>${loc}</loc></sitemap>`)
    .join('')}</sitemapindex>`;

/** Serves files by path, `{base}` in them being the server's own address. */
async function site(files: Readonly<Record<string, string | Buffer>>) {
  const server = await serve(({ url }, response) => {
    const file = files[url.pathname];
    response.statusCode = file === undefined ? 404 : 200;
    response.end(typeof file === 'string' ? file.replaceAll('{base}', server.baseUrl) : file);
  });
  return server;
}

describe('reading a sitemap', () => {
  it('takes the addresses of pages, not those of their images', () => {
    const { kind, addresses } = parseSitemap(urlset(`${SITE}/a`, ` ${SITE}/b?x=1&amp;y=2\n`));
    expect([kind, addresses.map(String)]).toEqual(['urlset', [`${SITE}/a`, `${SITE}/b?x=1&y=2`]]);
  });

  it.each([
    ['cut short', urlset(`${SITE}/a`).slice(0, -12), 'unclosed tag'],
    ['a web page', '<html><body></body></html>', 'its root element is <html>'],
    ['empty', '', 'document must contain a root element'],
    [
      'an entity of its own',
      `<!DOCTYPE urlset [<!ENTITY a "aaaa">]><urlset><url><loc>&a;</loc></url></urlset>`,
      'entity',
    ],
    ['no web address', urlset('javascript:alert(1)'), 'which is no web address'],
    ['a bare path', urlset('/quickstart'), 'which is no web address'],
  ])('says what is wrong: %s', (_, xml, words) => {
    expect(() => parseSitemap(xml)).toThrow(words);
  });
});

describe('loading a sitemap', () => {
  it('from a file, relative or compressed', async () => {
    const dir = await tempDir();
    await writeFile(join(dir, 'sitemap.xml'), urlset(`${SITE}/a`));
    await writeFile(join(dir, 'sitemap.xml.gz'), gzipSync(urlset(`${SITE}/b`)));
    expect((await loadSitemap(join(dir, 'sitemap.xml'), signal)).map(String)).toEqual([`${SITE}/a`]);
    expect((await loadSitemap(join(dir, 'sitemap.xml.gz'), signal)).map(String)).toEqual([`${SITE}/b`]);
  });

  it('from the web, with the sitemaps an index refers to', async () => {
    const { baseUrl } = await site({
      '/sitemap.xml': index('{base}/one.xml', '{base}/two.xml'),
      '/one.xml': urlset(`${SITE}/a`),
      '/two.xml': urlset(`${SITE}/b`, `${SITE}/c`),
    });
    expect(await loadSitemap(`${baseUrl}/sitemap.xml`, signal)).toHaveLength(3);
  });

  it('follows a redirect or two, not many', async () => {
    const server = await serve(({ url }, response) => {
      const left = Number(url.searchParams.get('left'));
      if (left === 0) response.end(urlset(`${SITE}/a`));
      else response.writeHead(302, { location: `/?left=${left - 1}` }).end();
    });
    expect(await loadSitemap(`${server.baseUrl}/?left=3`, signal)).toHaveLength(1);
    await expect(loadSitemap(`${server.baseUrl}/?left=9`, signal)).rejects.toThrow('redirects too often');
  });

  it.each<[string, string | Buffer, string]>([
    ['an index of an index', index('{base}/self.xml'), 'an index refers to it, yet it is an index itself'],
    ['a sitemap of another site', index('http://169.254.169.254/latest'), 'a sitemap of another site'],
    ['too many sitemaps', index(...Array.from({ length: 6 }, () => '{base}/a.xml')), 'more than 5'],
    ['too many pages', urlset(...Array.from({ length: 21 }, (_, page) => `${SITE}/${page}`)), 'more than 20'],
    ['no page', urlset(), 'it lists no page'],
    ['too large', urlset(`${SITE}/${'a'.repeat(9000)}`), 'exceeded'],
    ['too large when unpacked', gzipSync(urlset(`${SITE}/${'a'.repeat(9000)}`)), 'larger than'],
  ])('refuses %s', async (_, file, words) => {
    const { baseUrl } = await site({ '/self.xml': file });
    const limits = { ...SITEMAP_LIMITS, maxBytes: 8000, maxFiles: 5, maxPages: 20 };
    const loading = loadSitemap(`${baseUrl}/self.xml`, signal, limits);
    await expect(loading).rejects.toThrow(SitemapError);
    await expect(loading).rejects.toThrow(words);
  });

  it('does not wait for ever, and says which sitemap cannot be had', async () => {
    const { baseUrl } = await serve(() => undefined);
    const limits = { ...SITEMAP_LIMITS, timeoutMs: 50 };
    await expect(loadSitemap(`${baseUrl}/slow.xml`, signal, limits)).rejects.toThrow(
      /Cannot use the sitemap http.*slow\.xml \(improve\.sitemap\): .*timeout/,
    );
    await expect(loadSitemap(`${(await site({})).baseUrl}/sitemap.xml`, signal)).rejects.toThrow(
      'answered 404',
    );
    await expect(loadSitemap('/nowhere/sitemap.xml', signal)).rejects.toThrow('ENOENT');
  });
});

describe('what a sitemap lists', () => {
  const addresses = [`${SITE}/docs/a`, `${SITE}/docs/b/`, 'https://blog.example.com/c'].map(
    (text) => new URL(text),
  );

  it('is the site’s own pages, from its root or its front page, slash or not', () => {
    const isListed = listedPages('sitemap.xml', addresses, `${SITE}/docs`);
    expect(['/docs/a', '/a', '/a/', '/b', '/c', '/ignore-previous-instructions'].map(isListed)).toEqual([
      ...[true, true, true, true, false, false],
    ]);
  });

  it('is every page when the site’s address is not known', () => {
    expect(listedPages('sitemap.xml', addresses, undefined)('/c')).toBe(true);
  });

  it('is at fault when it lists none of the site', () => {
    expect(() => listedPages('sitemap.xml', addresses, 'https://other.example.com')).toThrow(
      'lists no page of https://other.example.com',
    );
  });

  it('is not asked for without a sitemap', async () => {
    expect((await readSitemap(undefined, signal))(SITE)).toBeUndefined();
  });
});
