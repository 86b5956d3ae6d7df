import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { pageOf, pagePattern } from '../src/page.js';
import { closeNow, newStore } from './open-history.js';
import { CASES, randomPaths } from './paths.js';

describe('the page of a path', () => {
  it.each(CASES)('%j is %j', (path, page) => {
    expect(pageOf(path)).toBe(page);
  });

  it('is its own page, and its path with any ending has it too', () => {
    for (const path of [...CASES.map(([path]) => path), ...randomPaths(5_000)]) {
      const page = pageOf(path);
      expect(pageOf(page)).toBe(page);
      for (const ending of ['/', '/index', '/index.html', '.html', '.md', '.mdx', '?a=/', '#b'])
        expect(pageOf(`${page}${ending}`), `${path} with ${ending}`).toBe(page);
    }
  });

  it('is found in time proportional to the length of the path', () => {
    const long = '.md'.repeat(1_000_000);
    expect(pageOf(`/a${long}`)).toBe('/a');
    expect(pageOf(`/a${long}b`)).toBe(`/a${long}b`);
    expect(pageOf('/'.repeat(3_000_000))).toBe('/');
  });

  it('is the same in SQL', async () => {
    const paths = [
      ...CASES.map(([path]) => path),
      ...randomPaths(20_000),
      '/'.repeat(5_000),
      `/a${'.md'.repeat(5_000)}b`,
    ];
    const history = await newStore();
    const rows = await history.query(
      `SELECT path, page_of(path) AS page FROM (SELECT unnest(from_json($paths, '["VARCHAR"]')) AS path)`,
      z.object({ path: z.string(), page: z.string() }),
      { paths: JSON.stringify(paths) },
    );
    expect(rows.map(({ path }) => path)).toEqual(paths);
    expect(rows.filter(({ path, page }) => pageOf(path) !== page)).toEqual([]);
    await closeNow(history);
  });
});

it.each([
  ['/guide.md', '/guide'],
  ['/guide/index.html', '/guide'],
  ['/', '/'],
  ['/api/*/', '/api/*'],
  ['/api/*//', '/api/*'],
  ['/api/**', '/api/**'],
  ['/**/*.md', '/**/*.md'],
  ['/{a,b}.md', '/{a,b}.md'],
])('the pattern %s is %s of pages', (pattern, expected) => {
  expect(pagePattern(pattern)).toBe(expected);
});
