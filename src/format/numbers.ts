import { z } from 'zod';

/** Writes numbers. Loading the rules of a language takes milliseconds, so that happens with the first number. */
export function formatter(options: Intl.NumberFormatOptions): (value: number) => string {
  let loaded: Intl.NumberFormat | undefined;
  return (value) => (loaded ??= new Intl.NumberFormat('en-US', options)).format(value);
}

const rounded = formatter({ maximumFractionDigits: 0 });
/** `18190` as `18,190`. Most commands write whole numbers only, and need not load the rules. */
export const thousands = (value: number): string =>
  Number.isSafeInteger(value) && !Object.is(value, -0)
    ? String(value).replace(/\B(?=(?:\d{3})+$)/g, ',')
    : rounded(value);
const short = formatter({ notation: 'compact', minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
const axis = formatter({ notation: 'compact', maximumSignificantDigits: 3 });
const oneDecimal = formatter({ minimumFractionDigits: 1, maximumFractionDigits: 1 });

const MINUS = '−';

/** `17234` as `17.2k`: from a thousand on, at most three digits. */
export const compact = (value: number): string =>
  Math.abs(value) < 999.5 ? thousands(value) : short(value).replace('K', 'k');

/** A number of an axis: `4k`, `2.5M`, `−40`. */
export const onAxis = (value: number): string => axis(value).replace('K', 'k').replace('-', MINUS);

/** A share from 0 to 1: `0.536` as `53.6%`. */
export const percent = (share: number): string => `${oneDecimal(share * 100)}%`;

/**
 * A relative change in whole percent: `0.19` as `+19%`, `-0.03` as `−3%`, and less than half a
 * percent as `0%`. A fall that leaves something is at most `−99.9%`.
 */
export const signedPercent = (ratio: number): string =>
  ratio > -1 && ratio < -0.995
    ? finePercent(Math.max(ratio, -0.999))
    : signed(Math.round(ratio * 100), thousands, '%');

/** A difference of counts: `690` as `+690`. */
export const signedCount = (difference: number): string => signed(Math.round(difference), thousands, '');

/** A share or ratio in whole percent: `0.19` as `19%`. */
export const percentOf = (ratio: number): string => `${thousands(Math.round(Math.abs(ratio) * 100))}%`;

/** From this factor on, percentages are hard to grasp. */
const MANY_TIMES = 10;

/** The size of a change without its sign: `19%`, and from tenfold on `5,003-fold`. A fall of 100% is one to zero. */
export function ratioWords(ratio: number): string {
  if (ratio + 1 >= MANY_TIMES) return `${thousands(Math.round(ratio + 1))}-fold`;
  return ratio < 0 && ratio > -1 && percentOf(ratio) === '100%' ? 'more than 99%' : percentOf(ratio);
}

/** As `signedPercent`, with one decimal, for small changes. */
const finePercent = (ratio: number): string => signed(Math.round(ratio * 1000) / 10, oneDecimal, '%');

/** A difference of two shares in percentage points: `0.034` as `+3.4 pts`. */
export const signedPoints = (difference: number): string =>
  signed(Math.round(difference * 1000) / 10, oneDecimal, ' pts');

const GIB = 2 ** 30;

/** Disk space: `78.7 GB`, and `0.3 MB` below one gigabyte. */
export const bytes = (count: number): string =>
  count < GIB ? `${oneDecimal(count / 2 ** 20)} MB` : `${oneDecimal(count / GIB)} GB`;

function signed(rounded: number, digits: typeof thousands, unit: string): string {
  const sign = rounded > 0 ? '+' : rounded < 0 ? MINUS : '';
  return `${sign}${digits(Math.abs(rounded))}${unit}`;
}

/** `1 view`, `18,190 views`. */
export const counted = (count: number, noun: string): string =>
  `${thousands(count)} ${count === 1 ? noun : `${noun}s`}`;

const WORDS = 'no one two three four five six seven eight nine ten eleven twelve thirteen'.split(' ');

/** `two` for 2; digits from 14 on. */
export const inWords = (count: number): string => WORDS[count] ?? thousands(count);

/** The change of a count from the week before. */
export const countChange = z.discriminatedUnion('kind', [
  z.object({ kind: z.enum(['unknown', 'new', 'from zero']) }),
  z.object({ kind: z.literal('ratio'), ratio: z.number() }),
]);
export type Change = z.infer<typeof countChange>;

/** The change of a count; an increase from zero has no percentage. */
export function changeOf(now: number, before: number): Change {
  if (before > 0) return { kind: 'ratio', ratio: now / before - 1 };
  return now > 0 ? { kind: 'from zero' } : { kind: 'ratio', ratio: 0 };
}

/** A change as text: `+19%`, `5,003 times`, `new`, `from 0`, or a dash if there is nothing to compare with. */
export function writeChange(change: Change): string {
  if (change.kind !== 'ratio') return { unknown: '–', new: 'new', 'from zero': 'from 0' }[change.kind];
  const times = change.ratio + 1;
  return times >= MANY_TIMES ? `${thousands(Math.round(times))} times` : signedPercent(change.ratio);
}

/** What follows a change: `+4%` is from the week before, `12 times` is that of the week before, and `from 0` the week before. */
export function fromWeekBefore(change: Change): string {
  if (change.kind === 'from zero') return 'the week before';
  return change.kind === 'ratio' && change.ratio + 1 >= MANY_TIMES
    ? 'that of the week before'
    : 'from the week before';
}
