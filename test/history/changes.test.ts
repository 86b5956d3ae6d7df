import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { addDays, type Day, day, type DayRange, daysBetween } from '../../src/day.js';
import { dayColumn } from '../../src/columns.js';
import { readingSql } from '../agents/reading.js';
import { emptyHistory, fillSiteWithGaps, type TestHistory } from '../reports/history.js';

const count = z.int();
const viewRow = z.object({ day: dayColumn, path: z.string(), human: count, ai: count });
const siteRow = viewRow.omit({ path: true }).extend({ is_outage: z.boolean() });
const number = z.number().nullable();
const changeRow = z.object({
  path: z.string().nullable(),
  days_loaded: count,
  days_before: count,
  human: number,
  ai: number,
  human_before: number,
  ai_before: number,
  human_change: number,
  ai_change: number,
  is_new: z.boolean().nullable(),
});
type Per = 'page' | 'section' | 'site';

type SiteRow = z.infer<typeof siteRow>;
type ViewRow = z.infer<typeof viewRow>;

/** What the comment of the macro says, computed here from the stored rows. */
function independent(
  { site, views }: { site: readonly SiteRow[]; views: readonly ViewRow[] },
  range: ComparedRange,
  per: Per,
) {
  const isWithin = (at: Day, { first, last }: DayRange) => at >= first && at <= last;
  const isBefore = (at: Day) => range.before !== null && isWithin(at, range.before);
  const named = { page: (path: string) => path, section: (path: string) => `/${path.split('/')[1]}` };
  const rows: (Omit<SiteRow, 'is_outage'> & { readonly path: string | null })[] =
    per === 'site'
      ? site.filter((row) => row.day <= range.last).map((row) => ({ ...row, path: null }))
      : views.map((row) => ({ ...row, path: named[per](row.path) }));
  const days_loaded = site.filter((row) => isWithin(row.day, range)).length;
  const days_before = site.filter((row) => isBefore(row.day) && !row.is_outage).length;
  const sum = (of: typeof rows, audience: 'human' | 'ai') =>
    of.reduce((total, row) => total + row[audience], 0);
  const change = (now: number | null, before: number | null) =>
    now === null || before === null || before === 0 ? null : now / days_loaded / (before / days_before) - 1;
  const byPath = new Map<string | null, typeof rows>();
  for (const row of rows) {
    const own = byPath.get(row.path);
    if (own === undefined) byPath.set(row.path, [row]);
    else own.push(row);
  }
  return [...byPath].flatMap(([path, own]) => {
    const [now, before] = [
      own.filter((row) => isWithin(row.day, range)),
      own.filter((row) => isBefore(row.day)),
    ];
    if (per !== 'site' && now.length + before.length === 0) return [];
    const first = own.map((row) => row.day).sort()[0];
    const known =
      first === undefined
        ? []
        : site.filter((row) => !row.is_outage && row.day < first && daysBetween(row.day, first) <= 56);
    const isFirst = per !== 'site' && first !== undefined && isWithin(first, range);
    const [human, ai] = days_loaded === 0 ? [null, null] : [sum(now, 'human'), sum(now, 'ai')];
    const [human_before, ai_before] =
      days_before === 0 ? [null, null] : [sum(before, 'human'), sum(before, 'ai')];
    return [
      {
        ...{ path, days_loaded, days_before, human, ai, human_before, ai_before },
        human_change: change(human, human_before),
        ai_change: change(ai, ai_before),
        is_new: isFirst ? (known.length >= 28 ? true : null) : false,
      },
    ];
  });
}

const LAST = day('2026-11-15');
interface ComparedRange extends DayRange {
  readonly before: DayRange | null;
  readonly how: string;
}
const earlier = (first: Day, last: Day, days: number): ComparedRange => ({
  first,
  last,
  before: days === 0 ? null : { first: addDays(first, -days), last: addDays(last, -days) },
  how: `, ${days}`,
});
const comparedWith = (range: [string, string], before: [string, string], how = ''): ComparedRange => ({
  first: day(range[0]),
  last: day(range[1]),
  before: { first: day(before[0]), last: day(before[1]) },
  how,
});
const RANGES = [
  earlier(addDays(LAST, -6), LAST, 7),
  earlier(addDays(LAST, -90), LAST, 91),
  earlier(addDays(LAST, -40), addDays(LAST, -10), 364),
  // Longer than what it is compared with lies back, so some days are on both sides.
  earlier(addDays(LAST, -399), LAST, 364),
  earlier(addDays(LAST, -435), LAST, 0),
  comparedWith(['2026-10-12', '2026-10-20'], ['2026-10-03', '2026-10-11']),
  comparedWith(['2026-10-01', '2026-10-31'], ['2026-09-01', '2026-09-30']),
  comparedWith(['2026-03-01', '2026-03-31'], ['2026-02-01', '2026-02-28']),
  comparedWith(['2026-07-01', '2026-09-30'], ['2026-04-01', '2026-06-30']),
  comparedWith(['2026-10-01', '2026-10-31'], ['2025-10-01', '2025-10-31'], ', months_earlier := 12'),
  comparedWith(['2026-10-01', '2026-11-15'], ['2026-07-01', '2026-08-15'], ', months_earlier := 3'),
];

describe('changes on sites with gaps', () => {
  it.each([1, 2, 8])('returns what independent code computes: site %i', async (seed) => {
    const history = await emptyHistory();
    await fillSiteWithGaps(history, seed);
    const stored = {
      site: await history.reader.query('SELECT day, human, ai, is_outage FROM site_days', siteRow),
      views: await history.reader.query('SELECT day, path, human, ai FROM page_views', viewRow),
    };
    for (const range of RANGES)
      for (const per of ['page', 'section', 'site'] as const) {
        const sql = `FROM changes('${range.first}', '${range.last}'${range.how}, per := '${per}')`;
        const found = await history.reader.query(sql, changeRow);
        const expected = independent(stored, range, per);
        const told = (rows: typeof expected) => new Map(rows.map((row) => [row.path, row]));
        const shown = told(found);
        expect([...shown.keys()].sort(), sql).toEqual(expected.map(({ path }) => path).sort());
        for (const { human_change, ai_change, ...row } of expected) {
          const own = shown.get(row.path);
          expect(own, sql).toMatchObject(row);
          for (const [is, should] of [
            [own?.human_change, human_change],
            [own?.ai_change, ai_change],
          ] as const)
            if (should === null) expect(is, sql).toBeNull();
            else expect(is, sql).toBeCloseTo(should, 9);
        }
      }
  });
});

describe('changes', () => {
  let history: TestHistory;
  beforeAll(async () => {
    history = await emptyHistory();
    // Sixty pages with 70 views a week, give or take a tenth; /grows has twice as many in the last week.
    await history.run(`
      INSERT INTO page_views
      SELECT 'p', day, path, path, human, 0, human
      FROM (
        SELECT
          day::DATE AS day, if(n = 0, '/grows', format('/page-{}', n)) AS path,
          (10 + hash(n, date_trunc('week', day)) % 3 - 1) * if(n = 0 AND day >= DATE '2026-11-09', 2, 1) AS human
        FROM range(60) AS pages (n), generate_series(DATE '2026-08-03', DATE '2026-11-15', INTERVAL 1 DAY) AS days (day)
      );
      INSERT INTO days BY NAME
      SELECT project, day, 'final' AS state, now()::TIMESTAMP AS first_loaded_at, first_loaded_at AS loaded_at, loaded_at AS checked_at,
        sum(human) AS human, sum(ai) AS ai, sum(total) AS total, count(*) AS pages,
        0 AS unattributed_human, 0 AS unattributed_ai, 0 AS unattributed_total, 0 AS nights_in_doubt
      FROM page_views GROUP BY ALL`);
  });
  const rows = (sql: string) => history.reader.query(sql, changeRow);

  it('calls no page new where too little is loaded before', async () => {
    const [first] = await rows("FROM changes('2026-08-10', '2026-08-16')");
    expect(first).toMatchObject({ is_new: false, days_before: 7 });
    const start = await rows("FROM changes('2026-08-03', '2026-08-09')");
    expect(new Set(start.map(({ is_new }) => is_new))).toEqual(new Set([null]));
  });

  it('calls a page new only if 28 of the 56 days before its first view are loaded', async () => {
    const young = await emptyHistory();
    const isNew = async () =>
      (await young.reader.query("FROM changes('2026-11-09', '2026-11-15')", changeRow)).map(
        (row) => row.is_new,
      );
    // Half of the 56 days, from the first of them on.
    await young.run(
      readingSql([{ path: '/old', human: 9, ai: 0 }], { first: '2026-09-14', last: '2026-10-11' }),
    );
    await young.run(`
      INSERT INTO page_views VALUES ('prj_sandbox', '2026-11-09', '/new', '/new', 1, 0, 1);
      INSERT INTO days BY NAME SELECT * REPLACE (DATE '2026-11-09' AS day) FROM days LIMIT 1`);
    expect(await isNew()).toEqual([true]);
    await young.run("DELETE FROM days WHERE day = '2026-09-14'");
    expect(await isNew()).toEqual([null]);
  });

  it('compares nothing across a break in the notes', async () => {
    await history.run(
      "INSERT INTO notes VALUES ('p', '2026-11-09', 'bots', '/page-1*', true), ('p', '2026-11-12', 'a talk', '*', false)",
    );
    const compared = async (range: string) =>
      (await rows(`FROM changes(${range}) ORDER BY path`)).filter(
        ({ human_change }) => human_change !== null,
      );
    const last = await compared("'2026-11-09', '2026-11-15'");
    expect(last.map(({ path }) => path)).not.toContain('/page-12');
    expect(last).toHaveLength(60 - 11);
    expect(await compared("'2026-11-09', '2026-11-15', per := 'site'")).toEqual([]);
    // A pattern concerns each section that has a page of it.
    const sections = "'2026-11-09', '2026-11-15', per := 'section'";
    expect((await compared(sections)).map(({ path }) => path)).toEqual(last.map(({ path }) => path));
    await history.run("UPDATE notes SET path = '/*/install' WHERE is_break");
    expect(await compared(sections)).toEqual([]);
    await history.run("UPDATE notes SET path = '/page-1/*' WHERE is_break");
    expect(await compared(sections)).toHaveLength(60 - 1);
    // Both sides lie before it, or after it.
    expect(await compared("'2026-11-02', '2026-11-08'")).toHaveLength(60);
    expect(await compared("'2026-11-13', '2026-11-15'")).toHaveLength(60);
    await history.run('DELETE FROM notes');
  });

  it.each([
    "changes('2026-11-15', '2026-11-09')",
    "changes('2026-11-15', '2026-11-09', 7)",
    "top_pages('2026-11-15', '2026-11-09')",
    "page_addresses('/page-1', '2026-11-15', '2026-11-09')",
    "human_vs_ai('2026-11-15', '2026-11-09', 'week')",
    "day_differences('2026-11-15', last_day := '2026-11-09')",
  ])('%s is refused, because its days are in the wrong order', async (asked) => {
    const words = 'The last day, 2026-11-09, is before the first, 2026-11-15: write the earlier day first';
    await expect(rows(`FROM ${asked}`)).rejects.toThrow(words);
    const later = asked.replaceAll('2026', '2036');
    await expect(rows(`FROM ${later}`)).rejects.toThrow(words.replaceAll('2026', '2036'));
  });

  it.each([
    ["per := 'week'", /per must be page, section or site/],
    ['-7', /days_earlier and months_earlier must not be negative/],
  ])('refuses %s', async (argument, words) => {
    await expect(rows(`FROM changes('2026-11-09', '2026-11-15', ${argument})`)).rejects.toThrow(words);
  });
});
