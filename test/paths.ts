import { uniformFrom } from '../src/sandbox/traffic/random.js';

/** Paths as platforms send them, and their pages. */
export const CASES: readonly (readonly [path: string, page: string])[] = [
  ['/guide', '/guide'],
  ['/guide/', '/guide'],
  ['/guide//', '/guide'],
  ['/guide.md', '/guide'],
  ['/guide.mdx', '/guide'],
  ['/guide.html', '/guide'],
  // Some tools add .md to any address.
  ['/guide.html.md', '/guide'],
  ['/guide/.md', '/guide'],
  ['/guide.md/', '/guide'],
  ['/docs/index', '/docs'],
  ['/docs/index.html', '/docs'],
  ['/docs/index.md', '/docs'],
  ['/docs/index/', '/docs'],
  ['/a//b/', '/a/b'],
  ['//a/b', '/a/b'],
  ['/guide.md?x=1#y', '/guide'],
  ['/guide/?plain', '/guide'],
  ['/guide#install', '/guide'],
  ['/guide?next=/a/', '/guide'],
  ['/', '/'],
  ['//', '/'],
  ['', '/'],
  ['?x=1', '/'],
  ['/index', '/'],
  ['/index.html', '/'],
  ['/index.md', '/'],
  ['/.md', '/'],
  ['docs/guide', '/docs/guide'],
  ['index.html', '/'],
  // What only looks like an ending stays, and so do files.
  ['/reindex', '/reindex'],
  ['/index-of-terms', '/index-of-terms'],
  ['/indexes/a', '/indexes/a'],
  ['/Index', '/Index'],
  ['/README.md', '/README'],
  ['/readmemd', '/readmemd'],
  ['/v1.2', '/v1.2'],
  ['/v1.2/', '/v1.2'],
  ['/llms.txt', '/llms.txt'],
  ['/openapi.json', '/openapi.json'],
  ['/sitemap.xml', '/sitemap.xml'],
  ['/page.htm', '/page.htm'],
  ['/guide.MD', '/guide.MD'],
  ['/guide.markdown', '/guide.markdown'],
  ['/a.md/b', '/a.md/b'],
  ['/caf%C3%A9/', '/caf%C3%A9'],
  ['/a%2Fb%3Fc', '/a%2Fb%3Fc'],
  ['/ü/日本/🦆/', '/ü/日本/🦆'],
  ['/a b/ ', '/a b/ '],
  ['/a\n.md', '/a\n'],
  ['/a.md\n', '/a.md\n'],
  ['/a\u0000/', '/a\u0000'],
  ['/a\\b/', '/a\\b'],
];

/** Pieces of which nasty paths consist. */
const PIECES = [
  '/',
  '/',
  'index',
  '.html',
  '.md',
  '.mdx',
  '?',
  '#',
  'a',
  '.',
  'é',
  '🦆',
  '\n',
  '\r',
  '\u0000',
  '%2F',
  ' ',
  '\\',
  '$',
  '"',
  "'",
];

/** Paths at random, the same ones each time. */
export function randomPaths(count: number): string[] {
  const uniform = uniformFrom(54);
  const piece = () => PIECES[Math.floor(uniform() * PIECES.length)] ?? '';
  return Array.from({ length: count }, () =>
    Array.from({ length: Math.floor(uniform() * 9) }, piece).join(''),
  );
}
