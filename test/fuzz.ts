import fc, { type Parameters } from 'fast-check';

/**
 * How often a property is tried: with the same cases every time, so that a failure can be reproduced.
 * `FUZZ_SEED` makes other cases, and `FUZZ_TIMES` that many times as many.
 */
export function tries<Case>(numRuns: number): Parameters<Case> {
  const { FUZZ_SEED = '42', FUZZ_TIMES = '1' } = process.env;
  return { seed: Number(FUZZ_SEED), numRuns: Math.ceil(numRuns * Number(FUZZ_TIMES)) };
}

/** What a hostile text is made of: markup, formulas and escapes, and characters that end a line or are not seen. */
const HOSTILE = [
  ...`" "" ' \` = & &lt; &quot; < > <b> {{ }} {{{ {{path}} $& $1 $$ ? # + - -- @ * , ; | \\ \\| % %0d%0a ( [ {`.split(
    ' ',
  ),
  ...'<script>alert(1)</script> </td></table> <!-- --> /* //evil.example/ /\\evil ../ /docs javascript:alert(1)'.split(
    ' ',
  ),
  ...'[x](javascript:alert(1)) url(x) expression( cid: 7 -1 e9999 日本 👩‍🚒 é'.split(' '),
  ...Array.from(
    '\n\r\t\0\v\f\u0085\u2028\u2029\u007f\u200b\u200f\ufeff\u061c\u202e\u2066\u2069\ue000\u{e0041}🦆ﷺ',
  ),
  ...[
    '\r\n',
    '\r\n\r\n',
    '\n.\n',
    '\u001b[31m',
    '\u001b[2J',
    '\u009b2J',
    '# heading',
    'Bcc: eve@example.com',
  ],
  ...['<img src=x onerror=alert(1)>', '<a href=//evil>', '{{> layouts/page}}', 'x'.repeat(150)],
];
export const hostilePiece = fc.constantFrom(...HOSTILE);
