import { caniemail } from 'caniemail';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ReportMail } from '../../src/reports/mail.js';
import { renderReport } from '../../src/reports/render.js';
import { fullHistory } from './full-history.js';
import type { TestHistory } from './history.js';

let history: TestHistory;
beforeAll(async () => {
  history = await fullHistory();
});
afterAll(() => {
  history.close();
});

async function mailOf(name: string): Promise<ReportMail> {
  const { mail } = await renderReport({
    reader: history.reader,
    name,
    project: { id: 'prj_1', name: 'Acme Docs', siteUrl: 'https://docs.example.com' },
    now: new Date('2026-11-18T09:00:00Z'),
  });
  if (mail === null) throw new Error(`${name} has no mail`);
  return mail;
}

const SECTIONS: Readonly<Record<string, readonly string[]>> = {
  weekly: ['What moved', 'Most read', 'AI reads it', 'People read it', 'New this week', 'Agent work'],
  improve: [
    ...[
      'Waiting for',
      'Newly flagged',
      'Worth an agent',
      'Unconfirmed',
      'Running',
      'Failed',
      'without a change',
    ],
    ...['After earlier work', 'Skipped'],
  ],
};

describe.each(['weekly', 'improve'])('the email of %s', (name) => {
  test('stays under 80 KB with every section filled', async () => {
    const { html } = await mailOf(name);
    for (const section of SECTIONS[name] ?? []) expect(html).toContain(section);
    expect(Buffer.byteLength(html)).toBeLessThan(80_000);
  });

  test('is byte-for-byte identical when rendered twice', async () => {
    expect(await mailOf(name)).toEqual(await mailOf(name));
  });

  test('shows hostile paths as text, in HTML and in plain text', async () => {
    const { html, text } = await mailOf(name);
    expect(html).not.toMatch(
      /<script|<[a-z][^>]*\son\w+=|href="(?!https:\/\/(?:docs\.example\.com|github\.com)\/)/,
    );
    expect(html).toContain('&lt;script&gt;');
    for (const part of [html, text]) {
      expect(part).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
      expect(part).not.toContain('x'.repeat(100));
    }
    expect(text).toContain('/<script>alert(1)</script>');
    expect(text.split('\n')).not.toContain('Forged line');
  });

  test('contains the subject, a preview and everything important as text', async () => {
    const { subject, preheader, html, text } = await mailOf(name);
    expect(subject).toContain('9 – 15 Nov 2026');
    expect(preheader).not.toBe('');
    const seen = html.replace(/<style>[^]*?<\/style>/g, '').replace(/<[^>]*>/g, '');
    const numbers = (of: string): Set<string> => new Set(of.match(/\d+(?:[,.]\d+)*%?/g));
    // Every number in the plain text is also in the HTML, outside the image.
    for (const number of numbers(text.replace(/https?:\S+/g, '')))
      expect([...numbers(seen)]).toContain(number);
  });

  /** Uses the caniemail.com support data in the package `caniemail` 1.0.5. */
  test('depends on nothing that Gmail, Outlook or Apple Mail lack', async () => {
    const { html } = await mailOf(name);
    const { issues } = caniemail({
      clients: ['gmail.*', 'outlook.windows', 'outlook.macos', 'outlook.ios', 'apple-mail.*'],
      html,
    });
    const lacking = new Set([...issues.errors.values()].flat().map(({ title }) => title));
    expect([...lacking].filter((title) => !ORNAMENTS.includes(title))).toEqual([]);
  });
});

/**
 * Features an email client may lack without losing content: dark and narrow layouts (rules that
 * stay in `<style>`), rounded corners, breaks in lines and long paths, the background around the
 * content, and hiding the preview text above it (Outlook uses `mso-hide`).
 */
const ORNAMENTS: readonly string[] = [
  ...['<style> element', '@media', '@media (prefers-color-scheme)', 'Type selector', 'Class selector'],
  ...[
    'Descendant combinator',
    'border-radius',
    'white-space',
    'word-break',
    '<wbr> element',
    'max-width',
    '<body> element',
  ],
  ...['display:none', 'overflow', 'max-height'],
];

describe('the image in the email', () => {
  test('is opaque, twice as wide as displayed, and has alternative text', async () => {
    const { pictures, html } = await mailOf('weekly');
    expect(pictures).toHaveLength(1);
    const [picture] = pictures;
    if (picture === undefined) throw new Error('no picture');
    const png = Buffer.from(picture.png);
    expect(png.subarray(1, 4).toString()).toBe('PNG');
    expect(png.readUInt32BE(16)).toBe(2 * picture.width);
    expect(html).toContain(`<img src="cid:${picture.cid}" width="${picture.width}"`);
    expect(picture.alt).toMatch(/Human: [\d,]+ .*AI: [\d,]+ /);
  });
});
