import { z } from 'zod';
import { audienceWord } from '../format/audience.js';
import { inSequence, longDay } from '../format/days.js';
import { counted, percentOf, signedPercent } from '../format/numbers.js';
import { dayColumn, type Reader, readSql } from '../warehouse/query.js';
import { readJobs } from './ledger.js';

const measured = {
  audience: z.enum(['human', 'ai']),
  verdict: z.enum(['more views', 'fewer views', 'no clear change', 'too early', 'cannot tell']),
  /** 1.2 is 20% more growth than unchanged pages had; `low` and `high` are null without a verdict. */
  ratio: z.number().nullable(),
  low: z.number().nullable(),
  high: z.number().nullable(),
};

const effectRow = z.object({
  ...measured,
  job: z.int(),
  path: z.string(),
  merged_on: dayColumn.nullable(),
  weeks_after: z.int(),
  comparison_pages: z.int(),
  why: z.string().nullable(),
});
type EffectRow = z.infer<typeof effectRow>;

/** The effect of a job's pull request: its rows of the view `job_effects`, people first. */
export interface JobEffect extends Pick<EffectRow, 'job' | 'path' | 'merged_on'> {
  readonly isTooEarly: boolean;
  readonly audiences: readonly EffectRow[];
}

/** Groups rows of `job_effects` by job, in the same order. */
export const jobEffects = z.array(effectRow).transform((rows): JobEffect[] =>
  rows.flatMap(({ job, path, merged_on, verdict }, index) => {
    if (rows[index - 1]?.job === job) return [];
    const audiences = rows.filter((row) => row.job === job);
    return [{ job, path, merged_on, isTooEarly: verdict === 'too early', audiences }];
  }),
);

/** A row of the view `project_effects`. */
export const projectEffectRow = z.object({ ...measured, changes: z.int() });

const EFFECTS_OF_PROJECT = readSql(import.meta.url, 'statements/effects-of-project.sql');

/** The effects of a project's jobs with a pull request, in the order of the jobs. */
export const readEffects = async (reader: Reader, project: string): Promise<JobEffect[]> =>
  jobEffects.parse(await reader.query(EFFECTS_OF_PROJECT, z.record(z.string(), z.unknown()), { project }));

/** Every job of a project, the newest first, with the effect of its merged pull request as a sentence. */
export async function readJobsWithEffects(reader: Reader, project: string) {
  const jobs = (await readJobs(reader, project)).toReversed();
  const isMerged = jobs.some(({ merged_on }) => merged_on !== null);
  const effects = isMerged ? await readEffects(reader, project) : [];
  return jobs.map((job) => {
    const effect = effects.find((one) => one.job === job.id && one.merged_on !== null);
    return { ...job, effect: effect === undefined ? null : effectWords(effect) };
  });
}

/** An effect as a sentence. It never says what caused it. */
export function effectWords({ job, merged_on, audiences }: JobEffect): string {
  if (merged_on === null) return `cannot tell: merge date unknown (record it: readership jobs merged ${job})`;
  const said = audiences.map((row) => ({ name: nameOf(row), words: verdictWords(row) }));
  const isSame = new Set(said.map(({ words }) => words)).size === 1;
  const both = isSame ? said[0]?.words : said.map(({ name, words }) => `${name}: ${words}`).join('; ');
  return `${both}; ${job < 0 ? 'changed by people' : 'merged'} on ${longDay(merged_on)}`;
}

function verdictWords(row: EffectRow): string {
  if (row.verdict === 'too early')
    return `too early: ${counted(4 - row.weeks_after, 'more full week')} needed`;
  return row.low === null
    ? `cannot tell: ${row.why}`
    : `${row.verdict}, ${interval(row, `compared with ${counted(row.comparison_pages, 'similar page')} `)}`;
}

/** The combined effect of a project's changes as a sentence; undefined with too few of them. */
export function togetherWords(rows: readonly z.infer<typeof projectEffectRow>[]): string | undefined {
  const told = rows.filter(({ low }) => low !== null);
  if (told.length === 0) return undefined;
  const said = told.map(
    (row) => `${nameOf(row)}: ${row.verdict}, ${interval(row, `for ${counted(row.changes, 'page')} `)}`,
  );
  return `All changed pages combined, compared with similar ones: ${said.join('; ')}.`;
}

/** A row of the view `experiment_effect`. */
export const experimentRow = z.object({ ...measured, pairs: z.int() });

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

const nameOf = ({ audience }: Pick<EffectRow, 'audience'>): string =>
  audience === 'human' ? 'people' : 'AI';

const interval = ({ ratio, low, high }: Pick<EffectRow, 'ratio' | 'low' | 'high'>, basis: string): string =>
  `${signedPercent((ratio ?? 1) - 1)} ${basis}(${signedPercent((low ?? 1) - 1)} to ${signedPercent((high ?? 1) - 1)})`;
