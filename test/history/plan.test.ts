import { describe, expect, it } from 'vitest';
import { addDays, day, type Day } from '../../src/day.js';
import { isSettled, planExport, type DayState } from '../../src/history/plan.js';

const DAY = day('2026-11-10');

describe('a day has settled', () => {
  it.each([
    [0, '2026-11-10T23:59:59.999Z', false],
    [0, '2026-11-11T00:00:00Z', true],
    [1, '2026-11-11T23:59:59.999Z', false],
    [1, '2026-11-12T00:00:00Z', true],
    [3, '2026-11-13T23:59:59.999Z', false],
    [3, '2026-11-14T00:00:00Z', true],
    [3, '2027-11-14T00:00:00Z', true],
  ])('%i whole days after it ended: at %s it is %s', (settleDays, now, settled) => {
    expect(isSettled(DAY, new Date(now), settleDays)).toBe(settled);
  });
});

describe('the days to load', () => {
  const plan = (states: Record<string, DayState>, first: Day, last: Day) =>
    planExport(new Map(Object.entries(states).map(([text, state]) => [day(text), state])), { first, last });

  it('are the missing, failed, inconsistent and provisional ones; a final one never', () => {
    const states: Record<string, DayState> = {
      '2026-11-01': 'final',
      '2026-11-02': 'failed',
      '2026-11-04': 'inconsistent',
      '2026-11-05': 'provisional',
      '2026-11-06': 'final',
    };
    const { days, alreadyFinal } = plan(states, day('2026-11-01'), day('2026-11-06'));
    expect([...days].sort()).toEqual(['2026-11-02', '2026-11-03', '2026-11-04', '2026-11-05']);
    expect(alreadyFinal).toBe(2);
  });

  it('come newest first, what changed lately before the holes of a backfill', () => {
    const states: Record<string, DayState> = { '2026-11-03': 'failed', '2026-11-08': 'provisional' };
    const { days } = plan(states, day('2026-11-01'), DAY);
    expect(days).toEqual(
      ['10', '08', '03', '09', '07', '06', '05', '04', '02', '01'].map((date) => `2026-11-${date}`),
    );
  });

  it('are none outside the range, and none of an empty one', () => {
    expect(plan({ '2026-11-01': 'failed' }, DAY, DAY).days).toEqual([DAY]);
    expect(plan({}, DAY, addDays(DAY, -1)).days).toEqual([]);
  });
});
