import { addMinutes, subMinutes } from 'date-fns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cronProblem, lastScheduled, nextScheduled } from '../../src/config/cron.js';
import { tries } from '../fuzz.js';

const NIGHTLY = '15 2 * * *';
const last = (expression: string, zone: string, now: string) =>
  lastScheduled(expression, zone, new Date(now)).toISOString();

describe('the last scheduled moment', () => {
  it('follows the clock of the time zone, and includes the present moment', () => {
    expect(last(NIGHTLY, 'UTC', '2026-11-20T02:14:59.999Z')).toBe('2026-11-19T02:15:00.000Z');
    expect(last(NIGHTLY, 'UTC', '2026-11-20T02:15:00.000Z')).toBe('2026-11-20T02:15:00.000Z');
    expect(last(NIGHTLY, 'Asia/Kolkata', '2026-11-20T02:15:00Z')).toBe('2026-11-19T20:45:00.000Z');
    expect(last('0 4 * * 1', 'UTC', '2026-11-20T02:15:00Z')).toBe('2026-11-16T04:00:00.000Z');
  });

  const SET_BACK = ['2026-10-24T22:00Z', '2026-10-25T23:00Z'] as const;
  const SET_FORWARD = ['2026-03-28T23:00Z', '2026-03-29T22:00Z'] as const;
  it.each([
    [...SET_BACK, '*/5 * * * *', 25 * 12],
    [...SET_BACK, '30 * * * *', 25],
    [...SET_BACK, '30 1-3 * * *', 3],
    [...SET_BACK, NIGHTLY, 1],
    [...SET_FORWARD, '*/5 * * * *', 23 * 12],
    [...SET_FORWARD, '45 2 * * *', 1],
  ])("from %s to %s, '%s' passes %i times, each when it is said to", (from, to, text, times) => {
    let passed = 0;
    let next = nextScheduled(text, 'Europe/Zurich', subMinutes(from, 1));
    for (let now = new Date(from); now < new Date(to); now = addMinutes(now, 5)) {
      const last = lastScheduled(text, 'Europe/Zurich', now);
      expect(last.getTime()).toBeLessThanOrEqual(now.getTime());
      if (last > subMinutes(now, 5)) {
        expect([last, next]).toEqual([now, now]);
        passed++;
      } else expect(next.getTime()).toBeGreaterThan(now.getTime());
      next = nextScheduled(text, 'Europe/Zurich', now);
      expect(next.getTime()).toBeGreaterThan(now.getTime());
    }
    expect(passed).toBe(times);
  });
});

describe('a cron expression', () => {
  it.each(
    [
      '15 2 * * *|* * * * *|5-59/15 * * * *|0,30,45 */6 * * *|5/15 * * * *|05 02 * * *|0 4 * * 7|0 4 * * 0-7|0 4 * * 5-7',
      '0 4 * * */2|0 4 * * 1-7/2|0 4 * * THU|0 9-17 * * MON-FRI|0 4 * * sun,Wed|0 0 1 JAN,jul *|0 0 ? * 1|0 0 1,15 * ?',
      '0 0 L * *|0 0 29 2 *|0 0 */2 2 *|0 0 31 * *| 15  2 * * * |*/90 * * * *|0\t2\t*\t*\t*',
    ].flatMap((line) => line.split('|')),
  )("'%s' is accepted", (expression) => {
    expect(cronProblem(expression)).toBeUndefined();
  });

  it('with days of the month and weekdays means either, as in every cron', () => {
    const either = '0 9 1,15 * MON';
    expect(cronProblem(either)).toBeUndefined();
    expect(last(either, 'UTC', '2026-11-15T12:00:00Z')).toBe('2026-11-15T09:00:00.000Z');
    expect(last(either, 'UTC', '2026-11-16T12:00:00Z')).toBe('2026-11-16T09:00:00.000Z');
    expect(last(either, 'UTC', '2026-11-18T12:00:00Z')).toBe('2026-11-16T09:00:00.000Z');
  });

  const ODD = {
    'it does not have five fields': ['', 'nightly', '* * *', '0 0 0 * * *', '@daily'],
    'is not a minute (0-59)': ['H', '61', '*/0', '50-10', '1,1', '-5'].map((minute) => `${minute} * * * *`),
    'is not an hour (0-23)': ['0 24 * * *', '0 H(1-3) * * *', '0 22-2 * * *', '0 2, * * *'],
    'is not a day of the month (1-31)': ['0 0 L-2 * *', '0 0 15W * *', '0 0 0 * *'],
    'is not a month (1-12, JAN-DEC)': ['0 0 1 13 *', '0 0 1 January *', '0 0 1 NOV-FEB *'],
    'is not a weekday (0-7, SUN-SAT)': ['0 0 * * 8', '0 0 * * h', '0 0 * * monday', '0 0 * * SAT-SUN'],
    'no such day exists': ['0 0 31 2 *', '0 0 31 4,6 *'],
  };
  it.each(Object.entries(ODD).flatMap(([fault, odd]) => odd.map((text) => [text, fault] as const)))(
    "'%s' is refused: %s",
    (text, fault) => {
      expect(cronProblem(text)).toContain(fault);
    },
  );
});

describe('scheduled moments, compared with every minute of the clock', () => {
  const ZONES = ['UTC', 'Europe/Zurich', 'America/New_York', 'Asia/Kolkata', 'Pacific/Auckland'] as const;
  const LEAPS = ['2026-03-08', '2026-03-29', '2026-04-05', '2026-09-27', '2026-10-25', '2026-11-01'];

  /** What a clock in the zone shows: the weekday (0 is Sunday), hour and minute. */
  const clocks = new Map(
    ZONES.map((timeZone) => [
      timeZone,
      new Intl.DateTimeFormat('en-US', {
        ...{ timeZone, hourCycle: 'h23', weekday: 'short', hour: 'numeric', minute: 'numeric' },
      }),
    ]),
  );
  function shows(zone: (typeof ZONES)[number], instant: Date) {
    const shown = clocks.get(zone)?.formatToParts(instant) ?? [];
    const parts = new Map(shown.map(({ type, value }) => [type, value]));
    const weekday = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'].indexOf(parts.get('weekday') ?? '');
    return { weekday, hour: Number(parts.get('hour')), minute: Number(parts.get('minute')) };
  }

  /** Hours that no clock in these zones skips or repeats, so that there is only one right answer. */
  const hours = fc.integer({ min: 4, max: 23 });
  const minutes = fc.nat(59);
  const schedule = fc.record({
    minute: minutes,
    hour: hours,
    weekday: fc.option(fc.nat(6), { nil: undefined }),
    zone: fc.constantFrom(...ZONES),
    now: fc
      .tuple(fc.constantFrom(...LEAPS), fc.integer({ min: -24 * 60, max: 48 * 60 }), fc.nat(59_999))
      .map(([day, minute, ms]) => new Date(addMinutes(new Date(`${day}T00:00:00Z`), minute).getTime() + ms)),
  });

  it('are the last minute before and the first minute after at which a clock there shows them', () => {
    const property = fc.property(schedule, ({ minute, hour, weekday, zone, now }) => {
      const expression = `${minute} ${hour} * * ${weekday ?? '*'}`;
      const isNamed = (instant: Date) => {
        const clock = shows(zone, instant);
        const isOfWeekday = weekday === undefined || clock.weekday === weekday;
        return clock.minute === minute && clock.hour === hour && isOfWeekday;
      };
      let after = addMinutes(new Date(Math.floor(now.getTime() / 60_000) * 60_000), 1);
      while (shows(zone, after).minute !== minute) after = addMinutes(after, 1);
      // These zones change their clocks by whole hours.
      let before = addMinutes(after, -60);
      while (!isNamed(before)) before = addMinutes(before, -60);
      while (!isNamed(after)) after = addMinutes(after, 60);
      expect(lastScheduled(expression, zone, now)).toEqual(before);
      expect(nextScheduled(expression, zone, now)).toEqual(after);
    });
    fc.assert(property, tries(25));
  });
});
