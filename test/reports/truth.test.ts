import { describe, expect, it } from 'vitest';
import { addDays, day, type Day, daysIn, type WEEKDAYS } from '../../src/day.js';
import { percent, signedPercent, thousands } from '../../src/format/numbers.js';
import { ISO_CALENDAR } from '../../src/reports/period.js';
import { type CountedSite, historyOf } from './history.js';
import { prepare } from './prepare.js';
import { randomOf } from './random.js';

interface Dataset {
  /** The first day of the reported week. */
  readonly week: Day;
  readonly period: string;
  readonly first?: Day;
  readonly pages?: number;
  readonly firstDayOfWeek?: (typeof WEEKDAYS)[number];
  readonly noAi?: boolean;
  /** Days of the week without any view, and days that were not loaded. */
  readonly zero?: readonly Day[];
  readonly missing?: readonly Day[];
}

const WEEK = day('2026-11-09');
const week = (first: Day): Day[] => daysIn({ first, last: addDays(first, 6) });

const DATASETS: Readonly<Record<string, Dataset>> = {
  'a plain site': { week: WEEK, period: '2026-W46' },
  'two missing days': { week: WEEK, period: '2026-W46', missing: [day('2026-11-10'), day('2026-11-14')] },
  'a missing day in the week before': { week: WEEK, period: '2026-W46', missing: [day('2026-11-04')] },
  'a week after one of zeros': { week: WEEK, period: '2026-W46', zero: week(addDays(WEEK, -7)) },
  'no AI': { week: WEEK, period: '2026-W46', noAi: true },
  'three pages': { week: WEEK, period: '2026-W46', pages: 3 },
  '5,000 pages': { week: WEEK, period: '2026-W46', pages: 5_000, first: addDays(WEEK, -7) },
  'week 53': { week: day('2026-12-28'), period: '2026-W53' },
  'weeks from Sunday': { week: day('2026-11-08'), period: '2026-W46', firstDayOfWeek: 'sunday' },
  'weeks from Thursday': { week: day('2026-11-12'), period: '2026-W46', firstDayOfWeek: 'thursday' },
  'more than a year': { week: WEEK, period: '2026-W46', pages: 3, first: addDays(WEEK, -358) },
  'the first week of a history': { week: WEEK, period: '2026-W46', first: day('2026-11-11') },
};

/** Days of views; page 0 appears on the third day of the reported week, others lean to one reader, and one is read on the first day only. */
function generate({ week: first, pages = 40, noAi = false, zero = [], ...of }: Dataset): CountedSite {
  const random = randomOf(pages + Number(first.slice(-2)));
  const site: CountedSite = new Map();
  for (const date of daysIn({ first: of.first ?? addDays(first, -27), last: addDays(first, 6) })) {
    const views = new Map<string, { human: number; ai: number }>();
    for (let page = 0; page < pages; page++) {
      const isYetToCome = page === 0 && date < addDays(first, 2);
      const scale = 400 / (1 + (page % 500)) ** 0.7;
      const human = Math.round(scale * random() * (page % 7 === 1 ? 0.02 : 1));
      const ai = noAi ? 0 : Math.round(scale * random() * (page % 7 === 2 ? 0.02 : 1));
      if (!isYetToCome && !zero.includes(date) && human + ai > 0)
        views.set(`/docs/page-${page}x`, { human, ai });
    }
    if (site.size === 0) views.set('/old', { human: 1, ai: 0 });
    site.set(date, views);
  }
  for (const date of of.missing ?? []) site.delete(date);
  return site;
}

async function stored(site: CountedSite) {
  const history = await historyOf(site);
  for (const [date, views] of site)
    if (views.size === 0)
      await history.run(`
        INSERT INTO days BY NAME
        SELECT
          'prj_1' AS project, DATE '${date}' AS day, 'final' AS state, now()::TIMESTAMP AS first_loaded_at,
          first_loaded_at AS loaded_at, loaded_at AS checked_at, 0 AS nights_in_doubt, 0 AS human, 0 AS ai, 0 AS total, 0 AS pages,
          0 AS unattributed_human, 0 AS unattributed_ai, 0 AS unattributed_total`);
  return history;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/** The views of some days by path, those that are not loaded left out. */
function viewsOn(site: CountedSite, days: readonly Day[]) {
  const pages = new Map<string, { path: string; human: number; ai: number }>();
  for (const date of days)
    for (const [path, { human, ai }] of site.get(date) ?? []) {
      const known = pages.get(path) ?? { path, human: 0, ai: 0 };
      pages.set(path, { path, human: known.human + human, ai: known.ai + ai });
    }
  return [...pages.values()].sort(
    (one, two) => two.human + two.ai - one.human - one.ai || (one.path < two.path ? -1 : 1),
  );
}

/** What the weekly report must say, calculated from what the server counted. */
function expected(site: CountedSite, { week: first }: Dataset) {
  const days = week(first);
  const before = week(addDays(first, -7));
  const isWhole = (range: readonly Day[]) => range.every((date) => site.has(date));
  /** Nothing is compared with a day on which the site had no views. */
  const isBasis = (date: Day) => (site.get(date)?.size ?? 0) > 0;
  const now = viewsOn(site, days);
  const then = viewsOn(site, before);
  const earlier = [...site.keys()].filter((date) => date < first);
  const seen = new Set(viewsOn(site, earlier).map(({ path }) => path));
  const [human, ai] = [sum(now.map((page) => page.human)), sum(now.map((page) => page.ai))];
  const changeOf = (views: number, from: number) =>
    !isWhole(days) || !before.every(isBasis)
      ? { kind: 'unknown' }
      : from === 0
        ? views === 0
          ? { kind: 'ratio', ratio: 0 }
          : { kind: 'from zero' }
        : { kind: 'ratio', ratio: views / from - 1 };
  /** The views of a page without the two days that have the most. */
  const core = (path: string, who: 'human' | 'ai') => {
    const byDay = days.map((date) => site.get(date)?.get(path)?.[who] ?? 0);
    return sum(byDay.sort((one, two) => two - one).slice(2));
  };
  const leaning = (reader: 'human' | 'ai', other: 'human' | 'ai') =>
    now
      .filter((page) => page[reader] >= 10 * page[other])
      .filter(({ path }) => core(path, reader) >= Math.max(50, 10 * core(path, other)))
      .sort((one, two) => two[reader] - one[reader] || (one.path < two.path ? -1 : 1))
      .slice(0, 5);
  const fresh = now.filter(({ path }) => !seen.has(path));
  /** Whether enough days before its first view are loaded to call a page new. */
  const isCertain = ({ path }: (typeof now)[number]): boolean => {
    const firstView = days.find((date) => site.get(date)?.has(path)) ?? first;
    return (
      earlier.filter((date) => isBasis(date) && date >= addDays(firstView, -56)).length +
        days.filter((date) => isBasis(date) && date < firstView).length >=
      28
    );
  };
  return {
    human: { views: human, change: changeOf(human, sum(then.map((page) => page.human))) },
    ai: { views: ai, change: changeOf(ai, sum(then.map((page) => page.ai))) },
    share: human + ai === 0 ? null : ai / (human + ai),
    pages: {
      read: now.length,
      inAYear: viewsOn(site, daysIn({ first: addDays(first, -357), last: addDays(first, 6) })).length,
      new: fresh.every(isCertain) ? fresh.length : null,
      isWholeYear: [...site.keys()].some((date) => date <= addDays(first, -357)),
    },
    mostRead: now.slice(0, 10),
    newPages: fresh.filter(isCertain).slice(0, 5),
    oneSided: { human: leaning('human', 'ai'), ai: leaning('ai', 'human') },
    daysLoaded: days.filter((date) => site.has(date)).length,
    weeks: Array.from({ length: 13 }, (_, ago) => ago).flatMap((ago) => {
      const range = week(addDays(first, -7 * ago)).filter((date) => site.has(date));
      const views = viewsOn(site, range);
      return range.length === 0
        ? []
        : {
            human: sum(views.map((page) => page.human)),
            ai: sum(views.map((page) => page.ai)),
            daysLoaded: range.length,
          };
    }),
  };
}

/** What a reader sees of HTML. */
const wordsOf = (html: string): string =>
  html
    .replaceAll(/<(style|script|svg|title|head)\b[^]*?<\/\1>|<!--[^]*?-->/g, ' ')
    .replaceAll('<wbr>', '')
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/&[#\w]+;/g, (entity) => (entity === '&amp;' ? '&' : ' '));

/** The counts that follow a text, without the changes. */
function countsAfter(words: string, text: string, count: number): number[] {
  const at = words.indexOf(text);
  const rest = at < 0 ? '' : words.slice(at + text.length, at + text.length + 160).replaceAll('from 0', '');
  return [...rest.matchAll(/(?<![\d.,+−-])(\d{1,3}(?:,\d{3})*)(?![\d.,]*[\d%kM])/g)]
    .slice(0, count)
    .map(([, number = '']) => Number(number.replaceAll(',', '')));
}

/** The number after a label. */
const figure = (words: string, label: string): string | undefined =>
  new RegExp(`${label}:?\\s+(\\d[\\d,]*)`).exec(words)?.[1];

/** What is written after a number of views: how it changed. */
const changeAfter = (words: string, views: number): (string | undefined)[] =>
  [...words.matchAll(new RegExp(` ${thousands(views)}\\s+\\(?([+−]?[\\d,.]+%)`, 'g'))].map(
    ([, change]) => change,
  );

/** What no form may say, whatever the numbers are. */
const SLIPS = /Humans views|AIs views|\b1 (?:views|pages|days)\b|NaN|Infinity|undefined|−0%|\+0%/;

/** Two ways to calculate a ratio may differ in the last digits. */
const close = (value: unknown) =>
  JSON.parse(JSON.stringify(value), (_, one: unknown) =>
    typeof one === 'number' && !Number.isInteger(one) ? Number(one.toFixed(9)) : one,
  ) as unknown;

describe('the weekly report says what the server counted, in every format', () => {
  it.each(Object.entries(DATASETS))('%s', async (_, dataset) => {
    const site = generate(dataset);
    const history = await stored(site);
    const truth = expected(site, dataset);
    const report = await prepare({
      ...{ reader: history.reader, name: 'weekly', period: dataset.period },
      calendar: { ...ISO_CALENDAR, firstDayOfWeek: dataset.firstDayOfWeek ?? 'monday' },
      now: new Date('2027-01-20T05:00:00Z'),
    });
    expect(report.period).toMatchObject({ first: dataset.week, last: addDays(dataset.week, 6) });
    const mail = await report.email();
    const json = JSON.parse(report.json()) as Omit<typeof truth, 'share' | 'mostRead' | 'weeks'> & {
      coverage: { daysLoaded: number };
      share: { ai: number | null };
      weeks: (typeof truth.weeks)[number][];
      mostRead: { path: string; human: { views: number }; ai: { views: number } }[];
    };
    expect(
      close({
        human: { views: json.human.views, change: json.human.change },
        ai: { views: json.ai.views, change: json.ai.change },
        share: json.share.ai,
        pages: json.pages,
        mostRead: json.mostRead.map(({ path, human, ai }) => ({ path, human: human.views, ai: ai.views })),
        newPages: json.newPages,
        oneSided: json.oneSided,
        daysLoaded: json.coverage.daysLoaded,
        weeks: json.weeks.map(({ human, ai, daysLoaded }) => ({ human, ai, daysLoaded })),
      }),
    ).toEqual(close(truth));

    const forms = {
      page: wordsOf(await report.page()),
      'HTML email': wordsOf(mail.html),
      'text email': mail.text,
      chat: report.chat(),
    };
    for (const [form, words] of Object.entries(forms)) {
      expect(figure(words, 'Human views'), form).toBe(thousands(truth.human.views));
      expect(figure(words, 'AI views'), form).toBe(thousands(truth.ai.views));
      for (const { views, change } of [truth.human, truth.ai])
        if ('ratio' in change) expect(changeAfter(words, views), form).toContain(signedPercent(change.ratio));
      if (truth.share !== null) expect(words, form).toContain(percent(truth.share));
      expect(figure(words, 'Pages read'), form).toBe(thousands(truth.pages.read));
      const list = words.slice(Math.max(0, words.search(/most read\W*\n| Most read /i)));
      for (const { path, human, ai } of truth.mostRead)
        expect(countsAfter(list, path, 2), `${form}, ${path}`).toEqual([human, ai]);
    }
    for (const words of [...Object.values(forms), report.subject, report.preheader])
      expect(SLIPS.exec(words)?.[0]).toBeUndefined();
    // What a list of emails shows, and the alternative text of the picture, which a first week does not have.
    expect(`${report.subject} ${report.preheader}`).toContain(
      truth.human.views + truth.ai.views === 0
        ? 'No views were recorded'
        : `${thousands(truth.human.views)} human`,
    );
    if (truth.pages.new !== null) expect(mail.html).toContain(`: human ${thousands(truth.human.views)}, AI `);
  });
});
