import { expect, test } from 'vitest';
import { addDays } from '../../src/day.js';
import { readSettling, recentSince, recommendedSettleDays } from '../../src/export/day-records.js';
import { DAY_MS } from '../sleeping-clock.js';
import { execute, newStore } from '../open-history.js';
import { openExport, PROJECT, SETTLE_DAYS, withOneMore } from './open-export.js';

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
