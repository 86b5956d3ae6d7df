import { z } from 'zod';
import { dayColumn } from '../columns.js';
import { longDay } from '../format/days.js';
import { signedPercent, thousands } from '../format/numbers.js';
import { readJobs } from '../state/jobs.js';
import type { State } from '../state/state.js';
import type { Reader } from '../history/duckdb.js';

/** Views a week before and after a merge; null where no day is loaded. Changes are null if there is nothing to compare with. */
interface Side {
  readonly before: number | null;
  readonly after: number | null;
  readonly change: number | null;
  readonly siteChange: number | null;
}

const views = z.number().nullable();

/** A row of the view `job_effects`, with views a week. */
export const jobEffectRow = z
  .object({ job: z.int(), path: z.string(), merged_on: dayColumn, weeks_after: z.int() })
  .extend({ days_before: z.int(), days_after: z.int(), human_before: views, human_after: views })
  .extend({ human_change: views, site_human_change: views, ai_before: views, ai_after: views })
  .extend({ ai_change: views, site_ai_change: views })
  .transform((row) => {
    const { job, path, merged_on: mergedOn, weeks_after: weeksAfter, days_before, days_after } = row;
    const human: Side = {
      before: aWeek(row.human_before, days_before),
      after: aWeek(row.human_after, days_after),
      change: row.human_change,
      siteChange: row.site_human_change,
    };
    const ai: Side = {
      before: aWeek(row.ai_before, days_before),
      after: aWeek(row.ai_after, days_after),
      change: row.ai_change,
      siteChange: row.site_ai_change,
    };
    return { job, path, mergedOn, weeksAfter, human, ai };
  });
/** The views of a page before and after the change of an agent was merged. They do not say what caused a difference. */
export type JobEffect = z.infer<typeof jobEffectRow>;

const aWeek = (sum: number | null, days: number): number | null =>
  sum === null ? null : Math.round((7 * sum) / days);

const EFFECTS_OF_PROJECT = 'FROM job_effects WHERE project = $project ORDER BY job';

/** The views before and after each merge of a project, in the order of the jobs. */
export const readJobEffects = (reader: Reader, project: string): Promise<JobEffect[]> =>
  reader.query(EFFECTS_OF_PROJECT, jobEffectRow, { project });

/** Every job of a project, the newest first, with the views before and after its merge as a phrase. */
export async function readJobsWithEffects(state: State, reader: Reader, project: string) {
  const jobs = readJobs(state, project).toReversed();
  const isMerged = jobs.some(({ merged_on }) => merged_on !== null);
  const effects = isMerged ? await readJobEffects(reader, project) : [];
  return jobs.map((job) => {
    const effect = effects.find((one) => one.job === job.id);
    return { ...job, effect: effect === undefined ? null : effectWords(effect) };
  });
}

/** The views before and after a merge as a phrase. */
export function effectWords({ mergedOn, weeksAfter, human, ai }: JobEffect): string {
  const merge = `the merge on ${longDay(mergedOn)}`;
  if (weeksAfter === 0) return `no full week has passed since ${merge}`;
  const soFar = weeksAfter === 4 ? '' : ` (${weeksAfter} of 4 weeks so far)`;
  return `weekly views before and after ${merge}${soFar}: people ${sideWords(human)}; AI ${sideWords(ai)}`;
}

function sideWords({ before, after, change, siteChange }: Side): string {
  const changes = [
    ...(change === null ? [] : [signedPercent(change)]),
    ...(siteChange === null ? [] : [`site ${signedPercent(siteChange)}`]),
  ];
  const compared = changes.length === 0 ? '' : ` (${changes.join(', ')})`;
  return `${before === null ? '–' : thousands(before)} → ${after === null ? '–' : thousands(after)}${compared}`;
}
