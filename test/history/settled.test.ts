import { describe, expect, it } from 'vitest';
import { day } from '../../src/day.js';
import { isSettled } from '../../src/history/plan.js';

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
