import { describe, expect, it, vi } from 'vitest';
import fc from 'fast-check';
import { PlatformClock, skewOf } from '../../src/api/clock.js';
import { parseRetryAfter } from '../../src/api/retry-after.js';
import type { ResponseHeaders } from '../../src/network.js';
import { clientOf, NO_ROWS, PAGE } from './open-client.js';
import { reply } from '../serve.js';
import { tries } from '../fuzz.js';

const HERE = new Date('2026-11-18T05:00:00.900Z');
const MINUTE_MS = 60_000;

const clockAt = (
  ask: () => Promise<ResponseHeaders> = () => Promise.resolve({}),
  now: () => Date = () => HERE,
) => {
  const said: string[] = [];
  let asked = 0;
  const clock = new PlatformClock({
    baseUrl: 'https://platform.example.com',
    now,
    request: () => {
      asked++;
      return ask();
    },
    onSkew: (words) => said.push(words),
  });
  return { clock, said, asked: () => asked };
};

it.each([
  ['Wed, 18 Nov 2026 05:00:00 GMT', 0],
  ['Wed, 18 Nov 2026 04:59:00 GMT', -MINUTE_MS],
  ['Wed, 18 Nov 2026 05:01:00 GMT', MINUTE_MS],
])('reads %s as %s ms ahead', (date, skewMs) => {
  expect(skewOf({ date }, HERE)).toBe(skewMs);
});

it.each([
  ['no Date', {}],
  ['an unreadable one', { date: 'yesterday' }],
  ['an empty one', { date: '' }],
  ['a time without a zone', { date: '2026-11-18T05:00:00' }],
  ['one from a cache', { date: 'Wed, 18 Nov 2026 01:00:00 GMT', age: '14400' }],
])('judges nothing by %s', (_, headers) => {
  const { clock, said } = clockAt();
  clock.observe(headers);
  expect(skewOf(headers, HERE)).toBeUndefined();
  expect([clock.earlier(), clock.isFarOff(), said]).toEqual([HERE, false, []]);
});

it.each([
  ['Wed, 18 Nov 2026 04:50:00 GMT', false],
  ['Wed, 18 Nov 2026 04:49:59 GMT', true],
  ['Wed, 18 Nov 2026 05:10:00 GMT', false],
  ['Wed, 18 Nov 2026 05:10:01 GMT', true],
])('at %s there, a clock more than ten minutes off is reported: %s', (date, isFarOff) => {
  const { clock, said } = clockAt();
  clock.observe({ date });
  clock.observe({ date });
  expect(clock.isFarOff()).toBe(isFarOff);
  expect(said).toHaveLength(isFarOff ? 1 : 0);
});

it('says which clock is off, by how much, with what consequences, and what to do', () => {
  const { clock, said } = clockAt();
  clock.observe({ date: 'Mon, 19 Oct 2026 05:00:00 GMT' });
  expect(said).toEqual([
    'The clock of this machine is 30 days ahead of that of https://platform.example.com ' +
      '(Nov 18, 2026 at 05:00 UTC here, Oct 19, 2026 at 05:00 UTC there). ' +
      'Days and periods that have not ended by both clocks are neither loaded nor emailed. ' +
      'Synchronize this clock with NTP; if it is right, report the other to the operators of the platform.',
  ]);
  const behind = clockAt();
  behind.clock.observe({ date: 'Wed, 18 Nov 2026 07:00:00 GMT' });
  expect(behind.said[0]).toMatch(/^The clock of this machine is 2 h 0 min behind that of https/);
});

it('uses the earlier clock for what has ended', () => {
  const { clock } = clockAt();
  clock.observe({ date: 'Mon, 19 Oct 2026 05:00:00 GMT' });
  expect(clock.earlier().toISOString()).toBe('2026-10-19T05:00:00.900Z');
  clock.observe({ date: 'Thu, 19 Nov 2026 05:00:00 GMT' });
  expect(clock.earlier()).toEqual(HERE);
});

it('requests the time once, and not if a response already contained it', async () => {
  const unknown = clockAt(() => Promise.reject(new Error('unreachable')));
  await unknown.clock.update();
  await unknown.clock.update();
  expect([unknown.asked(), unknown.clock.earlier()]).toEqual([1, HERE]);
  const known = clockAt();
  known.clock.observe({ date: 'Wed, 18 Nov 2026 05:00:00 GMT' });
  await known.clock.update();
  expect(known.asked()).toBe(0);
});

it('is requested again after the clock of this machine was set while a command runs', async () => {
  for (const jumpMs of [-36 * 60 * MINUTE_MS, 11 * MINUTE_MS, 400 * 24 * 60 * MINUTE_MS]) {
    let now = HERE;
    const date = 'Wed, 18 Nov 2026 05:00:00 GMT';
    const ask = () => Promise.resolve({ date });
    const { clock, asked } = clockAt(ask, () => now);
    clock.observe({ date });
    await clock.update();
    expect([asked(), clock.isTooFarOff()]).toEqual([0, false]);
    now = new Date(HERE.getTime() + jumpMs);
    await clock.update();
    await clock.update();
    expect(asked()).toBe(1);
    expect(clock.isTooFarOff()).toBe(jumpMs !== 11 * MINUTE_MS);
  }
});

it('is read from every response, even a refusal', async () => {
  const dates: unknown[] = [];
  const { client } = await clientOf(
    (response, count) =>
      reply(response, count === 1 ? 403 : 200, NO_ROWS, { date: `Wed, 18 Nov 2026 05:00:0${count} GMT` }),
    { limits: { onHeaders: ({ date }) => dates.push(date) } },
  );
  await expect(client.views(PAGE)).rejects.toThrow('403');
  await client.views(PAGE);
  expect(dates).toEqual(['Wed, 18 Nov 2026 05:00:01 GMT', 'Wed, 18 Nov 2026 05:00:02 GMT']);
});

const NOW = new Date('2026-11-18T05:00:00Z');
const HOUR_MS = 3_600_000;

describe('Retry-After', () => {
  it.each([
    ['0', 0],
    ['7', 7_000],
    [' 120 ', 120_000],
    ['Wed, 18 Nov 2026 05:00:30 GMT', 30_000],
    // What servers send although they should not.
    ['0.493', 493],
    ['1.5', 1_500],
    ['1, 1', 1_000],
    ['120,60', 120_000],
    ['Wed, 18 Nov 2026 05:00:30 GMT, Wed, 18 Nov 2026 05:00:40 GMT', 30_000],
    ['60000', 60_000],
    ['59873', 59_873],
    ['1794978030', 30_000],
    ['1794978030.5', 30_500],
    ['1794978030000', 30_000],
  ])('%j is a wait of %i ms', (header, waitMs) => {
    expect(parseRetryAfter(header, NOW)).toBe(waitMs);
  });

  it.each(['Wed, 18 Nov 2026 04:59:00 GMT', '1794977940', '1794977940000'])(
    'takes %j, in the past, for no wait',
    (header) => {
      expect(parseRetryAfter(header, NOW)).toBe(0);
    },
  );

  it.each([
    ...['', 'soon', '-5', '+5', '1.', '.5', '1e3', '0x10', ', 120', '1 1', '2026-11-18', 'Wed, 99 Foo 2026'],
    'Wed, 18 Nov 2026 05:00:30',
    'Wed, 18 Nov 2026 05:00:30 +0100',
    'Wed, 18 Nov 2026 25:00:30 GMT',
    'Wed, 18 Nov 2026 05:60:30 GMT',
    'Wed, 00 Nov 2026 05:00:30 GMT',
    'Wed, 18 Nov 0026 05:00:30 GMT',
    'Tue, 18 Nov 2026 05:00:30 GMT',
    'Wednesday, 18-Nov-26 05:00:30 GMT',
    'Wed Nov 18 05:00:30 2026',
    undefined,
  ])('%j is ignored', (header) => {
    expect(parseRetryAfter(header, NOW)).toBeUndefined();
  });

  it.each([
    '3601',
    '7200',
    '3600001',
    '999999999',
    '1894978030',
    '99999999999999999999',
    'Fri, 18 Nov 2050 05:00:00 GMT',
  ])('never asks for more than an hour: %s', (header) => {
    expect(parseRetryAfter(header, NOW)).toBe(HOUR_MS);
  });
});

describe('an HTTP date', () => {
  it.each(['UTC', 'America/Los_Angeles', 'Pacific/Kiritimati'])(
    'is the same on a machine in %s, and a damaged one is ignored',
    (machineZone) => {
      vi.stubEnv('TZ', machineZone);
      const property = fc.property(fc.integer({ min: 0, max: 3_600 }), fc.nat(28), (seconds, place) => {
        const at = new Date(NOW.getTime() + seconds * 1_000);
        const text = at.toUTCString();
        expect(parseRetryAfter(text, NOW)).toBe(seconds * 1_000);
        const around = [text.slice(0, place), text.slice(place + 1)];
        expect(parseRetryAfter(around.join('x'), NOW)).toBeUndefined();
        expect(parseRetryAfter(around.join(''), NOW)).toBeUndefined();
      });
      fc.assert(property, tries(1_000));
    },
  );
});
