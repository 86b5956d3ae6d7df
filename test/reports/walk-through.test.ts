import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { renderReport, type RenderedReport } from '../../src/reports/render.js';
import { siteHistory } from './history.js';

/** A file the walkthrough names in backticks on the line before a code block. */
const STEP = /`((?:reports|templates)\/[\w./]+)`\n\n```\w+\n([^]*?)```/g;

let workspaceDir: string;
let report: RenderedReport;

beforeAll(async () => {
  const guide = await readFile('docs/reports.md', 'utf8');
  workspaceDir = await mkdtemp(join(tmpdir(), 'readership-guide-'));
  for (const [, file = '', text = ''] of guide.matchAll(STEP)) {
    await mkdir(dirname(join(workspaceDir, file)), { recursive: true });
    await writeFile(join(workspaceDir, file), text);
  }
  const history = await siteHistory({ pages: 60 });
  const project = { id: 'prj_1', name: 'Acme Docs', siteUrl: 'https://docs.example.com' };
  const now = new Date('2026-11-18T09:00:00Z');
  report = await renderReport({ reader: history.reader, name: 'sections', project, now, workspaceDir });
  history.close();
});
afterAll(() => rm(workspaceDir, { recursive: true }));

test('the report in docs/reports.md renders as a page with its chart', () => {
  expect(report.period).toBe('2026-10');
  expect(report.subject).toMatch(/^Acme Docs, October 2026: \/\S+ is read most$/);
  expect(report.html).toMatch(/<svg role="img"[^>]*><title>Views by section<\/title>/);
  expect(report.html).toMatch(/guides<\/bdi>[^]*?<td data-value="\d+">[\d,]+<\/td>/);
});

test('and as plain text and as an email', () => {
  expect(report.text).toMatch(/\n\/guides\n {2}[\d,]+ human · [\d,]+ AI\n/);
  expect(report.mail?.html).toContain('/guides');
});
