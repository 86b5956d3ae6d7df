import { z } from 'zod';
import { dayColumn, type Reader, readSql } from '../warehouse/query.js';
import { measureEffect } from './effect.js';

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
