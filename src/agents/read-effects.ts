import { z } from 'zod';
import { dayColumn, type Reader, readSql } from '../warehouse/query.js';
import { type Effect, measureEffect } from './effect.js';

const EFFECTS_OF_PROJECT = readSql(import.meta.url, 'statements/effects-of-project.sql');

const effectRow = z.object({
  job: z.int(),
  path: z.string(),
  counted_from: dayColumn,
  counted_from_is: z.enum(['merged', 'completed']),
  weeks_before: z.int(),
  weeks_after: z.int(),
  views_before: z.int(),
  views_after: z.int(),
  comparison: z.array(z.object({ path: z.string(), before: z.int(), after: z.int() })),
});

/** The effect of a job's pull request, what it is counted from, and the views behind it. */
export type JobEffect = Omit<z.infer<typeof effectRow>, 'comparison'> & { readonly effect: Effect };

/** The effects of a project's jobs with a pull request, in the order of the jobs. */
export async function readEffects(reader: Reader, project: string): Promise<JobEffect[]> {
  const rows = await reader.query(EFFECTS_OF_PROJECT, effectRow, { project });
  return rows.map(({ comparison, ...row }) => ({ ...row, effect: measureEffect({ ...row, comparison }) }));
}
