import { describe, expect, test } from 'vitest';
import type { ViewCounts } from '../../src/api/schema.js';
import { addDays, type Day, day, daysIn } from '../../src/day.js';
import { readDayRecords, readSettling, recommendedSettleDays } from '../../src/export/day-records.js';
import { judgeSmaller, KEPT_FROM, isSmaller } from '../../src/export/retention.js';
import { auditHistory } from '../../src/export/verify.js';
import { readFact } from '../../src/state/platform.js';
import type { Behaviors, Deletion } from '../platform.js';
import { DAY_MS } from '../sleeping-clock.js';
import { byPath } from './moving-views.js';
import { exportHistory, type OpenExport, openExport, PROJECT, withMore } from './open-export.js';
import { expectWhole } from './stored-days.js';

describe('fewer views of a stored day on Nov 18', () => {
  const now = new Date('2026-11-18T03:00:00Z');
  const some: ViewCounts = { human: 9, ai: 1, total: 10 };
  const none: ViewCounts = { human: 0, ai: 0, total: 0 };
  const settled = { isSettled: true, wasSmaller: false };
  const again = { isSettled: true, wasSmaller: true };
  const unsettled = { isSettled: false, wasSmaller: false };

  test.each([
    // The platform keeps all days, as far as is known.
    ['2026-06-01', undefined, some, settled, 'unconfirmed'],
    ['2026-06-01', undefined, some, again, 'corrected'],
    ['2026-11-01', undefined, some, unsettled, 'corrected'],
    ['2026-06-01', undefined, none, settled, 'deleted'],
    ['2026-06-01', undefined, none, again, 'deleted'],
    ['2026-11-01', undefined, none, unsettled, 'deleted'],
    // It keeps those since Oct 19.
    ['2026-10-01', '2026-10-19', some, again, 'deleted'],
    ['2026-10-19', '2026-10-19', some, again, 'deleted'],
    ['2026-10-28', '2026-10-19', some, again, 'deleted'],
    ['2026-10-28', '2026-10-19', some, unsettled, 'deleted'],
    ['2026-10-29', '2026-10-19', some, again, 'corrected'],
    ['2026-10-29', '2026-10-19', some, settled, 'unconfirmed'],
    ['2026-10-29', '2026-10-19', none, again, 'deleted'],
    // It keeps a week, and nothing of the last days was deleted.
    ['2026-11-11', '2026-11-11', some, unsettled, 'deleted'],
    ['2026-11-12', '2026-11-11', some, unsettled, 'corrected'],
    ['2026-11-12', '2026-11-11', some, settled, 'unconfirmed'],
    ['2026-11-12', '2026-11-11', none, again, 'corrected'],
    ['2026-11-16', undefined, none, unsettled, 'corrected'],
  ] as const)('%s, kept since %s: %o, %o: %s', (at, keptFrom, platform, how, verdict) => {
    const kept = keptFrom === undefined ? undefined : day(keptFrom);
    expect(judgeSmaller({ day: day(at), platform, ...how }, kept, now)).toBe(verdict);
  });
});

/** A site on a platform that kept everything when it was loaded, and deletes old days from now on. */
async function loadedBefore(deletes: Deletion, { days = 60, settleDays = 3 } = {}) {
  const behaviors: { -readonly [Name in keyof Behaviors]: Behaviors[Name] } = {};
  const opened = await openExport({ days, behaviors, settleDays });
  await opened.run();
  behaviors.deletes = deletes;
  const first = addDays(opened.yesterday(), 1 - days);
  const night = (nights = 1) => {
    // A bit later each night.
    opened.clock.advance(nights * DAY_MS + 40 * 60_000);
    return opened.counting(() => opened.run());
  };
  return { ...opened, behaviors, first, night, keptFrom: () => keptFromOf(opened) };
}

const keptFromOf = ({ state, clock }: OpenExport) => readFact(state, PROJECT, KEPT_FROM, clock.now());

/** Every stored day is as it was, and none is reported as failed or in doubt. */
async function expectKept(opened: OpenExport, first: Day, last = opened.yesterday()): Promise<void> {
  await expectWhole(opened.history);
  for (const at of daysIn({ first, last }))
    expect(byPath([...((await opened.storedRows(at)) ?? [])]), at).toEqual(byPath(opened.original(at)));
  const states = [...(await readDayRecords(opened, PROJECT)).values()].map(({ state }) => state);
  expect(new Set(states)).toEqual(new Set(['final', 'provisional']));
}

const CASES: readonly Deletion[] = [
  { afterDays: 30, answers: 'no views' },
  { afterDays: 30, isWhole: true, answers: 'no views' },
  { afterDays: 7, answers: 'no views' },
  { afterDays: 7, isWhole: true, answers: 'no views' },
  { afterDays: 30, answers: { share: 0.4 } },
  { afterDays: 7, isWhole: true, answers: { share: 0.4 } },
  { afterDays: 30, answers: 403 },
  { afterDays: 7, answers: 403 },
  { afterDays: 7, isWhole: true, answers: 404 },
  { afterDays: 30, isWhole: true, answers: 400 },
];

test.each(CASES)('a platform that deletes views as %o makes no stored day smaller', async (deletes) => {
  const { afterDays, isWhole = false } = deletes;
  const opened = await loadedBefore(deletes, { days: 45 });
  const requests: number[] = [];
  for (let nights = 0; nights < 3; nights++) requests.push((await opened.night()).requests);
  await expectKept(opened, opened.first);
  // Of the first day, views are being deleted if it does not delete whole days.
  expect(opened.keptFrom()).toBe(addDays(opened.yesterday(), (isWhole ? 1 : 2) - afterDays));
  // Yesterday, three days that may change, and the check. The first night finds out where the platform begins.
  expect(Math.max(...requests.slice(1))).toBeLessThanOrEqual(4 + 12);
  const { forgotten, differing } = await auditHistory(opened.task, { repair: true });
  expect(differing).toEqual([]);
  expect(forgotten.length).toBeGreaterThan(10);
  await expectKept(opened, opened.first);
  const settling = await readSettling(opened.history, PROJECT, opened.clock.now());
  expect(recommendedSettleDays(settling, 3)).toBeUndefined();
});

test.each<Deletion['answers']>(['no views', 400, 403, 404, { share: 0.4 }])(
  'after two months without an export, no day of which a platform has %o is stored as a day without views',
  async (answers) => {
    const opened = await loadedBefore({ afterDays: 20, isWhole: true, answers });
    const last = opened.yesterday();
    await opened.night(60);
    await expectKept(opened, opened.first, last);
    // A share of the views is taken for all of them, if it is all that was ever seen.
    if (typeof answers === 'object') return;
    const kept = addDays(opened.yesterday(), -19);
    await expectKept(opened, kept);
    const gone = daysIn({ first: addDays(last, 1), last: addDays(kept, -1) });
    expect(new Set(await opened.statesOf(...gone))).toEqual(new Set([undefined]));
    const { result, requests } = await opened.night();
    expect(result.results.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
    expect(requests).toBeLessThanOrEqual(4 + 12);
    await expectKept(opened, kept);
  },
);

test.each<Deletion['answers']>(['no views', 404, { share: 0.4 }])(
  'a day that waits two weeks to be final is not smaller because a platform that keeps a week has %o',
  async (answers) => {
    const deletes = { afterDays: 7, isWhole: true, answers };
    const opened = await loadedBefore(deletes, { days: 30, settleDays: 14 });
    for (let nights = 0; nights < 4; nights++) await opened.night();
    await expectKept(opened, opened.first);
    const settling = await readSettling(opened.history, PROJECT, opened.clock.now());
    expect(recommendedSettleDays(settling, 14)).toBeUndefined();
  },
);

test('a plan that keeps a month instead of a year makes no stored day smaller', async () => {
  const opened = await loadedBefore({ afterDays: 400, answers: 'no views' }, { days: 420 });
  await opened.night();
  expect(opened.keptFrom()).toBeUndefined();
  await auditHistory(opened.task, { repair: true });
  expect(opened.keptFrom()).toBe(addDays(opened.yesterday(), -398));
  opened.behaviors.deletes = { afterDays: 30, answers: 'no views' };
  await opened.night();
  expect(opened.keptFrom()).toBe(addDays(opened.yesterday(), -28));
  await auditHistory(opened.task, { repair: true });
  await expectKept(opened, opened.first);
});

describe('a correction downwards', () => {
  test('is stored once it was seen on two nights; until then, the day is marked', async () => {
    const opened = await loadedBefore({ afterDays: 30, answers: 'no views' });
    const [inside, atEdge] = [addDays(opened.yesterday(), -12), addDays(opened.yesterday(), -24)];
    for (const at of [inside, atEdge]) opened.changed.set(at, withMore(opened.original(at), -1));
    await opened.night();
    const record = (await readDayRecords(opened, PROJECT)).get(inside);
    expect(record).toMatchObject({
      state: 'inconsistent',
      failure: expect.stringContaining('fewer views') as string,
    });
    expect(await opened.storedRows(inside)).toEqual(opened.original(inside));
    // Reading it again in the same night shows nothing new.
    const range = { first: inside, last: inside };
    await exportHistory({ ...opened.task, range, reload: true });
    expect(await opened.storedRows(inside)).toEqual(opened.original(inside));
    await opened.night();
    expect(await opened.storedRows(inside)).toEqual(opened.changed.get(inside));
    expect(await opened.storedRows(atEdge)).toEqual(opened.original(atEdge));
    expect(await opened.statesOf(inside, atEdge)).toEqual(['final', 'final']);
    await expectWhole(opened.history);
  });

  test('that is withdrawn the next night changes nothing', async () => {
    const opened = await openExport({ days: 20 });
    await opened.run();
    const at = addDays(opened.yesterday(), -10);
    opened.changed.set(at, withMore(opened.original(at), -1));
    opened.clock.advance(DAY_MS);
    await opened.run();
    opened.changed.delete(at);
    opened.clock.advance(DAY_MS);
    await opened.run();
    await expectKept(opened, at);
  });
});

test.each([
  [{ human: 4, ai: 5, total: 10 }, true],
  [{ human: 5, ai: 4, total: 10 }, true],
  [{ human: 5, ai: 5, total: 9 }, true],
  [{ human: 5, ai: 5, total: 10 }, false],
  [{ human: 6, ai: 5, total: 11 }, false],
])('%j is fewer views than 5 human and 5 AI of 10: %s', (platform, isFewer) => {
  expect(isSmaller(platform, { human: 5, ai: 5, total: 10 })).toBe(isFewer);
});
