import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { request } from 'undici';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { signedPercent, thousands } from '../../src/format/numbers.js';
import { inHistory, rowsOf, valuesOf } from '../open-history.js';
import { tempDir } from '../temp-dir.js';
import { openFrame } from '../../src/web/frame.js';
import { PAGES, changeSite, storedSite, serveSite, type Site } from './site.js';

/** Its first project, the default, has no data; the other two have the same pages, read differently. */
let site: Site;
let directory: string;
const historyFile = () => join(directory, 'data/history.duckdb');
/** The history while prj_1 was the only project. */
let alone: string;

beforeAll(async () => {
  directory = await storedSite();
  alone = join(directory, 'alone.duckdb');
  await cp(historyFile(), alone);
  const second = (table: string, changes = '') =>
    changeSite(
      directory,
      `INSERT INTO ${table} SELECT * REPLACE ('prj_2' AS project${changes}) FROM ${table}`,
    );
  const state = `if(day >= '2026-11-14', 'provisional', state) AS state`;
  await second('days', `, ${state}, 3 * human AS human, 3 * total - 2 * ai AS total`);
  await second('page_views', ', 3 * human AS human, 3 * human + ai AS total');
  await changeSite(
    directory,
    `INSERT INTO page_views
      FROM (VALUES
        ('prj_1', DATE '2026-11-10', '/fresh/page/', '/fresh/page', 900, 100, 1000),
        ('prj_1', DATE '2026-06-10', '/old/page', '/old/page', 90, 10, 100)
      )`,
    `INSERT INTO notes FROM (VALUES
        ('prj_1', DATE '2026-10-05', 'Version 3', '*', false), ('prj_1', DATE '2026-10-06', 'New guides', '/guides/*', false),
        ('prj_1', DATE '2026-10-07', 'New G pages', '/g*', false), ('prj_1', DATE '2026-10-07', 'Older guides', '/guides-old/*', false), ('prj_2', DATE '2026-10-07', 'Elsewhere', '*', false))`,
    "INSERT INTO restatements VALUES ('prj_2', DATE '2026-10-08', TIMESTAMP '2026-10-12', TIMESTAMP '2026-10-11', 1, 2, 1, 1, 2, 3, 1)",
  );
  const file = join(directory, 'readership.yaml');
  const settings = await readFile(file, 'utf8');
  const others = '{ id: prj_new, name: New Docs }, { id: prj_1,';
  const named = settings.replace('{ id: prj_1,', others).replace('}]', '}, { id: prj_2, name: Other Docs }]');
  await writeFile(file, named);
  site = await serveSite(directory);
});

/** The same site, with some changes. */
async function serveCopy(...changes: readonly string[]) {
  const copy = await tempDir();
  await cp(directory, copy, { recursive: true });
  await changeSite(copy, ...changes);
  return serveSite(copy);
}

/** A page, and how many bytes of it were sent. */
async function ask(path: string, own: Record<string, string> = {}, body?: string) {
  const answer = await request(site.origin + path, {
    headers: { authorization: `Bearer ${site.token}`, ...own },
    ...(body !== undefined && { method: 'POST', body }),
  });
  const sent = Buffer.from(await answer.body.arrayBuffer());
  const { headers, statusCode: status } = answer;
  const encoding = headers['content-encoding'];
  const plain =
    encoding === 'gzip' ? gunzipSync(sent) : encoding === 'br' ? brotliDecompressSync(sent) : sent;
  return { status, headers, text: plain.toString().replaceAll('&#x3D;', '='), bytes: sent.length };
}

describe('a project without data', () => {
  it.each(PAGES)('has the page %s, as the default project too, which says what to do', async (path) => {
    const named = `${path}${path.includes('?') ? '&' : '?'}project=prj_new`;
    for (const address of [path, named]) {
      const { status, text } = await ask(address);
      expect(status, address).toBe(200);
      expect(text).toContain('Nothing is loaded for New Docs yet');
      expect(text).toContain('<code>readership export --project prj_new</code>');
      expect(text).toContain('<option value="prj_new" selected>');
    }
    const other = await ask(named.replace('prj_new', 'prj_1'));
    expect([other.status, other.text]).toEqual([200, expect.not.stringContaining('Nothing is loaded')]);
    expect(site.errors).toEqual([]);
  });

  it('has no list to download, and does not keep others from theirs', async () => {
    expect(await ask('/pages.csv')).toMatchObject({
      status: 404,
      text: expect.stringContaining('Nothing is loaded for New Docs yet') as unknown,
    });
    expect((await ask('/pages?project=prj_1&project=prj_2')).text).toContain(
      '<title>Pages · Other Docs</title>',
    );
    expect((await ask('/pages.csv?project=prj_2')).text).toMatch(/^\uFEFFpath,human,ai,[^]+\n\/quickstart,/);
    expect((await ask('/pages?project=prj_3')).status).toBe(404);
  });
});

it('nothing is compared across a day on which counting changed, and pages say so', async () => {
  const broken = await storedSite();
  const text =
    "INSERT INTO notes BY NAME SELECT 'prj_1' AS project, '2026-08-20'::DATE AS day, 'x' AS text, '*' AS path, true AS is_break";
  const { page } = await serveSite(broken);
  const look = (path: string, range = '13w') =>
    page(`${path}${path.includes('?') ? '&' : '?'}range=${range}`);
  const words = 'Counting changed on Aug 20, 2026, so nothing is compared across that day';
  const compared = /class="change[^"]*"[^>]*>[+−]|[+−]\d[\d.]* pts/;
  const pages = ['/', '/pages', '/page?path=/quickstart'];
  for (const path of pages) {
    const html = await look(path);
    expect(html, path).not.toContain('Counting changed on');
    expect(html, path).toMatch(compared);
  }
  // A break of some pages concerns neither other pages nor other sections.
  await changeSite(broken, text.replace("'*'", "'/guides/*'"));
  for (const path of ['/page?path=/quickstart', '/section?section=/sdks'])
    expect(await look(path), path).not.toContain('Counting changed on');
  await changeSite(broken, text);
  for (const path of pages) {
    const html = await look(path);
    expect(html, path).toContain(words);
    expect(compared.exec(html)?.[0], path).toBeUndefined();
    expect(await look(path, '4w'), path).not.toContain(words);
  }
});

describe('the list of pages', () => {
  const row = z.object({ path: z.string(), human: z.int(), ai: z.int() });
  const days = "DATE '2026-08-17', DATE '2026-11-15'";
  /** The rows of a list, in its CSV. */
  async function inCsv(query: string) {
    const csv = await ask(`/pages.csv?project=prj_1&range=13w&${query}`);
    expect([csv.status, csv.headers['content-type']]).toEqual([200, expect.stringContaining('text/csv')]);
    const lines = csv.text
      .slice(csv.text.indexOf('\n') + 1)
      .matchAll(/("(?:[^"]|"")*"|[^,\n]*),(\d+),(\d+),.*\n/g);
    return [...lines].map(([, path = '', human, ai]) => ({
      path: path.replace(/^'/, ''),
      human: Number(human),
      ai: Number(ai),
    }));
  }

  /** The same on the screen. */
  async function listed(query: string) {
    const rows = await inCsv(query);
    const { status, text } = await ask(`/pages?project=prj_1&range=13w&${query}`);
    expect(status).toBe(200);
    const titles = [...text.matchAll(/<th scope="row" class="path"><a [^>]*title=/g)];
    expect(titles).toHaveLength(Math.min(50, rows.length));
    const said = /<p class="count"><span>([^]*?)<\/span>/.exec(text)?.[1]?.replaceAll(/<[^>]*>/g, '') ?? '';
    const sum = (audience: 'human' | 'ai') => rows.reduce((total, one) => total + one[audience], 0);
    const numbers = [sum('human'), sum('ai')].map((number) => number.toLocaleString('en-US'));
    if (rows.length > 0) expect(said).toMatch(new RegExp(`: ${numbers[0]} human.*, ${numbers[1]} AI views`));
    else expect(said).toContain('match');
    return { rows, said, text, paths: rows.map(({ path }) => path) };
  }
  const expected = async (where: string, per: string) => {
    const sql = `SELECT path, human, ai FROM changes(${days}, per := '${per}') WHERE project = 'prj_1' AND ${where} ORDER BY human + ai DESC, total_before DESC, path`;
    return inHistory(historyFile(), (history) => history.query(sql, row));
  };
  const plain = ({ path }: { path: string }) => /^[\w/-]+$/.test(path);

  it.each([
    ['', 'is_page AND human + ai > 0', 'page'],
    ['only=files', 'NOT is_page AND human + ai > 0', 'page'],
    ['only=new', 'human + ai > 0 AND is_new', 'page'],
    ['only=gone', 'human + ai = 0', 'page'],
    ['minShare=30&maxShare=40.5', 'ai_share BETWEEN 0.3 AND 0.405', 'page'],
    [
      'maxShare=20&minShare=&readers=human',
      `ai_share <= 0.2 AND path IN (SELECT path FROM one_sided(${days}) WHERE audience = 'human')`,
      'page',
    ],
    ['section=/guides&search=ook', "path = '/guides/webhooks'", 'page'],
    ['per=section', 'is_page AND human + ai > 0', 'section'],
  ])('with %s is those of the macro changes where %s', async (query, where, per) => {
    const { rows } = await listed(query);
    const wanted = await expected(where, per);
    expect(wanted.length).toBeGreaterThan(0);
    expect(rows).toHaveLength(wanted.length);
    expect(rows.filter(plain)).toEqual(wanted.filter(plain));
  });

  it('lists as what moved in a month what moved in one of its whole weeks, with that week', async () => {
    const own = await serveCopy(
      "UPDATE page_views SET human = 6 * human, total = 6 * human + ai WHERE project = 'prj_1' AND page = '/quickstart' AND day BETWEEN DATE '2026-10-26' AND DATE '2026-11-01'",
    );
    const text = await own.page('/?project=prj_1&from=2026-10-19&to=2026-11-15');
    expect(text).toContain('in one of the 4 weeks from Oct 19 – Nov 15, 2026');
    const items = text.split('<li>').filter((item) => item.includes('class="by"'));
    expect(items.some((item) => /\/quickstart.+ views from Oct 26 – Nov 1, about/s.test(item))).toBe(true);
    expect(items.some((item) => item.includes('views from Nov 9 – 15, about'))).toBe(true);
  });

  it('marks in bold, and lists as what moved, the pages that the report of the week lists so', async () => {
    const week = 'project=prj_1&from=2026-11-09&to=2026-11-15';
    const moved = z.object({ path: z.string() });
    const sql = `SELECT path FROM movers('2026-11-09', project_id := 'prj_1') ORDER BY path`;
    const movers = await inHistory(historyFile(), (history) => history.query(sql, moved));
    const paths = movers.map(({ path }) => path);
    expect(paths.length).toBeGreaterThan(2);
    const asked = ['/?', '/pages?', '/pages?only=moved&', '/pages.csv?only=moved&'].map((path) =>
      ask(path + week),
    );
    const [overview = '', all = '', listed = '', csv = ''] = (await Promise.all(asked)).map(
      ({ text }) => text,
    );
    const bold = (text: string) =>
      [...text.matchAll(/<tr><th scope="row" class="path"><a [^>]*title="([^"]*)"(.*?)<\/tr>/gs)].flatMap(
        ([, path = '', cells = '']) => (cells.includes('change has-moved') ? [path] : []),
      );
    for (const text of [overview, all]) for (const path of bold(text)) expect(paths).toContain(path);
    expect(bold(all).length).toBeGreaterThan(0);
    expect(bold(listed).toSorted()).toEqual(paths);
    expect(csv.trim().split('\n')).toHaveLength(1 + paths.length);
    for (const path of paths) {
      const page = await ask(`/page?${week}&path=${encodeURIComponent(path)}`);
      expect(page.text, path).toContain('class="change has-moved"');
    }
    // Nothing else is judged, so nothing is marked.
    const longer = await ask('/pages?project=prj_1&range=13w');
    expect(bold(longer.text)).toEqual([]);
    expect(longer.text).not.toContain('In bold');
    const refused = await ask('/pages?project=prj_1&range=13w&only=moved');
    expect(refused.text).toContain(
      'What moved is known only for seven days: choose Nov 9 – 15, 2026, for example.',
    );
  });

  it.each(['total', 'human', 'ai', 'human_change', 'ai_change', 'share', 'path'])(
    'sorts by %s both ways',
    async (sort) => {
      const [down = [], up = []] = await Promise.all(
        ['desc', 'asc'].map((order) => inCsv(`sort=${sort}&order=${order}`)),
      );
      const paths = (rows: typeof up) => rows.map(({ path }) => path);
      expect(paths(down)).not.toEqual(paths(up));
      expect(paths(down).toSorted()).toEqual(paths(up).toSorted());
      if (sort.endsWith('_change')) {
        // The list is in the order of what it shows.
        const { text } = await ask(`/pages?project=prj_1&range=13w&sort=${sort}`);
        const cells = text.matchAll(/<td class="(human|ai)">.*?<span class="change[^>]*>([^<]*)</g);
        const shown = [...cells]
          .filter(([, audience]) => sort.startsWith(audience ?? ''))
          .map(([, , gained = '']) => Number(gained.replace('−', '-').replaceAll(',', '')));
        expect(shown.length).toBeGreaterThan(40);
        expect(shown).toEqual(shown.toSorted((one, other) => other - one));
        return;
      }
      const keys = (rows: typeof up) =>
        rows.filter(plain).map(({ path, human, ai }) => {
          if (sort === 'path') return path;
          if (sort === 'share') return ai / (human + ai);
          return { human, ai }[sort] ?? human + ai;
        });
      const ordered = keys(up).toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
      expect(keys(up)).toEqual(ordered);
      expect(keys(down)).toEqual(ordered.toReversed());
    },
  );

  it('shows the sum of a section as the section does, and as its own page does', async () => {
    const sums = [];
    for (const path of ['/pages?section=/guides', '/pages?per=section&search=/guides'])
      sums.push((await listed(path.replace(/.*\?/, ''))).said.replace(/^[^:]*/, ''));
    expect(sums[0]).toMatch(/^: [\d,]+ human \([+−]?\d+%\), [\d,]+ AI views \([+−]?\d+%\), AI share \d/);
    expect(sums[1]).toBe(sums[0]);
    const text = (await ask('/section?section=/guides&project=prj_1&range=13w')).text;
    const figures = [
      ...text.matchAll(/<dd class="value (?:human|ai)">([\d,]+)<\/dd><dd class="beside"><span[^>]*>([^<]+)/g),
    ];
    expect(figures).toHaveLength(2);
    for (const [, views, change] of figures)
      expect(sums[0]).toMatch(new RegExp(`${views}[^(]*\\(\\${change}`));
    expect(text).toMatch(/href="\/pages\?project=prj_1&amp;range=13w&amp;section=%2Fguides"/);
    const page = await ask('/page?path=/guides/webhooks&project=prj_1');
    expect(page.text).toContain('href="/section?project=prj_1&amp;section=%2Fguides"');
  });

  it('has fifty pages on a screen, and leads to the next as long as there are more', async () => {
    const { length } = await inCsv('');
    const last = Math.ceil(length / 50);
    expect(last).toBeGreaterThan(1);
    for (let screen = 1; screen <= last; screen++) {
      const { text } = await ask(`/pages?project=prj_1&range=13w&page=${screen}`);
      expect([text.includes('rel="prev"'), text.includes('rel="next"')]).toEqual([screen > 1, screen < last]);
    }
  });

  it('of a page lists the addresses that it was viewed at, and is found at any of them', async () => {
    const name = 'addresses';
    const moved = (path: string, where: string) =>
      `UPDATE page_views SET path = '${path}' WHERE path = '/quickstart' AND ${where}`;
    const before = await ask('/page?project=prj_1&range=13w&path=/quickstart');
    expect(before.text, name).not.toContain('Viewed as');
    await changeSite(
      directory,
      moved('/quickstart.md', "day > '2026-11-10'"),
      moved('/quickstart/', "day > '2026-11-01'"),
    );
    const { text } = await ask('/page?project=prj_1&range=13w&path=/quickstart');
    const said = text.replaceAll(/<wbr>|<\/?bdi>/g, '');
    expect(said).toMatch(
      /Viewed as \/quickstart [\d,]+ human, [\d,]+ AI · \/quickstart\/ [\d,]+ human, [\d,]+ AI · \/quickstart\.md [\d,]+ human, [\d,]+ AI\./,
    );
    for (const path of [
      '/quickstart.md',
      '/quickstart/',
      'https://docs.example.com/quickstart/index.html?a#b',
    ])
      expect((await ask(`/page?project=prj_1&path=${encodeURIComponent(path)}`)).text).toContain('Viewed as');
  });

  it('of a section that nobody read has no views, whatever its name', async () => {
    for (const section of ['/nothing', '<b>', "/'; DROP TABLE x", '/%00']) {
      const { status, text } = await ask(`/section?project=prj_1&section=${encodeURIComponent(section)}`);
      expect([status, /value human">([^<]*)</.exec(text)?.[1]]).toEqual([200, '0']);
    }
    expect(site.errors).toEqual([]);
  });

  it.each([
    ['pages?minShare=x', 'minShare: write a number from 0 to 100'],
    ['pages?maxShare=101', 'maxShare: write a number from 0 to 100'],
    ['page?project=prj_1&path=https://other.example.com/x', 'is not a page of https://docs.example.com'],
    ['pages?only=all', 'only: write moved or new or gone or unread'],
    ['pages?order=up', 'order: write asc or desc'],
    ['pages?per=site', 'per: write page or section'],
    ['pages?page=x', 'page: write a number'],
    ['pages?page=0', 'page: at least 1'],
    ['pages?page=1e99', 'page:'],
    ['pages?from=yesterday', 'from: not a day'],
    ['pages?range=forever', 'range:'],
    ['?project=prj_1&from=2026-11-10&to=2026-11-09', 'Choose days from 2026-05-18 to 2026-11-15'],
    ['pages?project=prj_1&from=2026-11-16', 'Choose days from 2026-05-18 to 2026-11-15'],
    ['pages.csv?project=prj_1&to=2026-05-17', 'Choose days from 2026-05-18 to 2026-11-15'],
    [`pages?search=${'x'.repeat(3000)}`, 'search: too long'],
  ])('refuses %s', async (address, words) => {
    const { status, text } = await ask(`/${address}`);
    expect([status, text]).toEqual([400, expect.stringContaining(words)]);
  });

  it('without a view is those of the sitemap, which it asks for', async () => {
    const missing = await ask('/pages?project=prj_1&only=unread');
    expect(missing.text).toContain('improve.sitemap in readership.yaml');
    expect((await ask('/pages.csv?project=prj_1&only=unread')).status).toBe(400);
    const file = join(directory, 'readership.yaml');
    const settings = await readFile(file, 'utf8');
    await writeFile(file, settings.replace('improve: {', 'improve: { sitemap: sitemap.xml,'));
    const locs = ['quickstart', 'fresh/page', 'old/page', 'never/read', 'never/again/', '']
      .map((path) => `<url><loc>https://docs.example.com/${path}</loc></url>`)
      .join('');
    const first = site;
    site = await serveSite(directory);
    const absent = await ask('/pages?project=prj_1&only=unread');
    expect(absent.status).toBe(200);
    expect(absent.text).toContain('sitemap.xml (improve.sitemap)');
    await writeFile(
      join(directory, 'sitemap.xml'),
      `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${locs}</urlset>`,
    );
    const { paths } = await listed('only=unread');
    expect(paths).toEqual(['/', '/never/again', '/never/read', '/old/page']);
    expect((await listed('only=unread&section=/never&sort=path&order=desc')).paths).toEqual([
      '/never/read',
      '/never/again',
    ]);
    // A page that was viewed before the range is no longer among them if the range has that view.
    expect((await listed('only=unread&range=all')).paths).not.toContain('/old/page');
    await writeFile(file, settings);
    site = first;
  });
});

describe('an outage', () => {
  it('is named where its days are shown, and no page is said to have moved by it', async () => {
    const ofDay = "WHERE project = 'prj_1' AND day = DATE '2026-11-11'";
    const blank = await serveCopy(
      `DELETE FROM page_views ${ofDay}`,
      `UPDATE days SET human = 0, ai = 0, total = 0, pages = 0 ${ofDay}`,
    );
    const [week = '', dayOf = ''] = await Promise.all(
      ['/?', '/?from=2026-11-11&to=2026-11-11&'].map((path) => blank.page(`${path}project=prj_1`)),
    );
    expect(week).toContain('All 7 days loaded.');
    expect(week).toContain('No views were counted on Nov 11.');
    expect(week).toContain('Which pages moved is not said, because of the days without any view.');
    expect(dayOf).toContain('No views were counted on Nov 11.');
    expect(dayOf).not.toContain('class="events');
  });
});

describe('a few days', () => {
  it('that are all there are have nothing to be compared with, and stand out from no others', async () => {
    const since = (table: string) => `DELETE FROM ${table} WHERE day < DATE '2026-11-13'`;
    const withoutAi = (table: string) => `UPDATE ${table} SET ai = 0, total = human WHERE project = 'prj_1'`;
    const tables = ['page_views', 'days'];
    const few = await serveCopy(...tables.flatMap((table) => [since(table), withoutAi(table)]));
    const [overview = '', pages, readByAi] = await Promise.all(
      ['/?', '/pages?', '/pages?readers=ai&'].map((path) => few.page(`${path}project=prj_1`)),
    );
    expect(overview).toContain('All 3 days loaded.');
    expect(overview).not.toContain('In bold');
    expect(overview).toContain('None, or fewer than three of these weeks are loaded.</p>');
    expect(pages).toContain('Nov 13 – 15, 2026.');
    expect(readByAi).toContain('No pages match');
    expect(readByAi).not.toContain('class="ranking');
  });

  it('are compared with the same weekdays a week earlier, and name the pages that differ most from what is usual', async () => {
    const { text } = await ask('/?project=prj_1&from=2026-11-10&to=2026-11-10');
    expect(text).toContain('Compared with Nov 3, 2026');
    const day = "DATE '2026-11-10'";
    const sql = `SELECT path, human FROM changes(${day}, ${day}, 7) WHERE project = 'prj_1' AND human_before = 0 ORDER BY human DESC LIMIT 1`;
    const found = await inHistory(historyFile(), (history) => rowsOf(history, sql));
    expect(found).toEqual([{ path: '/fresh/page', human: 900 }]);
    const events = /<ul class="events card">([^]*?)<\/ul>/.exec(text)?.[1] ?? '';
    expect(events).toMatch(
      /^\s*<li><span class="who human">[^]*?fresh[^]*?<b>\+900<\/b>[^<]*: 900 views, usually 0</,
    );
    // The days around them are shown, from each of which one can go on.
    expect(text).toMatch(/<rect x="[\d.]+" y="\d+" width="[\d.]+" height="\d+" fill="var\(--band\)"/);
    expect(text).toContain('<a href="/?project=prj_1&amp;from=2026-11-03&amp;to=2026-11-03">Nov 3, 2026</a>');
    expect(text).toMatch(/<a href="[^"]*from=2026-11-11&amp;to=2026-11-11" rel="next">/);
    expect((await ask('/?project=prj_1&from=2026-11-15&to=2026-11-15')).text).not.toContain('rel="next"');
    const pages = await ask('/pages?project=prj_1&from=2026-11-10&to=2026-11-10');
    expect(pages.text).toContain('changes are from Nov 3, 2026.');
  });

  it('of a whole month are compared with the whole month before, on the same weekdays in the chart', async () => {
    const { text } = await ask('/?project=prj_1&range=month');
    expect(text).toContain('<h1>October 2026</h1>');
    expect(text).toContain('All 31 days loaded. Compared with September 2026.');
    expect(text).toContain('Dashed: September 2026');
    expect(text).toMatch(/range=month" aria-current="true">October 2026<\/a>/);
    expect(text).toMatch(/range=quarter">Q4 2026 so far<\/a>/);
    expect(text).toMatch(/range=week">Nov 9 – 15<\/a>/);
    const sum = `SELECT sum(human)::INTEGER AS human FROM site_days WHERE project = 'prj_1' GROUP BY date_trunc('month', day) HAVING min(day) IN ('2026-09-01', '2026-10-01') ORDER BY min(day)`;
    const [september, october] = await inHistory(historyFile(), (history) => valuesOf(history, sum));
    const change = signedPercent(Number(october) / Number(september) - 1);
    const were = `from ${thousands(Number(september))} in 30 days`;
    expect(text).toContain(
      `${thousands(Number(october))}</dd><dd class="beside"><span class="change">${change}</span> ${were}`,
    );
    // Thursday, Oct 1, is drawn over Thursday, Sep 3.
    expect(text).toMatch(/Thu, Oct 1, 2026[^}]+Human [\d,]+ on Sep 3\b/);
    expect(text).toMatch(/in one of the 3 weeks from Oct 5 – 25, 2026/);
  });

  it('of a quarter under way are compared with as much of the quarter before', async () => {
    const { text } = await ask('/pages?project=prj_1&range=quarter');
    expect(text).toContain('Oct 1 – Nov 15, 2026; changes are from Jul 1 – Aug 15, 2026.');
    expect((await ask('/pages?project=prj_1&from=2026-10-01&to=2026-10-31&against=year')).text).toContain(
      'October 2026.',
    );
  });

  it('are compared with the same weekdays a year earlier, if that is asked for', async () => {
    const ofYearBefore = (table: string) =>
      `INSERT INTO ${table} SELECT * REPLACE (DATE '2025-11-11' AS day) FROM ${table} WHERE day = DATE '2026-11-10'`;
    const older = await serveCopy(ofYearBefore('days'), ofYearBefore('page_views'));
    const days = 'project=prj_1&from=2026-11-10&to=2026-11-10&against=year';
    expect(await older.page(`/?${days}`)).toContain('Compared with Nov 11, 2025');
    const pages = await older.page(`/pages?${days}`);
    expect(pages).toMatch(/changes are from Nov \d+, 2025\./);
    expect(pages).toMatch(/<span class="change[^>]*>0%</);
  });
});

it('every chart names jobs and notes, and says what they were', async () => {
  const marked = async (path: string) => {
    const { text } = await ask(`${path}${path.includes('?') ? '&' : '?'}project=prj_1`);
    const said = /data-points="([^"]*)"/.exec(text.slice(text.indexOf('id="views"')))?.[1] ?? '';
    return [...all, 'Older guides', 'Elsewhere'].filter((words) => said.includes(words));
  };
  const all = ['Version 3', 'New guides', 'New G pages'];
  expect(await marked('/')).toEqual([...all, 'Older guides']);
  expect(await marked('/section?section=/guides')).toEqual(all);
  expect(await marked('/page?path=/guides/webhooks')).toEqual(all);
  expect(await marked('/page?path=/quickstart')).toEqual(['Version 3']);
  const { text } = await ask('/?project=prj_1');
  expect(text).toMatch(/Job \d+ \w+: \//);
  expect((await ask('/?project=prj_2')).text).toContain('provisional">2 days may still change</span>');
});

it('health lists what is not as it should be, with the command, and opens the rest', async () => {
  // Last night's export is not hidden by the polls since then.
  const run = (step: string, outcome: string, turns: string) =>
    `INSERT INTO runs BY NAME SELECT uuid() AS run, '${step}' AS step, TIMESTAMP '2026-11-17' + to_minutes(5 * range) AS started_at, '${outcome}' AS outcome, '${step} summary' AS summary FROM range(${turns})`;
  await changeSite(directory, run('export', 'later', '1'), run('poll', 'done', '1, 40'));
  const gap = await ask('/health?project=prj_1');
  expect(gap.text).not.toContain('changed by');
  expect(gap.text).toMatch(/<details open><summary>Last runs[^]*export<[^]*not finished<[^]*export summary/);
  const [first = '', second = ''] =
    gap.text.split('<h2>Acme Docs</h2>').slice(-1)[0]?.split('<details>') ?? [];
  expect(first).not.toContain('Requests');
  expect(second).toContain('Requests');
  expect(first).toMatch(/Yesterday<\/th><td>not loaded yet: <code>readership export --project prj_1<\/code>/);
  const nothing = gap.text.split('<h2>New Docs</h2>')[1] ?? '';
  expect(nothing).toMatch(/nothing is loaded yet: <code>readership export --project prj_new<\/code>/);
});

it('Agents has each job once, in one stage of those counted at the top', async () => {
  const sql = "SELECT id FROM jobs WHERE project = 'prj_1' ORDER BY id";
  const jobs = await inHistory(historyFile(), (history) => valuesOf(history, sql));
  const { text } = await ask('/agents?project=prj_1');
  const [top = '', ...sections] = text.split(/<h2 id="stage-\d">/);
  const idsIn = (html: string) =>
    [...html.matchAll(/\bjob (\d+), \w+, \w{3} \d+, 2026/g)].map(([, id]) => Number(id));
  expect(idsIn(text).toSorted((one, two) => one - two)).toEqual(jobs);
  const counted = [...top.matchAll(/<a href="#stage-\d"><b>(\d+)<\/b> ([^<]+)<\/a>/g)].map(([, n, title]) => [
    title,
    Number(n),
  ]);
  expect(
    sections.map((html) => [html.slice(0, html.indexOf('<')).toLowerCase(), idsIn(html).length]),
  ).toEqual(counted);
  const titles = counted.map(([title]) => title);
  expect(titles).toEqual(expect.arrayContaining(['outcome unknown', 'to review', 'ended without a merge']));

  // What waits for people comes before what may get a job.
  expect(titles.slice(0, 2)).toEqual(['to review', 'outcome unknown']);
  expect(text.indexOf('>To review</h2>')).toBeLessThan(text.indexOf('id="proposals"'));
  expect(text.indexOf('>Merged</h2>')).toBeGreaterThan(text.indexOf('id="proposals"'));
  expect(text).toContain('No job is created until someone approves it');
  const other = await tempDir();
  await cp(directory, other, { recursive: true });
  const settings = await readFile(join(other, 'readership.yaml'), 'utf8');
  await writeFile(join(other, 'readership.yaml'), settings.replace('improve: {', 'improve: { mode: apply,'));
  expect(await (await serveSite(other)).page('/agents?project=prj_1')).toContain(
    'with the next <code>readership run</code>, or on Nov 23, 2026 at 04:00 UTC with <code>readership start</code>',
  );

  // A message reopens a job that has a pull request.
  const withLink = (from: string) => `WHERE state = '${from}' AND pr_link IS NOT NULL`;
  const change = (from: string, to: string) =>
    changeSite(directory, `UPDATE agent_jobs SET state = '${to}' ${withLink(from)}`);
  await change('completed', 'active');
  const reopened = (await ask('/agents?project=prj_1')).text;
  await change('active', 'completed');
  const approved = (html: string) =>
    idsIn(/<h2 id="stage-\d">In progress.*?(?=<h2 id=|$)/s.exec(html)?.[0] ?? '');
  expect(approved(reopened).length).toBeGreaterThan(approved(text).length);
});

describe('compression', () => {
  it.each([
    ['text/html', '/pages?project=prj_1&range=all'],
    ['text/csv', '/pages.csv?project=prj_1'],
  ])('of %s halves %s, and the content is the same', async (type, path) => {
    const compressed = await ask(path, { 'accept-encoding': 'gzip, br' });
    const plain = await ask(path);
    expect(compressed.headers['content-type']).toContain(type);
    expect(compressed.headers['content-encoding']).toMatch(/^(?:gzip|br)$/);
    expect(compressed.headers['vary']).toMatch(/accept-encoding/i);
    expect(plain.headers['content-encoding']).toBeUndefined();
    const lasting = (page: string) => page.replaceAll(/name="form" value="[^"]+"/g, '');
    expect(lasting(compressed.text)).toBe(lasting(plain.text));
    expect(compressed.bytes).toBeLessThan(plain.bytes / 2);
  });
});

it('a page repeats in the commands that it advises how this server was started', async () => {
  const workspace = { workspaceDir: undefined, projects: [], invocation: { sandbox: true } };
  const frame = await openFrame(workspace, [], { signOut: false });
  const words = 'Nothing is loaded yet: readership export';
  expect(frame.page('problem', 'Not found', new URL('http://page/x'), { words })).toContain(
    `${words} --sandbox`,
  );
});
