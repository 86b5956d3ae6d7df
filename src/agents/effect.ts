import { z } from 'zod';
import { longDay } from '../format/days.js';
import { counted, signedPercent } from '../format/numbers.js';
import { dayColumn, type Reader, readSql } from '../warehouse/query.js';

/** Views over four whole weeks before a change, and over the four after. */
export interface BeforeAfter {
  readonly before: number;
  readonly after: number;
}

/** What an effect is measured from: a row of the view `job_effects`. */
export interface EffectSample {
  readonly weeks_before: number;
  readonly weeks_after: number;
  readonly views_before: number;
  readonly views_after: number;
  /** Untouched pages of like reading, in the same weeks. */
  readonly comparison: readonly BeforeAfter[];
}

/**
 * How reading of a page went after a change, beside that of pages nobody touched. Ratios: 1.2 is 20% more than they.
 * It says what went along with the change, never what was caused by it.
 */
export type Effect =
  | { readonly verdict: 'too early'; readonly weeksMissing: number }
  | { readonly verdict: 'cannot tell'; readonly why: string }
  | {
      readonly verdict: 'no clear change' | 'more read' | 'less read';
      readonly ratio: number;
      /** The interval that holds the ratio of a page nobody touched in 19 of 20 cases. */
      readonly low: number;
      readonly high: number;
      readonly comparisonPages: number;
    };

const WINDOW_WEEKS = 4;
const CONFIDENCE = 0.95;

/** With fewer, even the page that stands out most of all may do so by chance in more than 1 of 20 cases. */
const MIN_COMPARISON_PAGES = 19;

/** Views on either side below which chance alone moves a page too much. */
const MIN_VIEWS = 28;

/**
 * Measures the effect of a change. The noise is not assumed but measured: the comparison pages were not changed, so how
 * far each of them strays from their common course is how far a page strays by itself. The change is clear only if its
 * page strays further than 19 of 20 would. See docs/decisions/009-the-effect-of-a-change.md.
 */
export function measureEffect(sample: EffectSample): Effect {
  const { weeks_before, weeks_after, views_before, views_after, comparison } = sample;
  if (weeks_before < WINDOW_WEEKS)
    return { verdict: 'cannot tell', why: `only ${weeks_before} of the 4 weeks before are loaded whole` };
  if (weeks_after < WINDOW_WEEKS) return { verdict: 'too early', weeksMissing: WINDOW_WEEKS - weeks_after };
  if (views_before < MIN_VIEWS) return { verdict: 'cannot tell', why: 'the page was read too little before' };
  if (comparison.length < MIN_COMPARISON_PAGES)
    return {
      verdict: 'cannot tell',
      why: `there are ${comparison.length} pages to compare with, and it takes ${MIN_COMPARISON_PAGES}`,
    };

  const changes = comparison.map(logChange);
  const common = median(changes);
  const strays = changes.map((change) => Math.abs(change - common)).sort((one, other) => one - other);
  const margin = Math.max(...strays.slice(0, Math.ceil(CONFIDENCE * (strays.length + 1))));
  const own = logChange({ before: views_before, after: views_after }) - common;
  return {
    verdict: own > margin ? 'more read' : own < -margin ? 'less read' : 'no clear change',
    ratio: Math.exp(own),
    low: Math.exp(own - margin),
    high: Math.exp(own + margin),
    comparisonPages: comparison.length,
  };
}

/** Symmetric in rise and fall, and finite for a page that vanished. */
const logChange = ({ before, after }: BeforeAfter): number => Math.log((after + 1) / (before + 1));

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const [upper = 0, lower = upper] = [sorted[middle], sorted[sorted.length % 2 === 0 ? middle - 1 : middle]];
  return (lower + upper) / 2;
}

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

const EFFECTS_OF_PROJECT = readSql(import.meta.url, 'statements/effects-of-project.sql');

/** A row of the view `job_effects`, its comparison pages made into the effect they tell. */
export const jobEffectRow = z
  .object({
    job: z.int(),
    path: z.string(),
    counted_from: dayColumn,
    counted_from_is: z.enum(['merged', 'completed']),
    weeks_before: z.int(),
    weeks_after: z.int(),
    views_before: z.int(),
    views_after: z.int(),
    comparison: z.array(z.object({ path: z.string(), before: z.int(), after: z.int() })),
  })
  .transform(({ comparison, ...row }) => ({ ...row, effect: measureEffect({ ...row, comparison }) }));

/** The effect of a job's pull request, what it is counted from, and the views behind it. */
export type JobEffect = z.infer<typeof jobEffectRow>;

/** The effects of a project's jobs with a pull request, in the order of the jobs. */
export const readEffects = (reader: Reader, project: string): Promise<JobEffect[]> =>
  reader.query(EFFECTS_OF_PROJECT, jobEffectRow, { project });
