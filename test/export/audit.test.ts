import { describe, expect, test } from 'vitest';
import { addDays, type Day } from '../../src/day.js';
import { auditHistory } from '../../src/export/verify.js';
import { execute, newStore, rowsOf } from '../open-history.js';
import {
  exportHistory,
  type OpenExport,
  openExport,
  PROJECT,
  SETTLE_DAYS,
  withOneMore,
} from './open-export.js';
import { readSettling, recentSince, recommendedSettleDays } from '../../src/export/day-records.js';
import { DAY_MS } from '../sleeping-clock.js';

const DAYS = 40;

/** A settled history of forty days, all loaded. */
async function settled() {
  const opened = await openExport({ days: DAYS });
  await opened.run();
  const dayAt = (index: number): Day => addDays(opened.yesterday(), index + 1 - DAYS);
  const audit = ({ repair = false } = {}) => opened.counting(() => auditHistory(opened.task, { repair }));
  return { ...opened, dayAt, audit };
}

const restatements = ({ history }: OpenExport) =>
  rowsOf(
    history,
    'SELECT day, human_after - human_before AS more, pages_changed FROM restatements ORDER BY day',
  );

describe('an audit', () => {
  test('names the day that differs; with repair, loads it again and records by how much it changed', async () => {
    const opened = await settled();
    const at = opened.dayAt(17);
    opened.changed.set(at, withOneMore(opened.original(at)));
    expect((await opened.audit()).result).toMatchObject({ differing: [at] });
    const { result, requests } = await opened.audit({ repair: true });
    expect(requests).toBeLessThanOrEqual(1 + Math.ceil(Math.log2(DAYS)) + 1);
    expect(result.repaired?.results).toMatchObject([{ day: at, outcome: 'restated', state: 'final' }]);
    expect(await restatements(opened)).toEqual([{ day: at, more: 1, pages_changed: 1 }]);
    expect(await opened.audit()).toEqual({
      result: { days: DAYS - 3, differing: [], forgotten: [], refused: [] },
      requests: 1,
    });
  });

  test('never empties a day that the platform forgot', async () => {
    const opened = await settled();
    const at = opened.dayAt(0);
    opened.changed.set(at, []);
    const { result } = await opened.audit({ repair: true });
    expect(result).toMatchObject({ differing: [], forgotten: [at] });
    expect(result.repaired?.results).toEqual([]);
    expect(await opened.storedRows(at)).toEqual(expect.arrayContaining(opened.original(at)));
    expect(await opened.statesOf(at)).toEqual(['final']);
  });

  test('misses a change that keeps every sum, as documented; a reload of the day finds it', async () => {
    const opened = await settled();
    const at = opened.dayAt(20);
    const [first, second, third] = opened.original(at);
    if (!first || !second || !third) throw new Error('three pages expected');
    opened.changed.set(at, [{ ...first, path: second.path }, { ...second, path: first.path }, third]);
    expect((await opened.audit()).result.differing).toEqual([]);
    const range = { first: opened.dayAt(19), last: opened.dayAt(21) };
    const reload = () => opened.counting(() => exportHistory({ ...opened.task, range, reload: true }));
    const { result, requests } = await reload();
    expect(result.results.map(({ day, outcome }) => [day, outcome])).toEqual(
      expect.arrayContaining([
        [range.first, 'unchanged'],
        [at, 'restated'],
        [range.last, 'unchanged'],
      ]),
    );
    expect(requests).toBe(3);
    expect(result.plan.days.map(({ day }) => day)).toEqual([range.last, at, range.first]);
    expect(await opened.statesOf(at)).toEqual(['final']);
    expect(await opened.storedRows(at)).toEqual(expect.arrayContaining([{ ...first, path: second.path }]));
    expect((await reload()).result.results.map(({ outcome }) => outcome)).toEqual(Array(3).fill('unchanged'));
  });
});

test('only changes that the nightly check would find the next night say how late views come', async () => {
  const history = await newStore();
  const now = new Date('2026-11-18T03:00:00Z');
  const oldest = async () => (await readSettling(history, PROJECT, now)).oldest_change_days;
  const [last, before] = [recentSince(now), addDays(recentSince(now), -1)];
  for (const [day, age] of [
    [before, null],
    [last, 35],
  ] as const) {
    const restatement =
      'INSERT INTO restatements VALUES ($project, $day::DATE, $now, $now::TIMESTAMP - INTERVAL 24 HOUR, 1, 2, 0, 0, 1, 2, 1)';
    await execute(history, restatement, { project: PROJECT, day, now });
    expect(await oldest()).toBe(age);
  }
});

test('how long days take to settle is measured by the loads that found them changed', async () => {
  const opened = await openExport({ days: 5 });
  const settling = () => readSettling(opened.history, PROJECT, opened.clock.now());
  const { run } = opened;
  await run();
  expect(await settling()).toMatchObject({ restated_days: 0, oldest_change_days: null });
  expect(recommendedSettleDays(await settling(), SETTLE_DAYS)).toBeUndefined();

  const late = opened.yesterday();
  for (const night of [1, 2]) {
    opened.clock.advance(DAY_MS);
    const more = withOneMore(opened.original(late));
    opened.changed.set(late, night === 1 ? more : withOneMore(more));
    await run();
  }
  expect(await settling()).toEqual({ restated_days: 1, oldest_change_days: 2, median_change_days: 1.5 });
  // Long enough: a shorter one would save little.
  expect(recommendedSettleDays(await settling(), SETTLE_DAYS)).toBeUndefined();
  const laterOn = new Date(opened.clock.now().getTime() + 90 * DAY_MS);
  expect(await readSettling(opened.history, PROJECT, laterOn)).toMatchObject({ restated_days: 0 });
  // What is found after two nights without an export came at an unknown time.
  opened.clock.advance(2 * DAY_MS);
  const early = addDays(late, 1);
  opened.changed.set(early, withOneMore(opened.original(early)));
  await run();
  expect(await settling()).toEqual({ restated_days: 2, oldest_change_days: 2, median_change_days: 1.5 });
  // A change in the last night that was checked: later ones may have been missed.
  expect(recommendedSettleDays(await settling(), 2)).toBe(3);
});
