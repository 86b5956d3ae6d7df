import type { Effect } from './effect.js';
import type { JobEffect } from './read-effects.js';
import { longDay } from '../format/days.js';
import { counted, signedPercent } from '../format/numbers.js';

/** An effect in a sentence; it tells what went along with the change, never what was caused by it. */
export const effectWords = ({ effect, counted_from, counted_from_is }: JobEffect): string =>
  `${verdictWords(effect)}; counted from ${longDay(counted_from)}, when ` +
  (counted_from_is === 'merged'
    ? 'it was merged'
    : 'the job completed (readership jobs merged tells the merge)');

function verdictWords(effect: Effect): string {
  switch (effect.verdict) {
    case 'too early':
      return `too early: ${counted(effect.weeksMissing, 'more whole week')} to come`;
    case 'cannot tell':
      return `cannot tell: ${effect.why}`;
    case 'no clear change':
    case 'more read':
    case 'less read': {
      const { verdict, ratio, low, high, comparisonPages } = effect;
      const interval = `${signedPercent(low - 1)} to ${signedPercent(high - 1)}`;
      return `${verdict}: ${signedPercent(ratio - 1)} beside ${comparisonPages} untouched pages (${interval})`;
    }
  }
}
