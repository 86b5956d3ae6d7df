import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { tempDir } from '../temp-dir.js';
import { siteHistory } from './history.js';
import { prepare } from './prepare.js';

/** A file the walkthrough names in backticks before a code block. */
const STEP = /`((?:reports|templates)\/[\w./]+)`:?\n\n```\w+\n([^]*?)```/g;

/** Renders the report of docs/reports.md from the files whose names match. */
async function sections(fits: RegExp) {
  const workspaceDir = await tempDir();
  const guide = await readFile('docs/reports.md', 'utf8');
  for (const [, file = '', text = ''] of guide.matchAll(STEP)) {
    if (!fits.test(file)) continue;
    await mkdir(dirname(join(workspaceDir, file)), { recursive: true });
    await writeFile(join(workspaceDir, file), text);
  }
  const history = await siteHistory({ pages: 60 });
  const report = await prepare({ reader: history.reader, name: 'sections', workspaceDir });
  return { report, html: await report.page(), workspaceDir };
}

test('five lines of YAML and one query make a page with a chart, plain text and an email', async () => {
  const { report, html, workspaceDir } = await sections(/report\.yaml$|\.sql$/);
  const yaml = await readFile(join(workspaceDir, 'reports/sections/report.yaml'), 'utf8');
  expect(yaml.trim().split('\n')).toHaveLength(5);
  expect(report.subject).toBe('Acme Docs, Oct 1 – 31, 2026: Sections');
  expect(html).toContain('<title>Sections</title>');
  expect(html).toMatch(
    /<td class="text" data-value="\/guides">\/guides<\/td><td class="number" align="right" data-value="\d+">[\d,]+<\/td>/,
  );
  expect(report.text()).toMatch(/\nSECTIONS\n\/[\w-]+: Human [\d,]+ · AI [\d,]+\n/);
  const { html: mail, pictures } = await report.email();
  expect(mail).toMatch(/alt="Sections. [^"]*\/guides: Human [\d,]+, AI [\d,]+[^]*\/guides<\/td>/);
  expect(pictures).toHaveLength(2);
  expect(JSON.parse(report.json())).toMatchObject({
    rows: { sections: expect.arrayContaining([]) as unknown[] },
  });
});

test('its own page needs no other change, and has the chart', async () => {
  const { html } = await sections(/./);
  expect(html).toMatch(/<h1>\/\S+ is read most: [\d,]+ human views\.<\/h1>/);
  expect(html).toMatch(/<svg role="img"[^>]*><title>Sections<\/title>/);
  expect(html).toMatch(/<rect [^>]*fill="var\(--human\)"/);
});
