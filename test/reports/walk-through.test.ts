import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { siteHistory } from './history.js';
import { prepare } from './prepare.js';

/** A file the walkthrough names in backticks before a code block. */
const STEP = /`((?:reports|templates)\/[\w./]+)`:?\n\n```\w+\n([^]*?)```/g;

let workspaceDir: string;
beforeEach(async () => {
  workspaceDir = await mkdtemp(join(tmpdir(), 'readership-guide-'));
});
afterEach(() => rm(workspaceDir, { recursive: true }));

/** Renders the report of docs/reports.md from the files whose names match. */
async function sections(fits: RegExp) {
  const guide = await readFile('docs/reports.md', 'utf8');
  for (const [, file = '', text = ''] of guide.matchAll(STEP)) {
    if (!fits.test(file)) continue;
    await mkdir(dirname(join(workspaceDir, file)), { recursive: true });
    await writeFile(join(workspaceDir, file), text);
  }
  const history = await siteHistory({ pages: 60 });
  const project = { id: 'prj_1', name: 'Acme Docs', siteUrl: 'https://docs.example.com' };
  const now = new Date('2026-11-18T09:00:00Z');
  const report = await prepare({ reader: history.reader, name: 'sections', project, now, workspaceDir });
  const [html, mail] = [await report.page(), await report.mail()];
  return { report, html, mail };
}

test('five lines of YAML and one query make a page, plain text and an email', async () => {
  const { report, html, mail } = await sections(/report\.yaml$|\.sql$/);
  expect(
    (await readFile(join(workspaceDir, 'reports/sections/report.yaml'), 'utf8')).trim().split('\n'),
  ).toHaveLength(5);
  expect(report.subject).toBe('Acme Docs, Oct 1 – 31, 2026: Sections');
  expect(html).toMatch(
    /<td class="text" data-value="\/guides">\/guides<\/td><td class="number" data-value="\d+">[\d,]+<\/td>/,
  );
  expect(report.text()).toMatch(/\nSECTIONS\n\n\/[\w-]+\n {2}Human [\d,]+ · AI [\d,]+\n/);
  expect(mail.html).toMatch(/\/guides<\/td>/);
  expect(JSON.parse(report.json())).toMatchObject({
    rows: { sections: expect.arrayContaining([]) as unknown[] },
  });
});

test('a chart and its own page need no other change', async () => {
  const { html } = await sections(/./);
  expect(html).toMatch(/<h1>\/\S+ is read most: [\d,]+ human views\.<\/h1>/);
  expect(html).toMatch(/<svg role="img"[^>]*><title>Sections<\/title>/);
  expect(html).toMatch(/<path [^>]*fill="var\(--human\)"/);
});
