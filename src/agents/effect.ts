import { z } from 'zod';
import { longDay } from '../format/days.js';
import { counted, signedPercent } from '../format/numbers.js';
import { dayColumn, type Reader, readSql } from '../warehouse/query.js';

const measured = {
  audience: z.enum(['human', 'ai']),
  verdict: z.enum(['more read', 'less read', 'no clear change', 'too early', 'cannot tell']),
  /** 1.2 is 20% more than pages that nobody changed; `low` and `high` are null where it cannot be told. */
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

/** What followed a job's pull request: its rows of the view `job_effects`, people first. */
export interface JobEffect extends Pick<EffectRow, 'job' | 'path' | 'merged_on'> {
  readonly isTooEarly: boolean;
  readonly audiences: readonly EffectRow[];
}

/** Rows of `job_effects`, as the effects of jobs in the same order. */
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

/** What followed the merged pull requests of some jobs, in words, by job. */
export async function mergedEffects(
  reader: Reader,
  project: string,
  jobs: readonly Pick<JobEffect, 'merged_on'>[],
): Promise<Map<number, string>> {
  const isNone = jobs.every(({ merged_on }) => merged_on === null);
  const effects = isNone ? [] : await readEffects(reader, project);
  return new Map(
    effects.flatMap((effect) => (effect.merged_on === null ? [] : [[effect.job, effectWords(effect)]])),
  );
}

/** An effect in a sentence; it says what went along with the change, never what was caused by it. */
export function effectWords({ job, merged_on, audiences }: JobEffect): string {
  if (merged_on === null) return `cannot tell yet: when was it merged? (readership jobs merged ${job})`;
  const said = audiences.map((row) => ({ name: nameOf(row), words: verdictWords(row) }));
  const isSame = new Set(said.map(({ words }) => words)).size === 1;
  const both = isSame ? said[0]?.words : said.map(({ name, words }) => `${name}: ${words}`).join('; ');
  return `${both}; counted from ${longDay(merged_on)}, when it was merged`;
}

function verdictWords(row: EffectRow): string {
  if (row.verdict === 'too early')
    return `too early: ${counted(4 - row.weeks_after, 'more full week')} to come`;
  return row.low === null
    ? `cannot tell: ${row.why}`
    : `${row.verdict}, ${interval(row, `beside ${counted(row.comparison_pages, 'similar page')} `)}`;
}

/** All changes of a project in a sentence; undefined with too few of them. */
export function togetherWords(rows: readonly z.infer<typeof projectEffectRow>[]): string | undefined {
  const told = rows.filter(({ low }) => low !== null);
  if (told.length === 0) return undefined;
  const said = told.map(
    (row) => `${nameOf(row)}: ${row.verdict}, ${interval(row, `over ${counted(row.changes, 'page')} `)}`,
  );
  return `All changed pages together, beside similar ones. ${said.join('; ')}.`;
}

const nameOf = ({ audience }: Pick<EffectRow, 'audience'>): string =>
  audience === 'human' ? 'people' : 'AI';

const interval = ({ ratio, low, high }: Pick<EffectRow, 'ratio' | 'low' | 'high'>, beside: string): string =>
  `${signedPercent((ratio ?? 1) - 1)} ${beside}(${signedPercent((low ?? 1) - 1)} to ${signedPercent((high ?? 1) - 1)})`;
