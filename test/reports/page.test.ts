import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launchChromium, newPage, skipWithoutChromium } from '../chromium.js';
import { tempDir } from '../temp-dir.js';
import { loadDays, siteHistory, type TestHistory } from './history.js';
import { prepare, SITE_URL } from './prepare.js';

describe.skipIf(skipWithoutChromium)('the weekly page in Chromium (skipped where none is installed)', () => {
  let browser: Browser;
  let history: TestHistory;
  let html: string;

  beforeAll(async () => {
    history = await siteHistory({ pages: 60 });
    await history.run(`
      INSERT INTO page_views VALUES ('prj_1', '2026-11-12', '/${'wide'.repeat(500)}', '/${'wide'.repeat(500)}', 12345678, 12345679, 24691357);
      UPDATE page_views SET ai = ai * 250000 WHERE path = '/changelog' AND day = '2026-11-13'`);
    await loadDays(history);
    await history.run(`
      INSERT INTO agent_jobs BY NAME
      SELECT 1 AS id, 'prj_1' AS project, '/${'long'.repeat(50)}' AS path, 'unknown' AS state, 'why' AS reason,
        'p' AS prompt, 0 AS polls, TIMESTAMP '2026-11-16' AS planned_at, '${'note'.repeat(100)}' AS note`);
    html = await (await prepare({ reader: history.reader, name: 'weekly', siteUrl: SITE_URL })).page();
    browser = await launchChromium();
  });
  afterAll(() => browser.close());

  test.each([390, 820, 1280])('at %i px: no overflow, no requests and no console messages', async (width) => {
    const page = await newPage(browser, width);
    const noise: string[] = [];
    page.on('request', (request) => noise.push(request.url()));
    page.on('console', (message) => noise.push(message.text()));
    page.on('pageerror', (error) => noise.push(error.message));
    await page.setContent(html, { waitUntil: 'load' });
    await page.getByText('The weeks in numbers').click();

    // Strings, because this runs in the page and the types here have no DOM.
    const wide = await page.evaluate<number>('document.documentElement.scrollWidth');
    expect(wide).toBeLessThanOrEqual(width);
    const clipped = await page.evaluate<string[]>(`
      [...document.querySelectorAll('svg')].filter((svg) => svg.getBoundingClientRect().width > 0).flatMap((svg) => {
        const frame = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text')]
          .filter((text) => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
          })
          .map((text) => text.textContent);
      })`);
    expect(clipped).toEqual([]);
    const inTheirCells = await page.evaluate<boolean>(`
      [...document.querySelectorAll('.measure > span')].every((span) => span.scrollWidth <= span.parentElement.clientWidth) &&
      [...document.querySelectorAll('.measure > .change')].every((change) => change.scrollWidth <= change.clientWidth)`);
    expect(inTheirCells).toBe(true);
    expect(noise.filter((line) => !line.startsWith('data:'))).toEqual([]);
  });

  test('a table that is wider than a phone can be scrolled', async () => {
    const workspaceDir = await tempDir();
    const folder = join(workspaceDir, 'reports', 'own');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'report.yaml'), 'title: Own\n');
    const columns = Array.from({ length: 9 }, (_, index) => `12345678 AS number_${index}`);
    await writeFile(join(folder, 'wide.sql'), `SELECT ${columns.join(', ')} FROM range(2)`);
    const given = { reader: history.reader, name: 'own', workspaceDir };
    const page = await newPage(browser, 390);
    await page.setContent(await (await prepare(given)).page());
    const found = await page.evaluate<unknown>(`(() => {
      const frame = document.querySelector('.scrolls');
      return { overflow: getComputedStyle(frame).overflowX, isWider: frame.scrollWidth > frame.clientWidth };
    })()`);
    expect(found).toEqual({ overflow: 'auto', isWider: true });
  });

  test('shows one chart at a time, one headline, and landmarks', async () => {
    const page = await newPage(browser, 390);
    await page.setContent(html);
    expect(await page.locator('svg:visible').count()).toBe(1);
    expect(await page.getByRole('img', { name: /^Views per day/ }).count()).toBe(1);
    expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
    // A path that is cut can be read in full.
    expect(await page.getByTitle(`/${'wide'.repeat(500)}`).count()).toBeGreaterThan(0);
    for (const role of ['banner', 'main', 'contentinfo'] as const) {
      expect(await page.getByRole(role).count()).toBe(1);
    }
  });
});
