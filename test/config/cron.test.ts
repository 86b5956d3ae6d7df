import { describe, expect, it } from 'vitest';
import { isCron, lastScheduled, nextScheduled } from '../../src/config/cron.js';

const NIGHTLY = '15 2 * * *';
const last = (expression: string, zone: string, now: string) =>
  lastScheduled(expression, zone, new Date(now)).toISOString();

describe('the last scheduled moment', () => {
  it('is by the clock of the time zone, and the moment itself counts', () => {
    expect(last(NIGHTLY, 'UTC', '2026-11-20T02:14:59.999Z')).toBe('2026-11-19T02:15:00.000Z');
    expect(last(NIGHTLY, 'UTC', '2026-11-20T02:15:00.000Z')).toBe('2026-11-20T02:15:00.000Z');
    expect(last(NIGHTLY, 'Asia/Kolkata', '2026-11-20T02:15:00Z')).toBe('2026-11-19T20:45:00.000Z');
    expect(last('0 4 * * 1', 'UTC', '2026-11-20T02:15:00Z')).toBe('2026-11-16T04:00:00.000Z');
  });

  it.each(['Europe/Zurich', 'America/New_York', 'Australia/Lord_Howe', 'Pacific/Auckland'])(
    'comes once a night for a whole year of daylight saving in %s',
    (zone) => {
      const moments = new Set<string>();
      const start = Date.parse('2026-01-01T00:00:00Z');
      for (let hour = 0; hour < 365 * 24; hour++)
        moments.add(last(NIGHTLY, zone, new Date(start + hour * 3_600_000).toISOString()));
      const times = [...moments].map((text) => Date.parse(text));
      const gapsHours = times.slice(1).map((time, index) => (time - (times[index] ?? 0)) / 3_600_000);
      expect(times.length).toBeGreaterThanOrEqual(365);
      expect(Math.min(...gapsHours)).toBeGreaterThanOrEqual(22.5);
      expect(Math.max(...gapsHours)).toBeLessThanOrEqual(26);
    },
  );

  it('has the moment itself behind it, never as the next', () => {
    const next = nextScheduled(NIGHTLY, 'UTC', new Date('2026-11-20T02:15:00Z'));
    expect(next.toISOString()).toBe('2026-11-21T02:15:00.000Z');
  });
});

describe('a cron expression', () => {
  it('has five fields and names a moment that exists', () => {
    for (const good of [NIGHTLY, '*/5 * * * *', '0 4 * * 1', '0 9-17 1,15 * MON-FRI', '0 0 29 2 *'])
      expect(isCron(good), good).toBe(true);
    for (const bad of ['', 'nightly', '* * *', '0 0 0 * * *', '61 * * * *', '0 0 31 2 *', '0 0 * * 8'])
      expect(isCron(bad), bad).toBe(false);
  });
});
