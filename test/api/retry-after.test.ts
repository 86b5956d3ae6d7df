import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { parseRetryAfter } from '../../src/api/clock.js';
import { tries } from '../fuzz.js';

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
