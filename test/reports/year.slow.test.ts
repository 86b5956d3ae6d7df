import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { addDays, day, daysIn } from '../../src/day.js';
import { createTraffic } from '../../src/sandbox/traffic/traffic.js';
import { emptyHistory, loadDays, type TestHistory } from './history.js';
import { prepare } from './prepare.js';

/** A year of 53 weeks that crosses new years: December 29, 2025 to January 3, 2027. */
const FIRST = day('2025-12-29');
const WEEKS = 53;
const LAST = addDays(FIRST, 7 * WEEKS - 1);
/** In CI, every fourth week, including the first and the last. */
const STRIDE = process.env['CI'] === undefined ? 1 : 4;

let history: TestHistory;
beforeAll(async () => {
  history = await emptyHistory();
  const traffic = createTraffic({ seed: 7, firstDay: FIRST, pages: 90 });
  const settled = new Date('2027-02-01T00:00:00Z');
  for (const at of daysIn({ first: FIRST, last: LAST })) {
    const { rows } = traffic.viewsIn({ from: at, to: addDays(at, 1) }, settled);
    const values = rows.map(
      ({ path, human, ai, total }) =>
        `('prj_1', '${at}', '${path.replaceAll("'", "''")}', ${human}, ${ai}, ${total})`,
    );
    await history.run(`INSERT INTO page_views VALUES ${values.join(', ')}`);
  }
  await loadDays(history);
});

const count = z.number();
const weekRow = z.object({
  week: z.string(),
  human: count,
  ai: count,
  human_before: count.nullable(),
  pages: count,
  top: z.string(),
  top_human: count,
  top_ai: count,
});

/** Written independently of the report's own queries, and differently. */
const INDEPENDENT = `
  WITH numbered AS (SELECT *, (day - DATE '${FIRST}') // 7 AS n FROM page_views),
  page AS (SELECT n, path, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai FROM numbered GROUP BY n, path)
  SELECT
    strftime(DATE '${FIRST}' + 7 * n::INTEGER, '%G-W%V') AS week,
    sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai,
    lag(sum(human)::BIGINT) OVER (ORDER BY n) AS human_before,
    count(*) FILTER (human + ai > 0) AS pages,
    arg_max(path, human + ai) AS top, arg_max(human, human + ai) AS top_human, arg_max(ai, human + ai) AS top_ai
  FROM page GROUP BY n ORDER BY n`;

const shown = z.object({
  human: z.object({ views: count }),
  ai: z.object({ views: count }),
  pages: z.object({ read: count }),
  mostRead: z.array(
    z.object({ path: z.string(), human: z.object({ views: count }), ai: z.object({ views: count }) }),
  ),
});

/** What a reader of the page sees: no tags, and collapsed whitespace. */
const seenIn = (html: string): string =>
  html
    .replace(/<(style|script)>.*?<\/\1>|<wbr>/gs, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');

test('every week of a year shows the numbers of independent SQL, in every format', async () => {
  const weeks = await history.reader.query(INDEPENDENT, weekRow);
  expect(weeks).toHaveLength(WEEKS);
  expect(weeks.at(-1)?.week).toBe('2026-W53');
  for (const week of weeks.filter((_, index) => index % STRIDE === 0)) {
    const report = await prepare({
      ...{ reader: history.reader, name: 'weekly', period: week.week },
      ...{ project: { id: 'prj_1', name: 'Acme Docs' }, now: new Date('2027-02-01T00:00:00Z') },
    });
    const written = (value: number): string => value.toLocaleString('en-US');
    const data = shown.parse(JSON.parse(report.json()));
    expect([data.human.views, data.ai.views, data.pages.read]).toEqual([week.human, week.ai, week.pages]);
    expect(data.mostRead[0]).toEqual({
      path: week.top,
      human: { views: week.top_human },
      ai: { views: week.top_ai },
    });

    const [page, text] = [seenIn(await report.page()), report.text().replace(/ +/g, ' ')];
    for (const shown of [page, text]) {
      expect(shown).toContain(`Human views ${written(week.human)}`);
      expect(shown).toContain(`AI views ${written(week.ai)}`);
      expect(shown).toContain(`Pages read ${week.pages}`);
      expect(shown).not.toMatch(/NaN|Infinity|undefined|\[object/);
      if (week.human_before !== null) {
        const percent = Math.round((week.human / week.human_before - 1) * 100);
        const sign = percent > 0 ? '+' : percent < 0 ? '−' : '';
        expect(shown).toContain(`${written(week.human)} ${sign}${Math.abs(percent)}% from last week`);
      }
    }
    expect(page).toContain(`${week.top} ${written(week.top_human)}`);
    expect(text).toContain(`${week.top}\n human ${written(week.top_human)}`);
  }
});
