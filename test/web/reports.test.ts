import { createHash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { callCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { askAt, changeSite, NOW, serveSite, type Site, storedSite } from './site.js';

let directory: string;
let site: Site;

beforeAll(async () => {
  directory = await storedSite();
  site = await serveSite(directory);
});

const ask = (path: string) => askAt(site, path);

it('a site without an address has its pages, and no links to them', async () => {
  const file = join(directory, 'readership.yaml');
  const settings = await readFile(file, 'utf8');
  await writeFile(file, settings.replace(', siteUrl: https://docs.example.com', ''));
  const bare = await serveSite(directory);
  expect(await bare.page('/page?path=/quickstart')).not.toContain('Open it on the site');
  await writeFile(file, settings);
});

it('a rendered report is shown with links to the previous and next ones, and runs only its own script', async () => {
  const folder = join(directory, 'data/reports/prj_1');
  await mkdir(folder, { recursive: true });
  const page = (week: string) =>
    `<!doctype html><title>Week ${week}</title><body><p>${week}</p><script>own()</script>\n</body>`;
  for (const week of ['44', '45', '46'])
    await writeFile(join(folder, `improve-2026-W${week}.html`), page(week));
  await writeFile(join(folder, 'yearly-2026-W46.html'), page('46'));
  await writeFile(join(folder, 'secret.html'), 'not a report');
  expect((await ask('/reports')).text).toContain('href="/reports/prj_1/improve-2026-W46.html"');
  const { status, headers, text } = await ask('/reports/prj_1/improve-2026-W45.html');
  expect(status).toBe(200);
  expect(text).toMatch(
    /<body>\n<nav[^]+improve-2026-W44\.html" rel="prev"[^]+improve-2026-W46\.html" rel="next"/,
  );
  const hash = createHash('sha256').update('own()').digest('base64');
  expect(headers['content-security-policy']).toContain(
    `script-src 'sha256-${hash}'; img-src data:; form-action 'none'`,
  );
  for (const path of ['prj_1/secret.html', 'prj_1/..%2f..%2fhistory.duckdb', '%2e%2e/history-2026-W45.html'])
    expect((await ask(`/reports/${path}`)).status).toBe(404);
});

it('a report in the app leads to its pages, and lists those up next as the page about agents and the command line do', async () => {
  const weekly = (await ask('/reports/prj_1/weekly-2026-W46.html')).text;
  expect(weekly).toContain('href="/page?project=prj_1&amp;path=%2F');
  expect(weekly).not.toContain('href="https://docs.example.com/');
  const { text: agents } = await ask('/agents');
  const [, list = ''] = agents.split('Up next');
  const next = [...list.matchAll(/<h3 class="path"><a href="[^"]*path=([^"&]+)"/g)].map(([, path]) => path);
  const rows = (await ask('/reports/prj_1/improve-2026-W46.html')).text.split('<tr>');
  const shown = rows.filter((row) => row.includes('Up next')).map((row) => /path=([^"&]+)"/.exec(row)?.[1]);
  expect(shown.length).toBe(5);
  expect(shown).toEqual(next.slice(0, 5));
  const { stdout } = await callCli(['report', 'improve', '--format', 'text'], {
    cwd: directory,
    now: () => NOW,
  });
  expect(stdout.match(/^\S+(?=\n {2}Up next\n)/gm)?.map(encodeURIComponent)).toEqual(shown);
});

it('the weekly report of any week is rendered when it is asked for, and not kept', async () => {
  const folder = join(directory, 'data/reports/prj_1');
  const kept = () => readdirSync(folder, { withFileTypes: true }).map(({ name }) => name);
  await mkdir(folder, { recursive: true });
  const before = kept();
  const list = (await ask('/reports')).text;
  for (const week of ['W21', 'W36']) {
    expect(list).toContain(`href="/reports/prj_1/weekly-2026-${week}.html"`);
    const { status, headers, text } = await ask(`/reports/prj_1/weekly-2026-${week}.html`);
    expect(status).toBe(200);
    expect(text).toMatch(new RegExp(`<title>[^<]*Acme Docs[^<]*</title>`));
    expect(text).toContain(`Week ${week.slice(1)}`);
    expect(headers['content-security-policy']).toMatch(/script-src 'sha256-/);
    expect(text.includes('rel="prev"')).toBe(week === 'W36');
    expect(text).toContain('rel="next"');
  }
  expect((await ask('/reports/prj_1/weekly-2026-W46.html')).text).not.toContain('rel="next"');
  for (const [path, words] of [
    ['prj_1/weekly-2030-W01.html', 'Nothing is loaded for 2030-W01'],
    ['prj_1/weekly-2020-W01.html', 'Nothing is loaded for 2020-W01'],
    ['prj_1/weekly-2026-W54.html', 'There is no such report'],
    ['prj_1/weekly-2026-11.html', 'There is no such report'],
    ['prj_1/monthly-2026-W36.html', 'There is no such report'],
    ['prj_2/weekly-2026-W36.html', 'There is no such report'],
    ['prj%255f1/weekly-2026-W36.html', 'There is no such report'],
  ])
    expect(await ask(`/reports/${path}`), path).toMatchObject({
      status: 404,
      text: expect.stringContaining(words ?? '') as unknown,
    });
  expect(kept()).toEqual(before);
  expect(site.errors).toEqual([]);
});

describe('the history', () => {
  it('is followed when it is replaced, while pages are being read', async () => {
    const reading = Promise.all(
      Array.from({ length: 20 }, (_, index) => ask(`/pages?page=1&search=p${index}`)),
    );
    await changeSite(
      directory,
      `UPDATE page_views SET path = '/renamed', page = '/renamed' WHERE path = '/quickstart'`,
    );
    expect((await reading).map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect((await ask('/pages')).text).toContain('/renamed');
  });

  it.skipIf(process.platform !== 'linux')('is prepared within a minute, before anyone asks', async () => {
    const other = await tempDir();
    await cp(directory, other, { recursive: true });
    const isOpen = () =>
      readdirSync('/proc/self/fd').some((fd) => {
        const file = statSync(`/proc/self/fd/${fd}`, { throwIfNoEntry: false });
        return file?.ino === statSync(join(other, 'data/history.duckdb')).ino;
      });
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      // As in all these tests, there is no history yet when it starts.
      const idle = await serveSite(other);
      expect(isOpen()).toBe(false);
      await vi.advanceTimersByTimeAsync(60_000);
      await vi.waitFor(() => expect(isOpen()).toBe(true), 30_000);
      await idle.stop();
    } finally {
      vi.useRealTimers();
    }
  });
});
