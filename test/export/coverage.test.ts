import { expect, test } from 'vitest';
import { addDays } from '../../src/day.js';
import { coverageOf, readSettling, recommendedSettleDays } from '../../src/export/coverage.js';
import { readDayLedger } from '../../src/export/ledger.js';
import { DAY_MS } from '../budget/open-budget.js';
import { openExport, PROJECT, SETTLE_DAYS, withOneMore } from './open-export.js';

test('coverage names the first and last day, the gaps, and the days that are not final', async () => {
  const opened = await openExport({ days: 12 });
  const last = opened.yesterday();
  await opened.run(addDays(last, -4));
  const range = { first: addDays(last, -6), last };
  expect(coverageOf(await readDayLedger(opened.warehouse, PROJECT), range)).toEqual({
    first: addDays(last, -4),
    last,
    stored: 5,
    gaps: [addDays(last, -6), addDays(last, -5)],
    days: {
      final: [addDays(last, -4), addDays(last, -3)],
      provisional: [addDays(last, -2), addDays(last, -1), last],
      inconsistent: [],
      failed: [],
    },
  });
});

test('how long days take to settle is measured by the loads that found them changed', async () => {
  const opened = await openExport({ days: 5 });
  const settling = () => readSettling(opened.warehouse, PROJECT, opened.clock.now());
  await opened.run();
  expect(await settling()).toMatchObject({ restated_days: 0, oldest_change_days: null });
  expect(recommendedSettleDays(await settling(), SETTLE_DAYS)).toBeUndefined();

  const late = opened.yesterday();
  for (const night of [1, 2]) {
    opened.clock.advance(DAY_MS);
    opened.changed.set(
      late,
      night === 1 ? withOneMore(opened.original(late)) : withOneMore(withOneMore(opened.original(late))),
    );
    await opened.run();
  }
  expect(await settling()).toEqual({ restated_days: 1, oldest_change_days: 2, median_change_days: 1.5 });
  expect(recommendedSettleDays(await settling(), SETTLE_DAYS)).toBe(2);
  // A change in the last night that was checked: later ones may have been missed.
  expect(recommendedSettleDays(await settling(), 2)).toBe(3);
});
