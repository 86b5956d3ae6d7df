import { describe, expect, it } from 'vitest';
import { parseRetryAfter } from '../../src/api/retry-after.js';

const NOW = new Date('2026-11-18T05:00:00Z');
const DAY_MS = 86_400_000;

describe('Retry-After', () => {
  it.each([
    ['0', 0],
    ['7', 7_000],
    [' 120 ', 120_000],
    ['Wed, 18 Nov 2026 05:00:30 GMT', 30_000],
    ['Wednesday, 18-Nov-26 05:00:30 GMT', 30_000],
    ['Wed Nov 18 05:00:30 2026 GMT', 30_000],
  ])('%j is a wait of %i ms', (header, waitMs) => {
    expect(parseRetryAfter(header, NOW)).toBe(waitMs);
  });

  it('takes a date in the past for no wait', () => {
    expect(parseRetryAfter('Wed, 18 Nov 2026 04:59:00 GMT', NOW)).toBe(0);
  });

  it.each(['', 'soon', '-5', '1.5', '2026-11-18', '1e3', 'Wed, 99 Foo 2026'])('%j says nothing', (header) => {
    expect(parseRetryAfter(header, NOW)).toBeUndefined();
  });

  it('is undefined without the header', () => {
    expect(parseRetryAfter(undefined, NOW)).toBeUndefined();
  });

  it('never believes a wait of more than a day', () => {
    expect(parseRetryAfter('99999999999999999999', NOW)).toBe(DAY_MS);
    expect(parseRetryAfter('Fri, 18 Nov 2050 05:00:00 GMT', NOW)).toBe(DAY_MS);
  });
});
