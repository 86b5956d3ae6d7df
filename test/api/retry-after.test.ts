import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { parseRetryAfter } from '../../src/api/http-date.js';
import { tries } from '../fuzz.js';

const NOW = new Date('2026-11-18T05:00:00Z');
const DAY_MS = 86_400_000;

describe('Retry-After', () => {
  it.each([
    ['0', 0],
    ['7', 7_000],
    [' 120 ', 120_000],
    ['Wed, 18 Nov 2026 05:00:30 GMT', 30_000],
    ['Wednesday, 18-Nov-26 05:00:30 GMT', 30_000],
    ['Wed Nov 18 05:00:30 2026', 30_000],
    ['Tue Dec  1 05:00:00 2026', DAY_MS],
  ])('%j is a wait of %i ms', (header, waitMs) => {
    expect(parseRetryAfter(header, NOW)).toBe(waitMs);
  });

  it('treats a date in the past as no wait', () => {
    expect(parseRetryAfter('Wed, 18 Nov 2026 04:59:00 GMT', NOW)).toBe(0);
  });

  it.each([
    ...['', 'soon', '-5', '+5', '1.5', '1e3', '0x10', '120, 120', '2026-11-18', 'Wed, 99 Foo 2026'],
    'Wed, 18 Nov 2026 05:00:30',
    'Wed, 18 Nov 2026 05:00:30 +0100',
    'Wed, 18 Nov 2026 25:00:30 GMT',
    'Wed, 18 Nov 0026 05:00:30 GMT',
    'Wednesday, 98-Nov-26 05:00:30 GMT',
  ])('%j is ignored', (header) => {
    expect(parseRetryAfter(header, NOW)).toBeUndefined();
  });

  it('is undefined without the header', () => {
    expect(parseRetryAfter(undefined, NOW)).toBeUndefined();
  });

  it('never accepts a wait of more than a day', () => {
    expect(parseRetryAfter('99999999999999999999', NOW)).toBe(DAY_MS);
    expect(parseRetryAfter('Fri, 18 Nov 2050 05:00:00 GMT', NOW)).toBe(DAY_MS);
  });
});

describe('Retry-After, compared with a parser that reads the grammar character by character', () => {
  const zone = process.env['TZ'];
  afterEach(() => {
    if (zone === undefined) delete process.env['TZ'];
    else process.env['TZ'] = zone;
  });

  const SECONDS = fc.integer({ min: -3_000, max: 90_000 });
  const header = SECONDS.chain((seconds) => {
    const at = new Date(NOW.getTime() + seconds * 1_000);
    return fc.constantFrom(String(Math.abs(seconds)), at.toUTCString(), rfc850(at), asctime(at));
  });
  /** A header with a few characters removed, inserted or replaced. */
  const damaged = fc
    .tuple(
      header,
      fc.array(fc.tuple(fc.nat(30), fc.nat(1), fc.constantFrom(...Array.from('09 ,:-+GMTZe.\t'))), {
        maxLength: 3,
      }),
    )
    .map(([text, changes]) =>
      changes.reduce((all, [at, width, put]) => all.slice(0, at) + put + all.slice(at + width), text),
    );

  it.each(['UTC', 'America/Los_Angeles', 'Pacific/Kiritimati'])(
    'is the same on a machine in %s',
    (machineZone) => {
      process.env['TZ'] = machineZone;
      const property = fc.property(fc.oneof(header, damaged, fc.string()), (text) => {
        expect(parseRetryAfter(text, NOW)).toBe(secondReading(text));
      });
      fc.assert(property, tries(1_000));
    },
  );
});

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const timeOf = (at: Date) => at.toISOString().slice(11, 19);
const rfc850 = (at: Date) => {
  const [day, month, year] = at.toUTCString().slice(5, 16).split(' ');
  return `${DAYS[at.getUTCDay()] ?? ''}, ${day ?? ''}-${month ?? ''}-${year?.slice(2) ?? ''} ${timeOf(at)} GMT`;
};
const asctime = (at: Date) => {
  const start = `${DAYS[at.getUTCDay()]?.slice(0, 3) ?? ''} ${MONTHS[at.getUTCMonth()] ?? ''}`;
  return `${start} ${String(at.getUTCDate()).padStart(2)} ${timeOf(at)} ${at.getUTCFullYear()}`;
};

/** The wait in a header, parsed from left to right by the grammar in the RFC. */
function secondReading(header: string): number | undefined {
  let rest = header.trim();
  const isNumber = (text: string) =>
    text !== '' && Array.from(text).every((one) => '0123456789'.includes(one));
  const capped = (waitMs: number) => Math.min(Math.max(waitMs, 0), DAY_MS);
  if (isNumber(rest)) return capped(Number(rest) * 1_000);

  // A part that does not match leaves text that no later part matches.
  const word = (...words: readonly string[]): number => {
    const index = words.findIndex((candidate) => rest.startsWith(candidate));
    rest = index === -1 ? '\0' : rest.slice(words[index]?.length);
    return index;
  };
  const number = (digits: number, least: number, most: number): number => {
    const text = rest.slice(0, digits);
    const fits = text.length === digits && isNumber(text) && Number(text) >= least && Number(text) <= most;
    rest = fits ? rest.slice(digits) : '\0';
    return Number(text);
  };
  const clock = (): number => {
    const hours = number(2, 0, 23);
    word(':');
    const minutes = number(2, 0, 59);
    word(':');
    return (hours * 60 + minutes) * 60 + number(2, 0, 59);
  };

  const isLong = DAYS.some((name) => rest.startsWith(`${name},`));
  word(...DAYS.map((name) => (isLong ? name : name.slice(0, 3))));
  const read = (): [year: number, month: number, day: number, seconds: number] => {
    if (!rest.startsWith(',')) {
      word(' ');
      const month = word(...MONTHS);
      word(' ');
      const hasOneDigit = rest.startsWith(' ');
      if (hasOneDigit) rest = rest.slice(1);
      const day = hasOneDigit ? number(1, 1, 9) : number(2, 10, 31);
      word(' ');
      const seconds = clock();
      word(' ');
      return [number(4, 1000, 9999), month, day, seconds];
    }
    word(', ');
    const day = number(2, 1, 31);
    word(isLong ? '-' : ' ');
    const month = word(...MONTHS);
    word(isLong ? '-' : ' ');
    const shortYear = isLong ? number(2, 0, 99) : 0;
    const year = isLong ? shortYear + (shortYear < 50 ? 2000 : 1900) : number(4, 1000, 9999);
    word(' ');
    const seconds = clock();
    word(' GMT');
    return [year, month, day, seconds];
  };
  const [year, month, day, seconds] = read();
  if (rest !== '') return undefined;
  const at = new Date(0);
  at.setUTCFullYear(year, month, day);
  return capped(at.getTime() + seconds * 1_000 - NOW.getTime());
}
