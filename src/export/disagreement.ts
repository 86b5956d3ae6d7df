import { z } from 'zod';
import type { PlatformFact } from '../state/facts.js';

/** What a platform says of the end of its rows that cannot be right, and what exports do about it. */
export const DISAGREEMENT_WORDS = {
  'page totals':
    'returns the totals of each page instead of the whole day; exports read until there are no more rows, and stored days are not compared with them',
  'always more': 'says that there are more rows after the last one; exports end when the rows add up',
} as const;
export type Disagreement = keyof typeof DISAGREEMENT_WORDS;

export const DISAGREEMENT: PlatformFact<Disagreement> = {
  name: 'disagreement',
  value: z.enum(['page totals', 'always more']),
  isLimit: true,
};
