import { describe, expect, it } from 'vitest';
import { addDays, type Day, day, startOfDay } from '../../src/day.js';
import { createTraffic } from '../../src/sandbox/traffic/traffic.js';
import { openSandbox } from './open-sandbox.js';

const firstDay = day('2026-05-18');
const LATER = new Date('2032-01-01T00:00:00Z');
const site = (seed = 1, pages = 450) => {
  const traffic = createTraffic({ seed, firstDay, pages });
  return {
    traffic,
    from: (from: Day, days: number) => traffic.viewsIn({ from, to: addDays(from, days) }, LATER),
    week: (week: number) =>
      traffic.viewsIn({ from: addDays(firstDay, 7 * week), to: addDays(firstDay, 7 * week + 7) }, LATER),
  };
};
const viewsOf = (page: string, week: number) =>
  site()
    .week(week)
    .rows.find(({ path }) => path === page);
const share = ({ totals }: { totals: { ai: number; total: number } }) => totals.ai / totals.total;

describe('the traffic of a sandbox', () => {
  it('is decided by the seed, and not by earlier requests', () => {
    const walked = site();
    for (let week = 0; week < 30; week += 1) walked.week(week);
    expect(walked.week(3)).toEqual(site().week(3));
    expect(site(2).week(3)).not.toEqual(site().week(3));
  });

  it('lets AI overtake people in the last weeks of the first half year, and levels off', () => {
    const { week } = site();
    expect(share(week(0))).toBeLessThan(0.38);
    expect(share(week(18))).toBeLessThan(0.5);
    expect(share(week(25))).toBeGreaterThan(0.5);
    // Years later, the site has the same order of magnitude.
    expect(share(week(250))).toBeGreaterThan(0.5);
    expect(share(week(250))).toBeLessThan(0.62);
    expect(week(250).totals.total).toBeLessThan(1.4 * week(25).totals.total);
    expect(week(250).rows.length).toBeLessThan(1000);
  });

  it('falls on weekends for people, and much less for AI', () => {
    const { from } = site();
    const monday = addDays(firstDay, 70);
    const drop = (kind: 'human' | 'ai') =>
      from(addDays(monday, 5), 2).totals[kind] / 2 / (from(monday, 5).totals[kind] / 5);
    expect(drop('human')).toBeLessThan(0.7);
    expect(drop('ai')).toBeGreaterThan(0.78);
    expect(drop('ai')).toBeLessThan(1);
  });

  it('has about 450 pages, part of which are viewed each day: two requests of 250 rows', () => {
    const { from } = site();
    const { rows } = from(firstDay, 182);
    expect(rows.length).toBeGreaterThan(430);
    expect(rows.length).toBeLessThan(470);
    const daily = Array.from({ length: 182 }, (_, age) => from(addDays(firstDay, age), 1).rows.length);
    expect(daily.filter((count) => count > 250).length).toBeGreaterThan(150);
    expect(Math.max(...daily)).toBeLessThan(420);
  });

  it('has pages that AI reads and people do not', () => {
    const row = viewsOf('/llms-full.txt', 20);
    expect(row?.ai).toBeGreaterThan(100);
    expect(row?.ai).toBeGreaterThan(20 * (row?.human ?? Infinity));
  });

  it('gets new pages, including a changelog entry every two weeks', () => {
    const { from } = site();
    const known = new Set(from(firstDay, 91).rows.map(({ path }) => path));
    const fresh = from(addDays(firstDay, 91), 91).rows.filter(({ path }) => !known.has(path));
    const entries = fresh.filter(({ path }) => /^\/changelog\/2026-\d\d-\d\d$/.test(path));
    expect(entries.length).toBeGreaterThanOrEqual(6);
    expect(fresh.length).toBeGreaterThan(15);
  });

  it('has bursts: in most weeks, some page is viewed at least 50% more than the week before', () => {
    const { week } = site();
    const bursts = Array.from({ length: 25 }, (_, index) => {
      const before = new Map(week(index).rows.map(({ path, total }) => [path, total]));
      return week(index + 1).rows.filter(
        ({ path, total }) => total > 50 && total > 1.5 * (before.get(path) ?? total),
      );
    });
    expect(bursts.filter((pages) => pages.length > 0).length).toBeGreaterThan(12);
  });

  it('serves a small site and a large one', () => {
    expect(site(1, 1).week(0).rows.length).toBeGreaterThanOrEqual(1);
    expect(site(1, 5000).week(20).rows.length).toBeGreaterThan(2000);
  });
});

describe('late data', () => {
  const asked = day('2026-11-10');
  const at = (hoursAfterEnd: number) =>
    new Date(startOfDay(addDays(asked, 1)).getTime() + hoursAfterEnd * 3_600_000);
  const known = (hoursAfterEnd: number) =>
    site().traffic.viewsIn({ from: asked, to: addDays(asked, 1) }, at(hoursAfterEnd));

  it('settles over two days: about 97%, 99.5%, and then all of it', () => {
    const final = known(48).totals.total;
    expect(known(0).totals.total / final).toBeCloseTo(0.97, 2);
    expect(known(24).totals.total / final).toBeCloseTo(0.995, 2);
    expect(known(47).totals.total).toBeLessThanOrEqual(final);
    expect(known(2).totals.total).toBeLessThan(final);
    for (const hours of [49, 24 * 30, 24 * 900]) expect(known(hours)).toEqual(known(48));
  });

  it('only ever adds: no page loses a view', () => {
    let before = known(-20);
    for (let hours = -19; hours <= 49; hours += 4) {
      const now = known(hours);
      const counts = new Map(now.rows.map((row) => [row.path, row]));
      for (const row of before.rows) {
        expect(counts.get(row.path)?.human).toBeGreaterThanOrEqual(row.human);
        expect(counts.get(row.path)?.ai).toBeGreaterThanOrEqual(row.ai);
      }
      before = now;
    }
  });

  it('is the same for every request within the hour, and moves on with the clock', async () => {
    const { clock, views } = await openSandbox();
    const yesterday = 'dateFrom=2026-11-17&dateTo=2026-11-18';
    const first = await views(yesterday);
    clock.advance(3599);
    expect(await views(yesterday)).toEqual(first);
    clock.advance(3 * 86_400);
    expect((await views(yesterday)).totals.total).toBeGreaterThan(first.totals.total);
  });
});
