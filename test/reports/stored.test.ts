import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { inFormat } from '../../src/reports/formats.js';
import { writeIndex } from '../../src/reports/index-page.js';
import { day } from '../../src/day.js';
import { ISO_CALENDAR } from '../../src/reports/period.js';
import type { RenderedReport } from '../../src/reports/render.js';
import { writePage } from '../../src/reports/write.js';

const WEEK = { first: day('2026-11-09'), last: day('2026-11-15') };

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'readership-stored-'));
});
afterEach(() => rm(directory, { recursive: true }));

const rendered = (name: string, period: string, subject: string): RenderedReport => ({
  ...{ name, period, days: WEEK, subject, text: null, mail: null, model: { human: 3 } },
  html: `<title>${subject.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</title>`,
});

const index = async (): Promise<string> =>
  readFile(await writeIndex(directory, { workspaceDir: undefined, calendar: ISO_CALENDAR }), 'utf8');

test('the index lists every page by period, newest first, across projects', async () => {
  await writePage(directory, 'prj/1', rendered('weekly', '2026-W46', 'Docs <b> & more'));
  await writePage(directory, 'prj_2', rendered('weekly', '2026-W46', 'Second'));
  await writePage(directory, 'prj_2', rendered('weekly', '2026-W53', 'Last week'));
  await writePage(directory, 'prj_2', rendered('sections', '2026-10', 'October'));
  await writeFile(join(directory, 'prj_2', 'notes.html'), 'not a report');
  const html = await index();
  const order = [
    ...['Week 53', 'Weekly · Last week', 'Week 46', 'Weekly · Docs &lt;b&gt; &amp; more', 'Weekly · Second'],
    ...['October 2026', 'Sections · October'],
  ];
  expect(html.match(/<h2>.*?<\/h2>|<li>.*?<\/li>/gs)?.join('\n')).toMatch(new RegExp(order.join('[^]*')));
  // The folder name is the encoded id, so its URL is encoded twice.
  expect(html).toContain('href="prj%252F1/weekly-2026-W46.html"');
  expect(html).not.toContain('notes');
});

test('an empty index says how to create a report', async () => {
  expect(await index()).toContain('readership report weekly');
});

test('a report without a text template says which one to add', () => {
  const report = rendered('sections', '2026-10', 'October');
  expect(() => inFormat(report, 'text')).toThrow('add templates/sections.text.hbs');
  expect(JSON.parse(inFormat(report, 'json'))).toEqual({ report: 'sections', subject: 'October', human: 3 });
});
