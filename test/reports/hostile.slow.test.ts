import fc from 'fast-check';
import PostalMime from 'postal-mime';
import { beforeAll, describe, expect, it } from 'vitest';
import { compose } from '../../src/mail/compose.js';
import { hostilePiece, tries } from '../fuzz.js';
import { sender } from '../mail/letters.js';
import { valuesOf } from '../open-history.js';
import { addHostile } from './full-history.js';
import { siteHistory, type TestHistory } from './history.js';
import { NOW, prepare, SITE_URL } from './prepare.js';

let history: TestHistory;
beforeAll(async () => {
  history = await siteHistory({ pages: 100 });
});

type Surroundings = typeof HARMLESS;
type Rendered = Awaited<ReturnType<typeof rendered>>;

/** A report over a history with these paths in every section of it. */
async function rendered(report: string, { paths, note, projectName }: Surroundings) {
  await history.run('BEGIN');
  try {
    await addHostile(history, paths, note);
    const prepared = await prepare({ reader: history.reader, name: report, projectName, siteUrl: SITE_URL });
    return { html: await prepared.page(), text: prepared.text(), mail: await prepared.email() };
  } finally {
    await history.run('ROLLBACK');
  }
}

const mailOf = async ({ mail }: Rendered) => {
  const key = { report: 'weekly', project: 'prj_1', period: '2026-W46', recipient: 'docs@example.com' };
  const letterhead = { from: sender('Readership <readership@example.com>') };
  return PostalMime.parse((await compose(key, mail, letterhead, NOW)).bytes);
};

const ALL_ARE_PAGES =
  'SELECT bool_and(is_page(page_of(path))) AS is_each FROM (SELECT unnest($paths::JSON::VARCHAR[]) AS path)';
const PATHS = 9;
const HARMLESS = {
  paths: Array.from({ length: PATHS }, (_, index) => `/page-${index}`),
  note: 'The connection was reset',
  projectName: 'Acme Docs',
};

const UNSEEN = /[\p{Cf}\p{Zl}\p{Zp}]|(?![\n\t])\p{Cc}/u;

const text = fc.oneof(
  fc.array(hostilePiece, { minLength: 1, maxLength: 8 }).map((pieces) => pieces.join('')),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }),
);
const path = fc.tuple(fc.constantFrom('/', '', '//', '/docs/'), text).map((parts) => parts.join(''));
const surroundings: fc.Arbitrary<Surroundings> = fc.record({
  paths: fc.uniqueArray(path, { minLength: PATHS, maxLength: PATHS }),
  note: text,
  // The configuration takes no other.
  projectName: text.filter((name) => !UNSEEN.test(name) && !/[\n\t]/.test(name)),
});

const TAG = /<!--[^]*?-->|<!?\/?[a-z][a-z0-9]*(?:\s+[a-z0-9:-]+(?:="[^"]*")?)*\s*\/?>/gi;

const tagsOf = (html: string): string[] =>
  Array.from(html.replaceAll(/<(style|script)>[^]*?<\/\1>/g, '').matchAll(TAG), ([tag]) => tag);

/** Tags without the values of their attributes, and without links and breaks, whose number depends on the path. */
const skeletonOf = (html: string): string[] =>
  tagsOf(html)
    .map((tag) => tag.replaceAll(/="[^"]*"/g, ''))
    .filter((tag) => !/^<\/?(?:a|bdi|wbr)\b/.test(tag));

/** The text of a page outside its tags, as a reader sees it. */
const readingOf = (html: string): string =>
  html.replaceAll(/<(style|script)>[^]*?<\/\1>/g, '').replaceAll(TAG, '');

describe.each(['weekly', 'improve'])('%s, with any paths, notes and project name', (report) => {
  let harmless: Rendered;
  beforeAll(async () => {
    harmless = await rendered(report, HARMLESS);
  });

  it('has the same elements, lines and headers as with harmless ones, and links only to the site', async () => {
    const property = fc.asyncProperty(surroundings, async (hostile) => {
      // Lists leave out what is no page, such as a path with `..`.
      const [isEach] = await valuesOf(history.reader, ALL_ARE_PAGES, {
        paths: JSON.stringify(hostile.paths),
      });
      fc.pre(isEach === true);
      const shown = await rendered(report, hostile);
      for (const [html, like] of [
        [shown.html, harmless.html],
        [shown.mail.html, harmless.mail.html],
      ] as const) {
        expect(skeletonOf(html)).toEqual(skeletonOf(like));
        expect(readingOf(html)).not.toMatch(/[<>]/);
        for (const tag of tagsOf(html)) {
          expect(tag.replaceAll(/="[^"]*"/g, '=')).not.toMatch(/\son[a-z]+=/i);
          expect(tag).not.toMatch(/\ssrc="(?!cid:|data:)/i);
        }
        for (const [, href = ''] of html.matchAll(/<[^>]*\shref="([^"]*)"/g))
          expect(href).toMatch(/^(?:https:\/\/docs\.example\.com\/|https:\/\/github\.com\/acme\/|#|data:,$)/);
      }
      expect(shown.text.split(/\r\n|[\n\r\u2028\u2029\u0085\v\f]/)).toHaveLength(
        harmless.text.split('\n').length,
      );
      for (const part of [shown.text, shown.mail.text, readingOf(shown.mail.html), readingOf(shown.html)])
        expect(part).not.toMatch(UNSEEN);
      const [mail, like] = [await mailOf(shown), await mailOf(harmless)];
      expect(mail.headers.map(({ key }) => key)).toEqual(like.headers.map(({ key }) => key));
      expect(mail.to).toEqual(like.to);
      expect(mail.attachments.length).toBe(like.attachments.length);
      expect(mail.text?.trim()).toBe(shown.mail.text.trim());
      // The ids of pictures are unique among emails.
      expect(mail.html?.trim().replaceAll(/cid:\w+\.(?=weekly|improve)/g, 'cid:')).toBe(
        shown.mail.html.trim(),
      );
    });
    // Each trial renders two reports and their emails, so the first failing one is not shrunk.
    await fc.assert(property, { ...tries(6), endOnFailure: true });
  });
});
