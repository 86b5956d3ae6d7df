import { z } from 'zod';
import { audienceWord } from '../format/audience.js';
import { inSequence } from '../format/days.js';
import { counted, percentOf, signedPercent } from '../format/numbers.js';

/** A row of the view `experiment_effect`. */
export const experimentRow = z.object({
  audience: z.enum(['human', 'ai']),
  verdict: z.enum(['more views', 'fewer views', 'no clear change', 'too early']),
  pairs: z.int(),
  /** 1.2 is 20% more growth than the pages had that were held out; `low` and `high` are null when it is too early. */
  ratio: z.number().nullable(),
  low: z.number().nullable(),
  high: z.number().nullable(),
});

/** The pairs of pages that a verdict needs. */
const LEAST_PAIRS = 8;

/**
 * The effect that the experiment measured, as a sentence, and whether it is clear; null without a
 * pair. Chance chose the pages, so this one may be called an effect.
 */
export function experimentWords(rows: readonly z.infer<typeof experimentRow>[]) {
  const pairs = Math.max(0, ...rows.map((row) => row.pairs));
  if (pairs === 0) return null;
  const told = rows.filter(({ low, verdict }) => low !== null && verdict !== 'too early');
  const clear = told.filter(({ verdict }) => verdict !== 'no clear change');
  const isClear = clear.length > 0;
  if (told.length === 0) {
    const words = `Too early to tell whether agents help: ${pairs} of ${LEAST_PAIRS} pairs of pages are measured.`;
    return { isClear, words };
  }
  const said = inSequence(
    (isClear ? clear : told).map((row) => {
      const ratio = (row.ratio ?? 1) - 1;
      const change = `${percentOf(ratio)} ${ratio < 0 ? 'fewer' : 'more'} ${audienceWord(row.audience)} views`;
      return `${change} (${signedPercent((row.low ?? 1) - 1)} to ${signedPercent((row.high ?? 1) - 1)})`;
    }),
  );
  const drawn = `${counted(pairs, 'pair')} drawn at random`;
  const words = isClear
    ? `Pages that agents improved got ${said} than their twins: ${drawn}.`
    : `No clear difference between pages that agents improved and their twins: ${said}, ${drawn}.`;
  return { isClear, words };
}
