import { caniemail } from 'caniemail';
import { beforeAll, describe, expect, test } from 'vitest';
import { chatParts } from '../../src/format/chat.js';
import { compose } from '../../src/mail/compose.js';
import { sender } from '../mail/letters.js';
import { fullHistory } from './full-history.js';
import { NOW, prepare, SITE_URL } from './prepare.js';

const APP = 'https://readers.example.com';
const NAMES = ['weekly', 'improve'] as const;
type Name = (typeof NAMES)[number];

/** Every form of a report. */
async function formsOf(name: Name, webApp?: string) {
  const { reader } = history;
  const report = await prepare({ reader, name, siteUrl: SITE_URL, ...(webApp !== undefined && { webApp }) });
  const [page, mail] = [await report.page(), await report.email()];
  return { ...mail, preheader: report.preheader, page, chat: report.chat(), json: report.json() };
}
type Forms = Awaited<ReturnType<typeof formsOf>>;

let history: Awaited<ReturnType<typeof fullHistory>>;
/** The forms of each report: paths in them lead to the site, or into the web app. */
let forms: Record<Name, Forms>;
let inApp: Record<Name, Forms>;
beforeAll(async () => {
  history = await fullHistory();
  forms = { weekly: await formsOf('weekly'), improve: await formsOf('improve') };
  inApp = { weekly: await formsOf('weekly', APP), improve: await formsOf('improve', APP) };
});

const SECTIONS: Readonly<Record<Name, readonly string[]>> = {
  weekly: ['What moved', 'Most read', 'Read by AI', 'Read by people', 'New pages', 'Agent work'],
  improve: ['Waiting for', 'Outcome unknown', 'Failed', 'Other pages', 'No job yet', 'After the merge'],
};

describe.each(NAMES)('the email of %s', (name) => {
  test('stays under 60 KB, and the whole email under 250 KB, with every section full', async () => {
    const mail = forms[name];
    const { html } = mail;
    for (const section of SECTIONS[name]) expect(html).toContain(section);
    expect(Buffer.byteLength(html)).toBeLessThan(60_000);
    const key = { report: name, project: 'prj_1', period: '2026-W46', recipient: 'docs@example.com' };
    const letterhead = { from: sender('Readership <readership@example.com>') };
    const { bytes } = await compose(key, mail, letterhead, NOW);
    expect(bytes.length).toBeLessThan(250_000);
  });

  test('is byte-for-byte identical when rendered twice, as the page is', async () => {
    expect(await formsOf(name)).toEqual(forms[name]);
  });

  test('contains the subject, a preview and everything important as text', () => {
    const { subject, preheader, html, text } = forms[name];
    expect(subject).toContain('Nov 9 – 15, 2026');
    expect(preheader).not.toBe('');
    const seen = html.replace(/<style>[^]*?<\/style>/g, '').replace(/<[^>]*>/g, '');
    const numbers = (of: string): Set<string> => new Set(of.match(/\d+(?:[,.]\d+)*%?/g));
    // Every number in the plain text is also in the HTML, outside the image.
    for (const number of numbers(text.replace(/https?:\S+/g, '')))
      expect([...numbers(seen)]).toContain(number);
  });

  /** Uses the caniemail.com support data in the package `caniemail` 1.0.5. */
  test('depends on nothing that Gmail, Outlook or Apple Mail lack', () => {
    const { html } = forms[name];
    const { issues } = caniemail({
      clients: ['gmail.*', 'outlook.windows', 'outlook.macos', 'outlook.ios', 'apple-mail.*'],
      html,
    });
    const lacking = new Set([...issues.errors.values()].flat().map(({ title }) => title));
    expect([...lacking].filter((title) => !ORNAMENTS.includes(title))).toEqual([]);
  });
});

test('the email of weekly heads the columns of its most-read pages with whose views they have', () => {
  const { html, page } = forms.weekly;
  const heads = (of: string) =>
    /<th scope="col"[^>]*>Page<\/th>(.*?)<\/tr>/
      .exec(of)?.[1]
      ?.replaceAll(/<[^>]*>/g, ' ')
      .match(/\w+/g);
  expect(heads(html)).toEqual(['Human', 'AI']);
  // On the page, the changes have a column of their own beside the bars.
  expect(heads(page)).toEqual(['Human', 'change', 'AI', 'change']);
});

/**
 * Features an email client may lack without losing content: dark and narrow layouts (rules that
 * stay in `<style>`), rounded corners, breaks in lines and long paths, the background around the
 * content, hiding the preview text above it (Outlook uses `mso-hide`), and names of sections beside their headings.
 */
const ORNAMENTS: readonly string[] = [
  '<style> element, @media, @media (prefers-color-scheme), Type selector, Class selector, Descendant combinator',
  'border-radius, white-space, word-break, <wbr> element, max-width, <body> element',
  'display:none, overflow, max-height, aria-labelledby attribute',
].flatMap((features) => features.split(', '));

test('the pictures in the email are transparent, one for each color scheme, small, twice as wide as shown, and described in words', () => {
  const { pictures, html } = forms.weekly;
  const shown = [...html.matchAll(/<img [^>]*>/g)].map(([tag]) => tag);
  expect(shown).toHaveLength(pictures.length);
  for (const [index, { cid, png }] of pictures.entries()) {
    const tag = shown[index] ?? '';
    expect(cid).toBe(`weekly.${Math.floor(index / 2) + 1}.${index % 2 === 0 ? 'light' : 'dark'}@readership`);
    expect(tag).toContain(`src="cid:${cid}"`);
    const bytes = Buffer.from(png);
    expect(bytes.subarray(1, 4).toString()).toBe('PNG');
    expect(bytes.readUInt32BE(16)).toBe(2 * Number(/width="(\d+)"/.exec(tag)?.[1]));
    expect(bytes[25]).toBe(6);
    expect(bytes.length).toBeLessThan(40_000);
    expect(tag).toMatch(/alt="Views per (?:week|day)[^"]*\d[^"]*"/);
    expect(tag).toContain(index % 2 === 0 ? 'class="in-light"' : 'class="in-dark"');
    // If a client ignores styles, the dark one stays hidden.
    expect(/style="[^"]*display: none/.test(tag)).toBe(index % 2 === 1);
    expect(tag).not.toContain('display: block');
  }
  expect(shown[0]).toMatch(/alt="[^"]* Human: [\d,]+ .*AI: [\d,]+ .*width="552"/);
  // Light and dark differ, and every page that moved has its line.
  expect(pictures[0]?.png).not.toEqual(pictures[1]?.png);
  expect(pictures.length).toBeGreaterThan(8);
});

/** The addresses that HTML leads to, besides pull requests. */
const linksIn = (html: string) =>
  [...html.matchAll(/href="(https?:[^"]+)"/g)]
    .map(([, href = '']) => href.replaceAll('&amp;', '&').replaceAll('&#x3D;', '='))
    .filter((href) => !href.includes('/pull/'));

describe.each(NAMES)('the links of %s', (name) => {
  test('lead into the web app if it has an address: pages, agents, and the report itself', () => {
    const { html, page, text, chat } = inApp[name];
    const report = `${APP}/reports/prj_1/${name}-2026-W46.html`;
    for (const links of [html, page].map(linksIn)) {
      expect(links.length).toBeGreaterThan(5);
      expect(links.filter((href) => !href.startsWith(`${APP}/`))).toEqual([]);
      const [toPage = expect.fail()] = links.filter((href) => href.startsWith(`${APP}/page?`));
      const parameters = new URL(toPage).searchParams;
      expect(parameters.get('project')).toBe('prj_1');
      expect(parameters.get('path')).toMatch(/^\//);
    }
    expect(linksIn(html)).toEqual(expect.arrayContaining([report, `${APP}/agents?project=prj_1`]));
    expect(text).toContain(`Open in the browser: ${report}\n`);
    const [linked] = chatParts(chat).filter(({ href }) => href !== null);
    expect(linked?.href).toContain(`${APP}/page?project=prj_1&path=%2F`);
  });

  test('lead to the site without a web app, and nothing else pretends to be one', () => {
    const { html, page, text, chat } = forms[name];
    for (const links of [html, page].map(linksIn))
      expect(links.filter((href) => !href.startsWith(`${SITE_URL}/`))).toEqual([]);
    expect(text).not.toContain('Open in the browser');
    expect(chat).not.toMatch(/https:\/\/(readers|docs)/);
    expect(chatParts(chat).filter(({ href }) => href !== null)).toEqual([]);
  });
});

test('a very long path is no link in an email, and one on the page', () => {
  const { html, page } = inApp.weekly;
  const isLong = (href: string) => href.includes('x'.repeat(2_000));
  expect([linksIn(html).some(isLong), linksIn(page).some(isLong)]).toEqual([false, true]);
});

const keysIn = (value: unknown): string[] => {
  if (typeof value !== 'object' || value === null) return [];
  const own = Array.isArray(value) ? [] : Object.keys(value);
  return [...own, ...Object.values(value).flatMap(keysIn)];
};

test.each([
  ['weekly', 'daysLoaded'],
  ['improve', 'newlyFlagged'],
] as const)('the JSON of %s has keys in camelCase, such as %s, in every section', (name, key) => {
  const json: unknown = JSON.parse(forms[name].json);
  expect(json).toMatchObject({ report: name, project: { siteUrl: SITE_URL }, period: { name: '2026-W46' } });
  const keys = keysIn(json);
  expect(keys).toContain(key);
  expect(keys.filter((key) => !/^[a-z][a-zA-Z0-9]*$/.test(key))).toEqual([]);
});
