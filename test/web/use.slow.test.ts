import axe from 'axe-core';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { launchChromium, newPage, skipWithoutChromium } from '../chromium.js';
import { serveSandbox } from '../commands/workspace.js';
import { inHistory, valuesOf } from '../open-history.js';
import { NOW, storedSite, changeSite, serveSite, type Site, WEB_KEY } from './site.js';

const PEAK = '2026-10-14';

let site: Site;
let directory: string;
let sandbox: Awaited<ReturnType<typeof serveSandbox>>;

beforeAll(async () => {
  sandbox = await serveSandbox({ projectId: 'prj_1', apiKey: WEB_KEY, now: () => NOW });
  directory = await storedSite(sandbox.baseUrl);
  // One night, a page that is otherwise seldom read has a peak; another one is in the sitemap, but was never read.
  await changeSite(
    directory,
    `UPDATE page_views SET human = 9000 WHERE day = '${PEAK}' AND path = '/changelog'`,
    `UPDATE days SET human = human + 9000, total = total + 9000 WHERE day = '${PEAK}'`,
  );
  const entries = 'quickstart changelog guides/webhooks sdks/typescript concepts/projects unread'
    .split(' ')
    .map((path) => `<url><loc>https://docs.example.com/${path}</loc></url>`);
  await writeFile(
    join(directory, 'sitemap.xml'),
    `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${entries.join('')}</urlset>`,
  );
  const settings = join(directory, 'readership.yaml');
  const changed = (await readFile(settings, 'utf8'))
    .replace('improve: {', 'improve: { sitemap: sitemap.xml,')
    .replace('Acme Docs', 'Acme Docs by a name that takes several lines on a small screen');
  await writeFile(settings, changed);
  site = await serveSite(directory);
});

describe.skipIf(skipWithoutChromium)('the web app in use (skipped where no Chromium is installed)', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());

  const open = async (width: number, colorScheme: 'light' | 'dark'): Promise<Page> => {
    const page = await newPage(browser, width, colorScheme);
    // Less than the limit of a test, so that a failure names what was waited for.
    page.setDefaultTimeout(100_000);
    page.on('pageerror', ({ message }) => site.errors.push(message));
    page.on('console', (message) => message.type() === 'error' && site.errors.push(message.text()));
    await page.goto(site.address);
    return page;
  };
  const findings = z.array(z.object({ id: z.string(), nodes: z.array(z.object({ html: z.string() })) }));

  it.each([
    { width: 1280, scheme: 'light' as const },
    { width: 390, scheme: 'dark' as const },
  ])(
    'at $width pixels, $scheme, axe finds nothing on any page, and none is wider than the screen',
    async ({ width, scheme }) => {
      const page = await open(width, scheme);
      for (const path of [
        '/',
        '/pages',
        '/section?section=/guides',
        `/?from=${PEAK}&to=${PEAK}`,
        '/page?path=/quickstart',
        `/page?path=${encodeURIComponent('/with spaces and "quotes" & <b>tags</b>')}`,
        '/pages?readers=ai&sort=ai',
        '/agents',
        '/reports',
        '/health',
      ]) {
        await page.goto(site.origin + path);
        await page.evaluate(axe.source);
        const found = findings.parse(
          await page.evaluate(
            `axe.run({ rules: { 'target-size': { enabled: true } } }).then(({ violations }) => violations)`,
          ),
        );
        expect({ path, found: found.map(({ id, nodes }) => [id, nodes[0]?.html]) }).toEqual({
          path,
          found: [],
        });
        expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBe(width);
      }
      // Each month begins above a week of the calendar.
      const offsets = await page.evaluate(
        `[...document.querySelectorAll('.calendar text')].map((month) => Math.min(...[...document.querySelectorAll('.calendar rect')].map((day) => Math.abs(day.getBoundingClientRect().left - month.getBoundingClientRect().left))))`,
      );
      expect(Math.max(...z.array(z.number()).min(5).parse(offsets))).toBeLessThan(2);
      await page.setViewportSize({ width: 700, height: 900 });
      await page.goto(site.origin);
      await page.getByText('Custom range').click();
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(700);
      expect(site.errors).toEqual([]);
    },
  );

  it('a page is found, read and approved by keyboard, and gets one job', async () => {
    const page = await open(1280, 'light');
    await page.getByRole('link', { name: 'Pages', exact: true }).press('Enter');
    await page.getByLabel('Search').fill('quickst');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: '/quickstart' }).press('Enter');
    await page.getByRole('link', { name: '26 weeks' }).press('Enter');
    expect(new URL(page.url()).search).toBe('?path=%2Fquickstart&range=26w');
    await page.getByRole('group', { name: /per week/ }).focus();
    await page.keyboard.press('End');
    expect(await page.locator('.cursor [role="status"]').first().textContent()).toMatch(
      /Mon, Nov 9 – Sun, Nov 15, 2026\nHuman [\d,]+, [\d,]+ to [\d,]+ expected/,
    );
    await page.getByRole('link', { name: 'Agents', exact: true }).press('Enter');
    await page.getByRole('button', { name: 'Approve /quickstart' }).press('Enter');
    await page.getByText(/job \d+ is approved: it is being sent/).waitFor();
    const card = page.locator('li', { hasText: '/quickstart' });
    await card.getByText(/job \d+, active, \w{3} \d+, \d{4}/).waitFor();
    expect(sandbox.inspect().jobs).toHaveLength(1);
    expect(site.errors).toEqual([]);
  });

  it('ten everyday questions are answered within three clicks of the link in the weekly email', async () => {
    const page = await open(1280, 'light');
    let clicks = 0;
    const from = async (question: string, answer: () => Promise<void>) => {
      await page.goto(`${site.origin}/reports/prj_1/weekly-2026-W46.html`);
      clicks = 0;
      await answer();
      expect({ question, clicks }).toEqual({ question, clicks: Math.min(clicks, 3) });
    };
    const click = async (what: Locator) => {
      clicks += 1;
      await what.click();
    };
    const choose = async (name: string, option: string) => {
      clicks += 1;
      await page.locator(`select[name=${name}]`).selectOption(option);
      await page.waitForURL(new RegExp(`[?&]${name}=${option}(&|$)`));
    };
    const link = (name: string | RegExp) => page.getByRole('link', { name, exact: true }).first();
    const firstRow = () => page.locator('.ranking tbody tr').first().innerText();
    const chart = page.locator('figure.chart').first();
    /** Where a day is in the chart. */
    const pointOf = async (day: string) => {
      const points = z
        .array(z.object({ first: z.string(), last: z.string() }))
        .parse(JSON.parse((await chart.getAttribute('data-points')) ?? ''));
      const box = await chart.locator('svg:visible .plot').boundingBox();
      if (box === null) throw new Error('the chart is not shown');
      const at = points.findIndex(({ first, last }) => first <= day && day <= last);
      return { x: box.x + ((at + 0.5) / points.length) * box.width, y: box.y + 60 };
    };
    const mostBy = async (column: string) => {
      const sql = `SELECT path FROM changes('2026-11-09', '2026-11-15') WHERE human + ai > 0 ORDER BY ${column} LIMIT 1`;
      const file = join(directory, 'data/history.duckdb');
      return inHistory(file, async (history) => (await valuesOf(history, sql))[0]);
    };

    await from('total and change', async () => {
      expect(await page.locator('main, body').first().innerText()).toMatch(
        /[\d,]+ human views \([+−]?\d+%\) and [\d,]+ AI views \([+−]?\d+%\)/,
      );
    });
    await from('gained most', async () => {
      await click(link('Pages'));
      await click(link('change'));
      expect(await firstRow()).toContain(await mostBy('human_before - human'));
    });
    await from('lost most', async () => {
      await click(link('Pages'));
      await click(link('change'));
      await click(link(/change/));
      expect(await firstRow()).toContain(await mostBy('human - human_before'));
    });
    await from('a section over time', async () => {
      await click(link('Pages'));
      await click(link('Sections'));
      await click(link('/guides'));
      await page.getByRole('heading', { name: '/guides' }).waitFor();
      expect(await chart.locator('svg:visible path.line[stroke="var(--human)"]').count()).toBe(1);
    });
    await from('what AI reads most', async () => {
      await click(link('Pages'));
      await click(link('AI'));
      expect(await firstRow()).toContain(await mostBy('-ai'));
    });
    await from('what AI reads, and people rarely do', async () => {
      await click(link('Pages'));
      await click(link('Read by AI, rarely by people'));
      expect(await firstRow()).toContain(await mostBy('if(ai >= 10 * human, -ai, 0)'));
    });
    await from('new pages', async () => {
      await click(link('Pages'));
      await choose('only', 'new');
      expect(await firstRow()).toMatch(/new/);
    });
    await from('the cause of a peak', async () => {
      await click(link('Overview'));
      clicks += 1;
      const { x, y } = await pointOf(PEAK);
      await page.mouse.click(x, y);
      await page.getByRole('heading', { name: 'Oct 14, 2026' }).waitFor();
      expect(await page.locator('.events li').first().innerText()).toMatch(
        /Human[^]*\/changelog[^]*\+[\d,]+, (?:9\d|100)% of the rise: 9,000 views/,
      );
    });
    // And back; then with the keyboard, and by dragging over several days.
    await link('Back to the selected range').click();
    await page.getByRole('heading', { name: 'Nov 9 – 15, 2026' }).waitFor();
    await chart.focus();
    for (const key of ['End', 'ArrowLeft', 'Shift+ArrowLeft', 'Enter']) await page.keyboard.press(key);
    await page.getByRole('heading', { name: 'Nov 13 – 14, 2026' }).waitFor();
    await page.goBack();
    const [one, other] = [await pointOf('2026-10-20'), await pointOf('2026-10-05')];
    await page.mouse.move(one.x, one.y);
    await page.mouse.down();
    await page.mouse.move(other.x, other.y, { steps: 3 });
    await page.mouse.up();
    await page.getByRole('heading', { name: 'Oct 5 – 20, 2026' }).waitFor();
    await link('Back to the selected range').click();
    await page.getByRole('heading', { name: 'Nov 9 – 15, 2026' }).waitFor();

    await from('is the data complete and fresh', async () => {
      await click(link('Health'));
      expect(await page.locator('.detail').innerText()).toMatch(/Written .*Nov 15, 2026/s);
    });
    await from('pages that nobody reads', async () => {
      await click(link('Pages'));
      await choose('only', 'unread');
      expect(await firstRow()).toMatch(/^\/unread/);
    });
    expect(site.errors).toEqual([]);
  });
});
