import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { launchChromium, newPage, skipWithoutChromium } from '../chromium.js';
import { valuesOf } from '../open-history.js';
import { fullHistory } from './full-history.js';
import { prepare, SITE_URL } from './prepare.js';

describe.skipIf(skipWithoutChromium)('the pages in use (skipped where no Chromium is installed)', () => {
  let browser: Browser;
  const pages: Record<string, string> = {};
  let topByAi: unknown[] = [];

  beforeAll(async () => {
    const history = await fullHistory();
    await history.run('UPDATE agent_jobs SET weekly_human = 19170, weekly_ai = 23030, trend = -0.12');
    for (const name of ['weekly', 'improve']) {
      const report = await prepare({ reader: history.reader, name, siteUrl: SITE_URL });
      pages[name] = await report.page();
      pages[`the email of ${name}`] = (await report.email()).html;
    }
    topByAi = await valuesOf(
      history.reader,
      `SELECT sum(ai)::BIGINT AS ai FROM page_views WHERE day BETWEEN '2026-11-09' AND '2026-11-15' AND is_page(page)
       GROUP BY path ORDER BY ai DESC LIMIT 50`,
    );
    browser = await launchChromium();
  });
  afterAll(() => browser.close());

  async function open(name: string, width: number, colorScheme: 'light' | 'dark' = 'light'): Promise<Page> {
    const page = await newPage(browser, width, colorScheme);
    await page.setContent(pages[name] ?? '');
    return page;
  }

  const finding = z.object({ id: z.string(), impact: z.string().nullish(), nodes: z.array(z.unknown()) });

  test.for(
    ['weekly', 'improve', 'the email of weekly', 'the email of improve'].flatMap((name) =>
      (['light', 'dark'] as const).map((scheme) => [name, scheme] as const),
    ),
  )('%s, %s: axe finds nothing serious', async ([name, scheme]) => {
    const page = await open(name, 820, scheme);
    // The page's content security policy blocks other scripts, so axe is injected by the browser.
    await page.evaluate(axe.source);
    const found = z
      .array(finding)
      .parse(await page.evaluate('axe.run().then(({ violations }) => violations)'));
    expect(found.filter(({ impact }) => impact === 'serious' || impact === 'critical')).toEqual([]);
  });

  test('clicking a table header sorts the table numerically', async () => {
    const page = await open('weekly', 1280);
    const table = page.locator('table.ranking');
    const numbers = (): Promise<number[]> =>
      page.evaluate<number[]>(
        `[...document.querySelectorAll('table.ranking > tbody > tr')].map((row) => Number(row.cells[2].dataset.value))`,
      );
    const head = table.getByRole('columnheader').nth(2);
    await head.getByRole('button').press('Enter');
    const down = await numbers();
    expect(down.length).toBeGreaterThan(10);
    expect(down).toEqual([...down].sort((one, two) => two - one));
    expect(await head.getAttribute('aria-sort')).toBe('descending');
    await head.getByRole('button').click();
    expect(await numbers()).toEqual(down.toReversed());
  });

  test('the table has the top fifty of either audience, and shows ten of them in any order until asked', async () => {
    const page = await open('weekly', 1280);
    const rows = page.locator('table.ranking > tbody > tr:visible');
    expect(await rows.count()).toBe(10);
    const views = (selector: string) =>
      page.evaluate<number[]>(
        `[...document.querySelectorAll('table.ranking > tbody > tr')].filter((row) => ${selector}).map((row) => Number(row.cells[2].dataset.value))`,
      );
    const all = await views('true');
    expect(all.toSorted((one, two) => two - one).slice(0, 50)).toEqual(topByAi);
    await page.locator('table.ranking').getByRole('button', { name: 'AI' }).click();
    expect(await views('row.offsetHeight > 0')).toEqual(topByAi.slice(0, 10));
    await page.getByRole('checkbox').check();
    expect(await rows.count()).toBe(all.length);
  });

  test.each([390, 1280])('at %i px the headers of the ranking align with their numbers', async (width) => {
    const page = await open('weekly', width);
    const ends = (row: string): Promise<number[]> =>
      page.evaluate<number[]>(
        `[...document.querySelectorAll('table.ranking ${row} .measure > :not(.bar):not(:empty)')].filter((span) => span.offsetWidth > 0).map((span) => Math.round(span.getBoundingClientRect().${width < 680 ? 'left' : 'right'}))`,
      );
    const heads = await ends('thead tr');
    const numbers = await ends('tbody tr:first-child');
    expect(heads.length).toBeGreaterThan(1);
    for (const head of heads) expect(numbers).toContain(head);
  });

  test.each([390, 1280])('at %i px the chart shows values of the day under the pointer', async (width) => {
    const page = await open('weekly', width);
    const plot = await page.locator('svg:visible .plot').first().boundingBox();
    if (plot === null) throw new Error('the picture has no plot');
    const last = plot.x + plot.width * (1 - 0.5 / 91);
    await page.mouse.move(last, plot.y + plot.height / 2);
    const values = page.locator('.chart').getByRole('status');
    expect(await values.textContent()).toMatch(/^Sun, Nov 15, 2026\nHuman [\d,]+\nAI [\d,]+$/);
    const rule = await page.locator('.cursor').boundingBox();
    expect(Math.abs((rule?.x ?? 0) - last)).toBeLessThan(2);
    // The same with the keyboard.
    await page.mouse.move(0, 0);
    expect(await page.locator('.cursor').isVisible()).toBe(false);
    await page.locator('figure.chart').focus();
    for (const key of ['End', 'ArrowLeft']) await page.keyboard.press(key);
    expect(await values.textContent()).toMatch(/^Sat, Nov 14, 2026\n/);
    expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
  });

  test.each([390, 600])('emails fit into %i px, even with hostile paths and large numbers', async (width) => {
    for (const name of ['the email of weekly', 'the email of improve']) {
      const page = await open(name, width);
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
    }
  });

  test('the weekly report prints on at most three pages, with long paths in every section', async () => {
    const page = await open('weekly', 1280);
    const pdf = (
      await page.pdf({ format: 'A4', margin: { top: '12mm', bottom: '12mm', left: '12mm', right: '12mm' } })
    ).toString('latin1');
    expect(pdf.match(/\/Type\s*\/Page\b/g)?.length).toBeLessThanOrEqual(3);
  });
});
