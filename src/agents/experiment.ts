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
 * The effect that the experiment measured, as a sentence; null without a pair. Chance chose the pages, so this one may be
 * called an effect.
 */
export function experimentWords(rows: readonly z.infer<typeof experimentRow>[]): string | null {
  const pairs = Math.max(0, ...rows.map((row) => row.pairs));
  if (pairs === 0) return null;
  const told = rows.filter(({ low, verdict }) => low !== null && verdict !== 'too early');
  if (told.length === 0)
    return `Too early to tell whether agents help: ${pairs} of ${LEAST_PAIRS} pairs of pages are measured.`;
  const clear = told.filter(({ verdict }) => verdict !== 'no clear change');
  const said = inSequence((clear.length > 0 ? clear : told).map(changeWords));
  const drawn = `in ${counted(pairs, 'pair')} that chance picked`;
  return clear.length > 0
    ? `Pages with a job got ${said} than similar pages without one, ${drawn}.`
    : `No clear difference between pages with a job and similar pages without one, ${drawn}: ${said}.`;
}

/** `12% more human views (between +3% and +21%)`. */
function changeWords({ audience, ratio, low, high }: z.infer<typeof experimentRow>): string {
  const change = (ratio ?? 1) - 1;
  const [least, most] = [low, high].map((bound) => signedPercent((bound ?? 1) - 1));
  const more = change < 0 ? 'fewer' : 'more';
  return `${percentOf(change)} ${more} ${audienceWord(audience)} views (between ${least} and ${most})`;
}
