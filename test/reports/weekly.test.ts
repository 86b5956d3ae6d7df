import { describe, expect, test } from 'vitest';
import { valuesOf } from '../open-history.js';
import { emptyHistory, loadDays, type TestHistory } from './history.js';
import { prepare } from './prepare.js';

async function weekly({ reader }: TestHistory, period?: string) {
  const report = await prepare({ reader, name: 'weekly', period });
  const html = await report.page();
  return { ...report, html, words: textOf(html) };
}

/** What a reader sees: no tags, collapsed whitespace, and the entities the tests need decoded. */
const textOf = (html: string): string =>
  html
    .replace(/<(style|script)>.*?<\/\1>/gs, '')
    .replace(/<wbr>/g, '')
    .replace(/<[^>]*>|&nbsp;/g, ' ')
    .replace(/\s+/g, ' ');

/** A small site: two pages, and maybe more, with the same views every day. */
async function smallHistory(first: string, last: string, more: readonly string[] = []): Promise<TestHistory> {
  const history = await emptyHistory();
  await history.run(`
    INSERT INTO page_views
    SELECT 'prj_1', calendar.day::DATE, path, path, human, ai, human + ai
    FROM
      generate_series(DATE '${first}', DATE '${last}', INTERVAL 1 DAY) AS calendar (day),
      (VALUES ('/a', 30, 10), ('/b', 20, 15)${more.map((path) => `, ('${path}', 5, 5)`).join('')}) AS page (path, human, ai)`);
  await loadDays(history);
  return history;
}

describe('the weekly report', () => {
  test('compares nothing across a day on which counting changed by a note, and says so in every form', async () => {
    const history = await smallHistory('2026-08-03', '2026-11-15');
    await history.run(`
      UPDATE page_views SET ai = ai + human // 2, human = human - human // 2 WHERE day >= '2026-11-09';
      INSERT INTO notes VALUES ('prj_1', '2026-11-09', 'Counted by another rule', '*', true)`);
    await loadDays(history);
    const { html, ...report } = await weekly(history);
    const mail = await report.email();
    for (const form of [textOf(html), textOf(mail.html), report.text(), report.chat()]) {
      expect(form).toContain('Not compared: counting changed on Nov 9, 2026.');
      expect(form).not.toMatch(/what moved|from the week before/i);
    }
    for (const form of [textOf(html), textOf(mail.html), report.text()])
      expect(form).toContain('Nov 9, 2026: Counted by another rule. Nothing is compared across this day.');
  });

  test('lists only pages, and says how many views other addresses had', async () => {
    const history = await smallHistory('2026-05-04', '2026-11-15');
    await history.run(`
      INSERT INTO page_views
      SELECT 'prj_1', day::DATE, path, path, human, ai, human + ai
      FROM
        generate_series(DATE '2026-05-04', DATE '2026-11-15', INTERVAL 1 DAY) AS calendar (day),
        (VALUES
          ('/favicon.ico', DATE '2026-05-04', 900, 100), ('/robots.txt', DATE '2026-05-04', 0, 300),
          ('/wp-login.php', DATE '2026-11-10', 200, 0), ('/llms.txt', DATE '2026-05-04', 1, 90)
        ) AS other (path, first, human, ai)
      WHERE day >= first`);
    await loadDays(history);
    const { html, ...report } = await weekly(history);
    const mail = await report.email();
    const all = 7 * (1000 + 300 + 91) + 6 * 200;
    const line = `${all.toLocaleString('en-US')} more views were of files and system addresses, which are not listed as pages, such as /favicon.ico, /robots.txt, /wp-login.php. Files for AI: /llms.txt (7 human, 630 AI).`;
    for (const form of [textOf(html), textOf(mail.html), report.text()]) {
      expect(form).toContain(line);
      const cause = 'all of the rise on one address that is not a page, /wp-login.php';
      expect(form).toContain(cause);
      expect(form.replaceAll(cause, '').replace(line, '')).not.toMatch(/favicon|robots|wp-login|llms/);
      // The totals have them.
      expect(form).toContain((7 * (50 + 901) + 6 * 200).toLocaleString('en-US'));
    }
    expect(report.text()).toContain('Pages read: 2 of 2');
  });

  test('of a week in which most pages tripled does not say that those moved whose views stayed', async () => {
    const history = await emptyHistory();
    await history.run(`
      INSERT INTO page_views
      SELECT 'prj_1', day::DATE, '/page-' || n, '/page-' || n, views, ai, views + ai
      FROM (
        SELECT
          day, n, (95 + 2 * n + hash(n, day) % 9) * if(day >= DATE '2026-11-09' AND n % 8 <> 3, 3, 1) AS views,
          if(day >= DATE '2026-11-09' AND n % 8 = 3, 190, 20) AS ai
        FROM range(40) AS pages (n), generate_series(DATE '2026-08-17', DATE '2026-11-15', INTERVAL 1 DAY) AS days (day)
      )`);
    await loadDays(history);
    const { html, model, subject } = await weekly(history);
    expect(subject).toMatch(/: Human views rose \d+% to [\d,]+, a 13-week high; 5 pages moved$/);
    expect(model).toHaveProperty('moved.pages.0.direction', 'down');
    expect(textOf(html)).toContain('Pages with clearly more or fewer views');
    // But it says that their AI views rose.
    expect(textOf(html)).toMatch(/\. \/page-\d+ had 1,330 AI views, [^.]* more than expected\. /);
  });

  test('gives the changes of the most read pages from the week before, also of one that moved', async () => {
    const others = Array.from({ length: 8 }, (_, page) => `/other-${page}`);
    const history = await smallHistory('2026-08-17', '2026-11-15', others);
    // Views vary, so that others are expected than those of the week before.
    await history.run(`
      UPDATE page_views SET human = human + (date_diff('week', DATE '2026-08-17', day) % 3), total = human + ai;
      UPDATE page_views SET human = 4 * human WHERE page = '/a' AND day >= '2026-11-09'`);
    await loadDays(history);
    const { model } = await weekly(history);
    expect(model).toMatchObject({ moved: { pages: [{ path: '/a', audience: 'human' }] } });
    const [now, before] = await valuesOf(
      history.reader,
      `SELECT sum(human) FROM page_views WHERE page = '/a' AND day >= '2026-11-02' GROUP BY day >= '2026-11-09' ORDER BY ALL DESC`,
    );
    expect(model).toHaveProperty('mostRead.0', {
      path: '/a',
      human: {
        views: now,
        change: { kind: 'ratio', ratio: Number(now) / Number(before) - 1 },
        isBeyond: true,
      },
      ai: { views: 70, change: { kind: 'ratio', ratio: 0 }, isBeyond: false },
    });
    expect(model).not.toHaveProperty('moved.pages.0.change.ratio', Number(now) / Number(before) - 1);
  });

  test('shows only the views of its own project', async () => {
    const history = await smallHistory('2026-11-02', '2026-11-15');
    const before = await weekly(history);
    await history.run(`
      INSERT INTO page_views VALUES ('prj_2', '2026-11-12', '/other', '/other', 999, 999, 1998);
      INSERT INTO restatements VALUES ('prj_2', '2026-11-12', '2026-11-18', '2026-11-17', 1, 2, 1, 2, 2, 4, 1)`);
    await loadDays(history);
    expect((await weekly(history)).html).toBe(before.html);
  });

  test('for the very first week compares with nothing', async () => {
    const text = textOf((await weekly(await smallHistory('2026-11-09', '2026-11-15'))).html);
    expect(text).toContain('This is the first week in the history');
    expect(text).not.toMatch(/from the week before|compared with|NaN|Infinity|undefined|null| new /);
    expect(text).toContain('/a 210 70 /b');
  });

  test('says that no page moved only with three full weeks before, and five pages', async () => {
    const more = ['/c', '/d', '/e'];
    for (const [first, pages] of [
      ['2026-10-26', more],
      ['2026-10-19', []],
    ] as const) {
      const young = await weekly(await smallHistory(first, '2026-11-15', pages));
      expect(young.model).toMatchObject({ moved: null });
      expect(textOf(young.html)).not.toContain('What moved');
    }
    const settled = await weekly(await smallHistory('2026-10-19', '2026-11-15', more));
    expect(settled.model).toMatchObject({ moved: { pages: [] } });
    expect(textOf(settled.html)).toContain(
      'No page moved: each had about as many views as expected from its recent weeks.',
    );
  });

  test('calls a page new only for those who viewed it', async () => {
    const history = await smallHistory('2026-10-05', '2026-11-15');
    await history.run(`
      INSERT INTO page_views VALUES
        ('prj_1', '2026-11-12', '/c', '/c', 9, 0, 9), ('prj_1', '2026-11-05', '/d', '/d', 8, 8, 16), ('prj_1', '2026-11-12', '/d', '/d', 8, 8, 16)`);
    await loadDays(history);
    const report = await weekly(history);
    expect(report.text()).toContain('\n/c: 9 human (new) · 0 AI (0%)\n');
    // A page that began in the middle of the week before is not compared with a part of it.
    expect(report.text()).toContain('\n/d: 8 human · 8 AI\n');
    await history.run(`INSERT INTO notes VALUES ('prj_1', '2026-11-09', '', '/a', true)`);
    expect((await weekly(history)).text()).toContain('\n/a: 210 human · 70 AI\n/b: 140 human (0%)');
    // Without an address of the site, paths are not linked.
    expect(report.html).toContain('<span class="pieces" dir="auto" title="/c">/c</span>');
  });

  test('names days that are missing and days that may still change, and compares nothing', async () => {
    const history = await smallHistory('2026-10-05', '2026-11-15');
    await history.run(`
      DELETE FROM days WHERE day IN ('2026-11-10', '2026-11-11');
      DELETE FROM page_views WHERE day IN ('2026-11-10', '2026-11-11');
      UPDATE days SET state = 'provisional' WHERE day = '2026-11-15';
      UPDATE days SET loaded_at = '2026-11-18 05:00' WHERE day < '2026-11-09'`);
    const { html, model, subject } = await weekly(history);
    const text = textOf(html);
    expect(subject).toBe(
      'Acme Docs, Nov 9 – 15, 2026: 250 human views and 125 AI views on five of seven days',
    );
    expect(text).toContain('Nov 10 – 11 are not loaded: all numbers cover 5 loaded days of 7');
    expect(text).toContain('The views of Nov 15 may still change.');
    expect(text).toContain('Human views 250 AI views 125');
    expect(text).toContain(
      '5 of 7 days loaded, most recently on Nov 18, 2026 at 02:00 UTC. The views of Nov 15 may still change.',
    );
    expect(text).not.toMatch(/from the week before|compared with 2/);
    expect(model).toMatchObject({ comparedWith: null, human: { views: 250, usual: null } });
  });

  test('of a history that starts in the week does not call the days before missing', async () => {
    const { html } = await weekly(await smallHistory('2026-11-12', '2026-11-15'));
    expect(textOf(html)).toContain('The history starts on Nov 12: all numbers cover 4 loaded days of 7');
    expect(textOf(html)).not.toContain('not loaded:');
  });

  test('says since when a history is loaded while older days are not, apart from a few spread over it', async () => {
    const history = await smallHistory('2026-06-01', '2026-11-15');
    expect(textOf((await weekly(history)).html)).toContain('The history starts on Jun 1, 2026.');
    await history.run("DELETE FROM days WHERE day BETWEEN '2026-06-02' AND '2026-10-04'");
    expect(textOf((await weekly(history)).html)).toContain('Loaded from Oct 5, 2026 so far.');
  });

  test('draws a missing day as a gap, never as zero', async () => {
    const history = await smallHistory('2026-10-05', '2026-11-15');
    const lines = (html: string): string[] =>
      [...html.matchAll(/<path[^>]* d="([^"]*)"[^>]*stroke="var\(--human\)"/g)].map(
        (match) => match[1] ?? '',
      );
    const pieces = (path: string | undefined): number => path?.match(/M/g)?.length ?? 0;
    const whole = (await weekly(history)).html;
    expect(lines(whole).map(pieces)).toEqual([1, 1, 1, 1, 1, 1]);
    expect(textOf(whole)).not.toContain('leave gaps');
    await history.run(`DELETE FROM days WHERE day = '2026-10-20'`);
    const { html } = await weekly(history);
    expect(lines(html).map(pieces)).toEqual([2, 2, 2, 2, 2, 2]);
    expect(textOf(html)).toContain('Days that are not loaded leave gaps.');
  });

  test('of a week without views, or without AI, is still a page', async () => {
    const history = await smallHistory('2026-10-05', '2026-11-15');
    await history.run(`UPDATE page_views SET ai = 0, total = human WHERE day >= '2026-11-09'`);
    await loadDays(history);
    expect((await weekly(history)).words).toMatch(/No AI views were recorded.*AI share 0\.0%/);
    await history.run(`DELETE FROM page_views; UPDATE days SET human = 0, ai = 0, total = 0, pages = 0`);
    const text = (await weekly(history)).words;
    expect(text).toContain('No views were recorded.');
    expect(text).toContain('AI share –');
    expect(text).not.toMatch(/NaN|Infinity|undefined|Most read|What moved/);
  });

  test('for a week with nothing loaded is refused, and says what the history covers', async () => {
    const history = await smallHistory('2026-11-02', '2026-11-15');
    await expect(weekly(history, '2026-W30')).rejects.toThrow(
      'Nothing is loaded for 2026-W30 (Mon, Jul 20 – Sun, Jul 26, 2026) of Acme Docs. Its history covers Nov 2 – 15, 2026.',
    );
    await expect(weekly(await emptyHistory())).rejects.toThrow(/history is empty.*readership export/);
  });

  test('leaves the day of a bot out of every change, that of the AI share too', async () => {
    const history = await smallHistory('2026-08-17', '2026-11-15');
    await history.run(`UPDATE page_views SET ai = 250000 WHERE path = '/b' AND day = '2026-11-11'`);
    await loadDays(history);
    const report = await weekly(history);
    const mail = await report.email();
    expect(report.text()).toMatch(
      /AI share: 99\.\d% \(0\.0 pts from the week before, not counting Wednesday\)/,
    );
    expect(report.chat()).toMatch(/^AI views: [\d,]+ \(0% from the week before, not counting Wednesday\)/m);
    for (const html of [report.html, mail.html])
      expect(textOf(html)).toMatch(
        /AI share 99\.\d% 0\.0 pts from the week before ?,? not counting Wednesday/,
      );
    expect(report.html).not.toContain('Read by AI, rarely by people');
  });

  test('shows agent work with pull requests first, and links only to web addresses', async () => {
    const history = await smallHistory('2026-11-02', '2026-11-15');
    expect((await weekly(history)).words).not.toContain('Agent work');
    await history.run(`
      INSERT INTO agent_jobs BY NAME
      SELECT *, 'prj_1' AS project, 'why' AS reason, 'p' AS prompt, 0 AS polls, TIMESTAMP '2026-11-16' AS planned_at
      FROM (VALUES
        (1, '/running', 'active', NULL, NULL),
        (2, '/ready', 'completed', 'https://github.com/acme/docs/pull/7', TIMESTAMP '2026-11-16'),
        (3, '/hostile', 'completed', 'javascript:alert(1)', TIMESTAMP '2026-11-16'),
        (4, '/lost', 'unknown', NULL, NULL),
        (5, '/long-ago', 'completed', NULL, TIMESTAMP '2026-10-01'),
        (6, '/forgotten', 'completed', 'https://github.com/acme/docs/pull/1', TIMESTAMP '2026-10-01')
      ) AS job (id, path, state, pr_link, ended_at)`);
    const { html, subject, ...report } = await weekly(history);
    // A chat gets the first part: the subject has the number of pull requests.
    expect(report.text()).toContain('AGENT WORK');
    expect(report.chat()).toContain('\nMOST READ\n');
    expect(report.chat()).not.toContain('AGENT WORK');
    expect(subject).toMatch(/AI views; 3 pull requests to review$/);
    const text = textOf(html);
    expect(text).toContain('3 pull requests ready for your review · 1 running · 1 with an unknown outcome');
    expect(text).toMatch(/\/ready .*\/hostile .*\/forgotten .*\/running .*\/lost /);
    expect(text).not.toContain('/long-ago');
    expect(html).toContain('href="https://github.com/acme/docs/pull/7"');
    expect(html).not.toMatch(/href="javascript/);
    await history.run(`UPDATE agent_jobs SET ended_at = '2026-11-15 23:59:59' WHERE id IN (2, 4)`);
    expect((await weekly(history)).subject).toMatch(/: Three pull requests are waiting for your review$/);
    await history.run(`UPDATE agent_jobs SET ended_at = '2026-11-08 23:59:59' WHERE id = 2`);
    expect((await weekly(history)).subject).not.toContain('waiting');
  });
});
