import { signedPercent } from './numbers.js';

/** How a count stands to that of the week before. */
export type Change =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'new' }
  | { readonly kind: 'from zero' }
  | { readonly kind: 'ratio'; readonly ratio: number };

/** The change of a count; a rise from nothing has no percentage. */
export function changeOf(now: number, before: number): Change {
  if (before > 0) return { kind: 'ratio', ratio: now / before - 1 };
  return now > 0 ? { kind: 'from zero' } : { kind: 'ratio', ratio: 0 };
}

/** A change in a word: `+19%`, `new`, `from 0`, or a dash when there is nothing to compare with. */
export function writeChange(change: Change): string {
  switch (change.kind) {
    case 'unknown':
      return '–';
    case 'new':
      return 'new';
    case 'from zero':
      return 'from 0';
    case 'ratio':
      return signedPercent(change.ratio);
  }
}
