import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { readSitemap, Sitemap, SitemapError } from '../../src/agents/sitemap.js';
import { serve } from '../serve.js';
import { tempDir } from '../temp-dir.js';

const SITE = 'https://docs.example.com';
const signal = new AbortController().signal;

/** The addresses in a sitemap. */
const read = async (source: string, timeoutMs?: number): Promise<string[]> =>
  (await readSitemap(source, signal, timeoutMs))?.pagesOf(undefined) ?? [];

/** What a file may not exceed. */
const MAX_BYTES = 52_428_800;

async function fileOf(xml: string | Buffer): Promise<string> {
  const file = join(await tempDir(), 'sitemap.xml');
  await writeFile(file, xml);
  return file;
}

const urlset = (...addresses: string[]): string =>
  `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
${addresses.map((loc) => `<url><loc>${loc}</loc><image:image><image:loc>${SITE}/no-page.png</image:loc></image:image></url>`).join('')}
</urlset>`;

const index = (...addresses: string[]): string =>
  `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${addresses
    .map((loc) => `<sitemap><loc>${loc}</loc></sitemap>`)
    .join('')}</sitemapindex>`;

/** Serves files by path, with `{base}` in them replaced by the server's own address. */
async function site(files: Readonly<Record<string, string | Buffer>>) {
  const server = await serve(({ url }, response) => {
    const file = files[url.pathname];
    response.statusCode = file === undefined ? 404 : 200;
    response.end(typeof file === 'string' ? file.replaceAll('{base}', server.baseUrl) : file);
  });
  return server;
}

describe('reading a sitemap', () => {
  it('reads the addresses of pages, not of their images', async () => {
    const file = await fileOf(urlset(`${SITE}/a`, ` ${SITE}/b?x=1&amp;y=2\n`, `<![CDATA[${SITE}/c]]>`));
    expect(await read(file)).toEqual(['/a', '/b', '/c']);
  });

  it.each([
    ['cut short', urlset(`${SITE}/a`).slice(0, -12), 'unclosed tag'],
    ['a web page', '<html><body></body></html>', 'its root element is <html>'],
    ['empty', '', 'document must contain a root element'],
    ['an entity', `<!DOCTYPE urlset [<!ENTITY a "aa">]><urlset><url><loc>&a;</loc></url></urlset>`, 'entity'],
    ['not a web address', urlset('javascript:alert(1)'), 'which is not a web address'],
    ['a bare path', urlset('/quickstart'), 'which is not a web address'],
  ])('says what is wrong: %s', async (_, xml, words) => {
    await expect(read(await fileOf(xml))).rejects.toThrow(words);
  });

  it('reads on beside elements that are nested a million deep', async () => {
    const deep = `${'<a>'.repeat(1_000_000)}${'</a>'.repeat(1_000_000)}`;
    expect(await read(await fileOf(urlset(`${SITE}/a`).replace('</urlset>', `${deep}</urlset>`)))).toEqual([
      '/a',
    ]);
  });
});

describe('loading a sitemap', () => {
  it('from a compressed file', async () => {
    expect(await read(await fileOf(gzipSync(urlset(`${SITE}/b`))))).toEqual(['/b']);
  });

  it('from the web, with the sitemaps an index refers to', async () => {
    const { baseUrl } = await site({
      '/sitemap.xml': index('{base}/one.xml', '{base}/two.xml'),
      '/one.xml': urlset(`${SITE}/a`),
      '/two.xml': urlset(`${SITE}/b`, `${SITE}/c`),
    });
    expect(await read(`${baseUrl}/sitemap.xml`)).toEqual(['/a', '/b', '/c']);
  });

  it('follows a redirect or two, not many', async () => {
    const server = await serve(({ url }, response) => {
      const left = Number(url.searchParams.get('left'));
      if (left === 0) response.end(urlset(`${SITE}/a`));
      else response.writeHead(302, { location: `/?left=${left - 1}` }).end();
    });
    expect(await read(`${server.baseUrl}/?left=3`)).toEqual(['/a']);
    await expect(read(`${server.baseUrl}/?left=9`)).rejects.toThrow('the server answered 302');
  });

  it.each<[string, string | Buffer, string]>([
    ['an index of an index', index('{base}/self.xml'), 'it is an index that another index refers to'],
    ['a sitemap on another site', index('http://169.254.169.254/latest'), 'a sitemap on another site'],
    ['too many sitemaps', index(...Array.from({ length: 101 }, () => '{base}/a.xml')), 'more than 100'],
    ['a sitemap without pages', urlset(), 'it lists no page of any site'],
    ['a file that is too large', Buffer.alloc(MAX_BYTES + 1), `larger than ${MAX_BYTES} bytes; split it`],
    ['a large file, compressed', gzipSync(Buffer.alloc(MAX_BYTES + 1)), `larger than ${MAX_BYTES} bytes`],
    ['a broken compressed file', gzipSync(urlset(`${SITE}/a`)).subarray(0, 60), 'unexpected end of file'],
  ])('refuses %s', async (_, file, words) => {
    const { baseUrl } = await site({ '/self.xml': file });
    const loading = read(`${baseUrl}/self.xml`);
    await expect(loading).rejects.toThrow(SitemapError);
    await expect(loading).rejects.toThrow(words);
  });

  it('refuses a large file, and what is no file', async () => {
    await expect(read(await fileOf(Buffer.alloc(MAX_BYTES + 1)))).rejects.toThrow(`larger than ${MAX_BYTES}`);
    await expect(read('/dev/null')).rejects.toThrow('it is not a regular file');
  });

  it('follows no redirect to another site, neither for the sitemap nor for one it refers to', async () => {
    const other = await site({ '/sitemap.xml': urlset(`${SITE}/a`) });
    const server = await serve(({ url }, response) => {
      if (url.pathname === '/index.xml') response.end(index(`${server.baseUrl}/sitemap.xml`));
      else response.writeHead(301, { location: `${other.baseUrl}/sitemap.xml` }).end();
    });
    for (const path of ['/sitemap.xml', '/index.xml'])
      await expect(read(server.baseUrl + path)).rejects.toThrow(
        `${server.baseUrl}/sitemap.xml (improve.sitemap): it redirects to another site, ${other.baseUrl}/sitemap.xml; if you trust that site, use this address instead.`,
      );
    expect(other.seen).toEqual([]);
  });

  it('does not wait forever for a server, and names the sitemap that cannot be read', async () => {
    const { baseUrl } = await serve(() => undefined);
    await expect(read(`${baseUrl}/slow.xml`, 50)).rejects.toThrow(
      /Cannot use the sitemap http.*slow\.xml \(improve\.sitemap\): reading took longer than 0\.05 s; save it/,
    );
    await expect(read(`${(await site({})).baseUrl}/sitemap.xml`)).rejects.toThrow(
      'the server answered 404; check the address',
    );
    await expect(read('/nowhere/sitemap.xml')).rejects.toThrow('ENOENT');
  });
});

describe('what a sitemap lists', () => {
  const addresses = [`${SITE}/docs/a`, `${SITE}/docs/b/`, 'https://blog.example.com/c'].map(
    (text) => new URL(text),
  );

  it('is the site’s own pages, from its root or its front page, with or without a slash', () => {
    const isListed = new Sitemap('sitemap.xml', addresses).listedOn(`${SITE}/docs`);
    for (const path of ['/docs/a', '/a', '/a/', '/b']) expect(isListed(path), path).toBe(true);
    for (const path of ['/c', '/ignore-previous-instructions']) expect(isListed(path), path).toBe(false);
  });

  it('has paths from the site’s address, each once', () => {
    const more = ['/docs/', '/docs/b', '/other'].map((path) => new URL(SITE + path));
    const twice = [...addresses, ...more];
    expect(new Sitemap('sitemap.xml', twice).pagesOf(`${SITE}/docs`)).toEqual(['/a', '/b', '/']);
    expect(new Sitemap('sitemap.xml', addresses).pagesOf(undefined)).toEqual(['/docs/a', '/docs/b', '/c']);
  });

  it('is a page at any of its addresses', () => {
    for (const path of ['/docs/a.html', '/docs/a/index.md', '/docs//a/', '/docs/a?x=1'])
      expect(
        new Sitemap('sitemap.xml', [new URL(SITE + path)]).listedOn(`${SITE}/docs`)('/docs/a'),
        path,
      ).toBe(true);
    const front = new Sitemap('sitemap.xml', [new URL(`${SITE}/docs/index.html`)]).listedOn(`${SITE}/docs`);
    for (const path of ['/', '/docs', '/docs.md', '/index']) expect(front(path), path).toBe(true);
  });

  it('is every page if the site’s address is not known, and refused if it lists no page of the site', () => {
    expect(new Sitemap('sitemap.xml', addresses).listedOn(undefined)('/c')).toBe(true);
    expect(() => new Sitemap('sitemap.xml', addresses).listedOn('https://other.example.com')).toThrow(
      'lists no page of https://other.example.com',
    );
  });

  it('is not requested without a sitemap', async () => {
    expect(await readSitemap(undefined, signal)).toBeUndefined();
  });
});
