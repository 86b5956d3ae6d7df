import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { chatParts } from '../../src/format/chat.js';
import { listPages, writePage } from '../../src/reports/report-pages.js';
import { ISO_CALENDAR, periodNamed } from '../../src/reports/period.js';
import { tempDir } from '../temp-dir.js';
import { fullHistory } from './full-history.js';
import type { TestHistory } from './history.js';
import { prepare, SITE_URL } from './prepare.js';

const APP = 'https://readers.example.com';

let history: TestHistory;
beforeAll(async () => {
  history = await fullHistory();
});

/** The addresses that each form of a report leads to, besides pull requests. */
async function linksIn(name: string, webApp?: string) {
  const more = webApp === undefined ? {} : { webApp };
  const report = await prepare({ reader: history.reader, name, siteUrl: SITE_URL, ...more });
  const mail = await report.email();
  const hrefs = (html: string) =>
    [...html.matchAll(/href="(https?:[^"]+)"/g)]
      .map(([, href = '']) => href.replaceAll('&amp;', '&').replaceAll('&#x3D;', '='))
      .filter((href) => !href.includes('/pull/'));
  return { mail: hrefs(mail.html), page: hrefs(await report.page()), text: mail.text, chat: report.chat() };
}

describe.each(['weekly', 'improve'])('the links of %s', (name) => {
  it('lead into the web app if it has an address: pages, agents, and the report itself', async () => {
    const { mail, page, text, chat } = await linksIn(name, APP);
    const report = `${APP}/reports/prj_1/${name}-2026-W46.html`;
    for (const links of [mail, page]) {
      expect(links.length).toBeGreaterThan(5);
      expect(links.filter((href) => !href.startsWith(`${APP}/`))).toEqual([]);
      const [toPage = expect.fail()] = links.filter((href) => href.startsWith(`${APP}/page?`));
      const parameters = new URL(toPage).searchParams;
      expect(parameters.get('project')).toBe('prj_1');
      expect(parameters.get('path')).toMatch(/^\//);
    }
    expect(mail).toEqual(expect.arrayContaining([report, `${APP}/agents?project=prj_1`]));
    expect(text).toContain(`Open in the browser: ${report}\n`);
    const [linked] = chatParts(chat).filter(({ href }) => href !== null);
    expect(linked?.href).toContain(`${APP}/page?project=prj_1&path=%2F`);
  });

  it('lead to the site without a web app, and nothing else pretends to be one', async () => {
    const { mail, page, text, chat } = await linksIn(name);
    for (const links of [mail, page])
      expect(links.filter((href) => !href.startsWith(`${SITE_URL}/`))).toEqual([]);
    expect(text).not.toContain('Open in the browser');
    expect(chat).not.toMatch(/https:\/\/(readers|docs)/);
    expect(chatParts(chat).filter(({ href }) => href !== null)).toEqual([]);
  });
});

it('a very long path is no link in an email, and one on the page', async () => {
  const { mail, page } = await linksIn('weekly', APP);
  const isLong = (href: string) => href.includes('x'.repeat(2_000));
  expect([mail.some(isLong), page.some(isLong)]).toEqual([false, true]);
});

function rendered(name: string, periodName: string) {
  const period = periodNamed(periodName, ISO_CALENDAR) ?? expect.fail(`no period ${periodName}`);
  return { name, period, page: () => Promise.resolve('<title>a report</title>') };
}

it('pages are listed by period, newest first, across projects; other files are not', async () => {
  const directory = await tempDir();
  await writePage(directory, 'prj/1', rendered('weekly', '2026-W46'));
  await writePage(directory, 'prj_2', rendered('weekly', '2026-W46'));
  await writePage(directory, 'prj_2', rendered('weekly', '2026-W53'));
  await writePage(directory, 'prj_2', rendered('sections', '2026-10'));
  await writeFile(join(directory, 'prj_2', 'notes.html'), 'not a report');
  await writeFile(join(directory, 'prj_2', 'notes-2026-13.html'), 'nor of a month');
  // The folder name is the encoded id, so its URL is encoded twice.
  const pages = await listPages(directory, ISO_CALENDAR);
  expect(pages.map(({ period, name, href }) => [period.label, name, href])).toEqual([
    ['Week 53', 'weekly', 'prj_2/weekly-2026-W53.html'],
    ['Week 46', 'weekly', 'prj%252F1/weekly-2026-W46.html'],
    ['Week 46', 'weekly', 'prj_2/weekly-2026-W46.html'],
    ['October 2026', 'sections', 'prj_2/sections-2026-10.html'],
  ]);
  // Without a directory there are none.
  expect(await listPages(join(directory, 'none'), ISO_CALENDAR)).toEqual([]);
});
