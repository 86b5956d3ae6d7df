import { describe, expect, test } from 'vitest';
import { addDays, type Day, daysIn, lastEndedDay } from '../../src/day.js';
import { requestsToFindFirstDay } from '../../src/export/range.js';
import { needsPerson } from '../../src/export/plan.js';
import { readFutureRecords } from '../../src/steps/history.js';
import { readDayRecords } from '../../src/export/day-records.js';
import { AdditivityError } from '../../src/export/probe.js';
import { KEPT_FROM } from '../../src/export/retention.js';
import { readPageSize } from '../../src/export/paging.js';
import { readFact } from '../../src/state/platform.js';
import { byPath, row } from './moving-views.js';
import { DAY_MS } from '../sleeping-clock.js';
import { type Behaviors, rowsOf } from '../platform.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { exportHistory, openExport, PROJECT, withMore } from './open-export.js';
import { expectWhole } from './stored-days.js';

const ROWS = 900;
const DAYS = 12;

/** The requests of a first export for the first day of the history. */
const SEARCH = requestsToFindFirstDay(lastEndedDay(NOW));

/** A site of twelve days of four pages, on a platform that behaves like this, after some nights. */
async function after(nights: number, behaviors: Behaviors, { pages = ROWS, days = DAYS } = {}) {
  const opened = await openExport({ days, pages, behaviors });
  const first = addDays(opened.yesterday(), 1 - days);
  const perNight: number[] = [];
  for (let night = 0; night < nights; night++) {
    if (night > 0) opened.clock.advance(DAY_MS);
    perNight.push((await opened.counting(() => opened.run())).requests);
  }
  return { ...opened, first, perNight };
}

async function expectRight(
  { storedRows, original, history, statesOf }: Awaited<ReturnType<typeof after>>,
  days: Day[],
) {
  await expectWhole(history);
  for (const at of days)
    expect(byPath([...((await storedRows(at)) ?? [])]), at).toEqual(byPath(original(at)));
  expect(new Set(await statesOf(...days))).not.toContain('inconsistent');
}

describe('a platform that', () => {
  const least = (size: number) => DAYS * Math.ceil(ROWS / size);

  test.each<[name: string, behaviors: Behaviors, pageSize: number, atMost: number]>([
    ['caps its pages silently at 100', { silentCap: 100 }, 100, 1.1],
    ['caps its pages silently at 50', { silentCap: 50 }, 50, 1.1],
    // Each of six connections is refused once before a second day has confirmed it.
    ['refuses limits above 100', { largestLimit: 100 }, 100, 1.15],
    ['caps its pages at 50 and says that none follow', { silentCap: 50, neverMore: true }, 50, 1.1],
    ['always says that more follow', { alwaysMore: true }, 250, 1.2],
    ['orders equal rows at random', { randomTies: true }, 250, 1.5],
  ])('%s is read right, with few requests', async (_, behaviors, size, atMost) => {
    const opened = await after(2, behaviors);
    await expectRight(opened, daysIn({ first: opened.first, last: opened.yesterday() }));
    expect(readPageSize(opened.state, PROJECT, opened.clock.now()).rows).toBe(size);
    expect(opened.perNight[0]).toBeLessThanOrEqual(atMost * least(size) + SEARCH);
    // Yesterday, a first page each of two days, the day that becomes final, and the check.
    const ofDay = least(size) / DAYS;
    expect(opened.perNight[1]).toBeLessThanOrEqual(2 * (2 * ofDay + 2 + 1));
  });

  test('keeps ten days is loaded from where it begins, and audited; a key that may read nothing is told apart', async () => {
    const opened = await after(2, { keepsDays: 10 }, { pages: 30 });
    const kept = addDays(opened.yesterday(), -10);
    await expectRight(opened, daysIn({ first: kept, last: opened.yesterday() }));
    // The first day of the first night is gone in the second.
    expect(readFact(opened.state, PROJECT, KEPT_FROM, opened.clock.now())).toBe(addDays(kept, 1));
    expect((await opened.statesOf(opened.first))[0]).toBeUndefined();
    const long = new Date(opened.clock.now().getTime() - 9 * DAY_MS);
    const future = readFutureRecords(opened.state, long);
    expect(future.map(({ kind }) => kind)).toContain('fact about the platform');
    // Its sums cannot be checked on days that no longer change.
    const brief = await after(1, { keepsDays: 2 }, { pages: 3 });
    expect(await brief.statesOf(brief.yesterday())).toEqual(['provisional']);
    const refused = openExport({ days: DAYS, behaviors: { keepsDays: -1 } });
    await expect((await refused).run()).rejects.toThrow(/403.+keeps -1 days/);
  });

  test('keeps ten days, although history.start is earlier: older days are skipped, not failed', async () => {
    const opened = await openExport({ days: 60, pages: 3, behaviors: { keepsDays: 10 }, concurrency: 2 });
    const first = addDays(opened.yesterday(), -59);
    const { result, requests } = await opened.counting(() => opened.run(undefined, { start: first }));
    expect(result.plan.range.note).toMatch(/refuses days before .+, so the history begins there/);
    expect(result.results.filter(({ outcome }) => outcome !== 'added')).toEqual([]);
    // Ten days, refused ones in progress with a request for another day each, and a few to find out.
    expect(requests).toBeLessThan(32);
    // After three weeks without an export, the platform has none of the final days.
    for (const days of [1, 20]) {
      opened.clock.advance(days * DAY_MS);
      const { results, stopped } = await opened.run(undefined, { start: first });
      expect(results.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
      expect(stopped).toBeUndefined();
    }
  });

  test.each<[name: string, behaviors: Behaviors, pages: number]>([
    ['of few rows', { pageTotals: true }, 30],
    ['of many rows', { pageTotals: true }, ROWS],
    ['of many rows, a hundred at once', { pageTotals: true, silentCap: 100 }, 300],
    ['of many rows, and says that more follow the last one', { pageTotals: true, alwaysMore: true }, 300],
  ])('gives the totals of each page is read to the end, and named: days %s', async (_, behaviors, pages) => {
    const opened = await openExport({ days: DAYS, pages, behaviors });
    const first = await opened.run();
    opened.clock.advance(DAY_MS);
    const second = await opened.counting(() => opened.run());
    expect([first.stopped, second.result.stopped]).toEqual([undefined, undefined]);
    expect([first.disagreement, second.result.disagreement].filter((one) => one !== undefined)).toEqual([
      'page totals',
    ]);
    const days = daysIn({ first: addDays(opened.yesterday(), -DAYS), last: opened.yesterday() });
    await expectRight({ ...opened, first: opened.yesterday(), perNight: [] }, days);
    opened.clock.advance(DAY_MS);
    const { result, requests } = await opened.counting(() => opened.run());
    expect(result).toMatchObject({
      check: { days: 0, differing: [], forgotten: [] },
      disagreement: undefined,
    });
    // Each day that may still change is read whole, and perhaps an empty page after it.
    expect(requests).toBeLessThanOrEqual(4 * (Math.ceil(pages / (behaviors.silentCap ?? 250)) + 1));
    expect(readFact(opened.state, PROJECT, KEPT_FROM, opened.clock.now())).toBeUndefined();
  });

  test('says that more rows follow the last one is named once', async () => {
    const opened = await openExport({ days: 3, behaviors: { alwaysMore: true } });
    expect((await opened.run()).disagreement).toBe('always more');
    opened.clock.advance(DAY_MS);
    expect((await opened.run()).disagreement).toBeUndefined();
    expect(new Set(await opened.statesOf(opened.yesterday()))).toEqual(new Set(['provisional']));
  });

  test('counts the day in dateTo as well is refused by name before a day is stored', async () => {
    const behaviors = { inclusive: false };
    const opened = await after(1, behaviors);
    behaviors.inclusive = true;
    opened.clock.advance(DAY_MS);
    for (let run = 0; run < 2; run++) {
      const { stopped, results } = await opened.run();
      expect(String(stopped)).toContain('cannot be trusted');
      expect(results).toEqual([]);
    }
    const known = await readDayRecords(opened, PROJECT);
    expect([...known.values()].filter(({ state }) => state === 'failed')).toEqual([]);
    // A site that begins shows it by its first days.
    const brief = await openExport({ days: 2, behaviors });
    expect(await brief.run()).toMatchObject({ results: [], stopped: expect.any(AdditivityError) as unknown });
    const inclusive = await openExport({ days: DAYS, behaviors: { inclusive: true } });
    const { stopped, results } = await inclusive.run();
    expect(results).toEqual([]);
    expect(String(stopped)).toMatch(
      /counts the day in dateTo as well.+have \d+ and \d+ views, but together \d+/,
    );
  });

  test('lists no more than so many rows has the others, marked with its words, and teaches nothing', async () => {
    const opened = await openExport({ days: DAYS, pages: ROWS, behaviors: { mostRows: 1_000 } });
    const long = addDays(opened.yesterday(), -4);
    opened.changed.set(long, rowsOf(long, 1_900));
    const perNight: number[] = [];
    for (let night = 0; night < 8; night++) {
      if (night > 0) opened.clock.advance(DAY_MS);
      perNight.push((await opened.counting(() => opened.run())).requests);
    }
    const at = opened.clock.now();
    expect(readPageSize(opened.state, PROJECT, at).rows).toBe(250);
    const record = (await readDayRecords(opened, PROJECT)).get(long);
    expect(record).toMatchObject({
      state: 'inconsistent',
      pages: 1_000,
      failure:
        'the platform refused to list rows beyond the first 1,000 (400: “limit + offset must be less than 1000”); it will be read again later',
    });
    await expectWhole(opened.history);
    // Of a night, yesterday and the day that becomes final have four pages, two days one, and the check takes two. For three nights, the long day has four as
    // well, and up to three refusals at the same time.
    expect(Math.max(...perNight.slice(1, 3))).toBeLessThanOrEqual(12 + 4 + 3);
    expect(perNight.slice(3)).toEqual([12, 12, 12, 12, 12]);
  });

  test('refuses a limit for a single day teaches nothing for others', async () => {
    const behaviors = { refusesLimitOn: '' as Day };
    const opened = await openExport({ days: DAYS, pages: ROWS, behaviors });
    behaviors.refusesLimitOn = addDays(opened.yesterday(), -4);
    const { requests } = await opened.counting(() => opened.run());
    expect(readPageSize(opened.state, PROJECT, opened.clock.now()).rows).toBe(250);
    // Nine pages of a hundred rows of that day, after one refusal.
    expect(requests).toBeLessThanOrEqual(DAYS * 4 + 6 + SEARCH);
    await expectRight({ ...opened, first: opened.yesterday(), perNight: [] }, [behaviors.refusesLimitOn]);
  });

  test('does all of it at once is read right or marked within two nights, and nothing stalls', async () => {
    const all = { silentCap: 50, largestLimit: 100, alwaysMore: true, randomTies: true, keepsDays: 10 };
    const opened = await after(3, all, { pages: 300 });
    const kept = daysIn({ first: addDays(opened.yesterday(), -11), last: opened.yesterday() });
    await expectRight(opened, kept);
    // Ten days of six pages each, at most twice, with everything that it takes to adapt.
    expect(opened.perNight[0]).toBeLessThanOrEqual(2 * 10 * 6);
    expect(Math.max(...opened.perNight.slice(1))).toBeLessThanOrEqual(2 * (2 * 6 + 2 + 1));
  });
});

test('a long tail of equal rows in random order is right after a night, in few requests, and pages stay large', async () => {
  const behaviors = { randomTies: true, silentCap: 100, alwaysMore: true };
  const opened = await openExport({ days: 4, pages: 600, behaviors });
  const withTail = (at: Day) =>
    opened.original(at).map(({ path }, index) => row(path, Math.max(1, 300 - index)));
  const days = daysIn({ first: addDays(opened.yesterday(), -3), last: opened.yesterday() });
  for (const at of days) opened.changed.set(at, withTail(at));
  const { requests } = await opened.counting(() => opened.run());
  // Of the 301 equal rows, three requests for 100 of them show about two thirds, and each further one a third of the rest.
  expect(requests).toBeLessThan(4 * 35);
  opened.clock.advance(DAY_MS);
  opened.changed.set(opened.yesterday(), withTail(opened.yesterday()));
  await opened.run();
  for (const at of days)
    expect(byPath([...((await opened.storedRows(at)) ?? [])]), at).toEqual(byPath(withTail(at)));
  expect(readPageSize(opened.state, PROJECT, opened.clock.now()).rows).toBe(100);
});

test('two pages that swapped a view after the first response are found when the day becomes final', async () => {
  const opened = await openExport({ days: 8, pages: 300 });
  const at = opened.yesterday();
  await opened.run();
  const rows = opened.original(at);
  const swapped = [
    ...rows.slice(0, 298),
    ...withMore(rows.slice(298, 299), 1),
    ...withMore(rows.slice(299), -1),
  ];
  opened.changed.set(at, swapped);
  for (let night = 0; night < 4; night++) {
    opened.clock.advance(DAY_MS);
    await opened.run();
  }
  expect(byPath([...((await opened.storedRows(at)) ?? [])])).toEqual(byPath(swapped));
  expect(await opened.statesOf(at)).toEqual(['final']);
});

test('a change is found the next night if its day ended 35 days ago, and not if it is older', async () => {
  const opened = await openExport({ days: 40 });
  await opened.run();
  opened.clock.advance(DAY_MS);
  const [last, before] = [addDays(opened.yesterday(), -35), addDays(opened.yesterday(), -36)];
  for (const at of [last, before]) opened.changed.set(at, withMore(opened.original(at), 1));
  await opened.run();
  expect(await opened.storedRows(last)).toEqual(opened.changed.get(last));
  expect(await opened.storedRows(before)).toEqual(opened.original(before));
});

test('days are compared with the platform once a day, and not on the day on which they were read', async () => {
  const opened = await openExport({ days: 10 });
  for (const sinceLastNight of [0, DAY_MS]) {
    opened.clock.advance(sinceLastNight);
    await opened.run();
    opened.clock.advance(DAY_MS / 24);
    const before = opened.platform.views.length;
    await opened.run();
    // Only the days that may still change are read again.
    const asked = opened.platform.views.slice(before).map(({ from }) => from);
    const recent = [-2, -1, 0].map((age) => addDays(opened.yesterday(), age));
    expect(asked.sort()).toEqual(recent);
  }
});

describe('empty stretches', () => {
  test('of a backfill cost few requests', async () => {
    const opened = await openExport({ days: 1_000, pages: 1 });
    const first = addDays(opened.yesterday(), -999);
    for (const at of daysIn({ first: addDays(first, 80), last: addDays(first, 919) }))
      opened.changed.set(at, []);
    const { requests } = await opened.counting(() => opened.run());
    expect(await opened.statesOf(addDays(first, 500), first)).toEqual(['final', 'final']);
    // Days that are under way when a stretch is found are still read: more of them on a busy machine.
    expect(requests).toBeLessThan(2.25 * 160);
  });

  test('are skipped after four days that were read', async () => {
    const opened = await openExport({ days: 60, pages: 1, concurrency: 1 });
    const empty = daysIn({ first: addDays(opened.yesterday(), -39), last: addDays(opened.yesterday(), -20) });
    for (const at of empty) opened.changed.set(at, []);
    await opened.run();
    const walks = opened.platform.views.filter(({ limit }) => limit > 1);
    // Every eighth day was read before the others.
    expect(walks.filter(({ from }) => empty.slice(-7).includes(from))).toHaveLength(4);
  });

  test('after a stray first view cost few requests', async () => {
    const opened = await openExport({ days: 60, pages: 1 });
    const stray = addDays(opened.yesterday(), -3_700);
    opened.changed.set(stray, [row('/stray', 1)]);
    const { requests } = await opened.counting(() => opened.run());
    expect(await opened.statesOf(stray, addDays(stray, 1))).toEqual(['final', 'final']);
    expect(requests).toBeLessThan(60 + 50);
  });
});

test('one row that cannot be read is named, and its views belong to no page; all else is stored', async () => {
  const opened = await openExport({ days: 4, pages: 300 });
  const at = addDays(opened.yesterday(), -3);
  const rows = opened.original(at);
  const bad = { path: null, human: 40, ai: 2, total: 42 } as unknown as (typeof rows)[number];
  opened.changed.set(at, rows.toSpliced(260, 0, bad));
  await opened.run();
  expect(await opened.storedRows(at)).toEqual(rows);
  expect((await opened.history.storedDays(PROJECT)).get(at)).toMatchObject({
    state: 'inconsistent',
    unattributed_human: 40,
    unattributed_ai: 2,
    problem:
      'the platform sent row 261 (path: Invalid input: expected string, received null), which cannot be read; it will be read again later',
  });
  expect(new Set(await opened.statesOf(addDays(at, 1), opened.yesterday()))).toEqual(
    new Set(['provisional']),
  );
  await expectWhole(opened.history);
  opened.changed.set(at, rows.toSpliced(260, 0, { ...bad, path: '/repaired' }));
  opened.clock.advance(DAY_MS);
  await opened.run();
  expect(await opened.statesOf(at)).toEqual(['final']);
});

test('a day that never adds up needs a person after three nights, and then costs one walk a week', async () => {
  const opened = await openExport({ days: 6, pages: 3 });
  const at = addDays(opened.yesterday(), -5);
  opened.hidden.set(at, 1_000);
  const asked: number[] = [];
  for (let night = 0; night < 12; night++) {
    const before = opened.platform.views.length;
    // A view of no page is no reason to wait for a day, even before it settles.
    opened.hidden.set(opened.yesterday(), 1);
    await opened.run();
    asked.push(opened.platform.views.slice(before).filter(({ from }) => from === at).length);
    opened.clock.advance(DAY_MS);
  }
  expect(asked.map((requests) => requests > 0)).toEqual(asked.map((_, night) => night < 3 || night === 9));
  const records = await readDayRecords(opened, PROJECT);
  expect([...records.values()].filter(needsPerson)).toMatchObject([{ day: at }]);
  expect(records.get(at)?.failure).toContain('differ by');
});

test('a day that does not add up is read the next night, however often a person reads it again before', async () => {
  const opened = await openExport({ days: 6, pages: 3 });
  const at = addDays(opened.yesterday(), -5);
  opened.hidden.set(at, 1_000);
  await opened.run();
  const range = { first: at, last: at };
  for (let time = 0; time < 3; time++) await exportHistory({ ...opened.task, range, reload: true });
  const records = await readDayRecords(opened, PROJECT);
  expect([...records.values()].filter(needsPerson)).toEqual([]);
  opened.clock.advance(DAY_MS);
  opened.hidden.delete(at);
  await opened.run();
  expect(await opened.statesOf(at)).toEqual(['final']);
});
