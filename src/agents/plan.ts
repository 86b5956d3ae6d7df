import { UTCDate } from '@date-fns/utc';
import { startOfISOWeek, subDays } from 'date-fns';
import { z } from 'zod';
import { type Reader, readSql } from '../warehouse/query.js';
import { type Job, readJobs } from './ledger.js';
import { OPEN_STATES } from './lifecycle.js';
import { type Selection, type SelectionRules, selectPages } from './select.js';

const CANDIDATES = readSql(import.meta.url, 'statements/candidates.sql');

const candidateRow = z.object({
  path: z.string(),
  human: z.number(),
  ai: z.number(),
  days_viewed: z.int(),
  days_viewed_by_people: z.int(),
  weeks: z.int(),
});

/** The `improve` section of the configuration, as far as planning reads it. */
export interface PlanRules extends SelectionRules {
  readonly cooldownDays: number;
  readonly maxJobsPerRun: number;
  readonly maxJobsPerWeek: number;
}

/** What improving a project would do now. `waiting` are jobs planned earlier that were not sent yet; they go first. */
export interface ImprovePlan extends Selection {
  readonly waiting: readonly Job[];
  /** Whole weeks of history that the choice rests on, 8 at most. */
  readonly weeks: number;
  /** Jobs planned since Monday (UTC), those of earlier runs: they use up `maxJobsPerWeek`. */
  readonly plannedThisWeek: number;
}

/** Decides from stored state which pages get a job. Sends and stores nothing. */
export async function planImprovement(
  reader: Reader,
  project: string,
  rules: PlanRules,
  now: Date,
): Promise<ImprovePlan> {
  const candidates = await reader.query(CANDIDATES, candidateRow, { project, now });
  const jobs = await readJobs(reader, project);
  const waiting = jobs.filter((job) => job.state === 'planned');
  const plannedThisWeek = countPlannedThisWeek(jobs, now);
  const places = Math.min(rules.maxJobsPerRun - waiting.length, rules.maxJobsPerWeek - plannedThisWeek);
  const busy = busyPages(jobs, rules.cooldownDays, now);
  const weeks = candidates[0]?.weeks ?? 0;
  return { ...selectPages(candidates, busy, rules, Math.max(0, places)), waiting, weeks, plannedThisWeek };
}

function countPlannedThisWeek(jobs: readonly Job[], now: Date): number {
  const monday = startOfISOWeek(new UTCDate(now));
  return jobs.filter((job) => job.planned_at >= monday && job.state !== 'refused').length;
}

/** Pages that get no job now: they have one, or had one that ended less than `cooldownDays` ago. */
export function busyPages(jobs: readonly Job[], cooldownDays: number, now: Date): Map<string, string> {
  const busy = new Map<string, string>();
  for (const job of jobs) {
    if (OPEN_STATES.has(job.state)) busy.set(job.path, `has job ${job.id}, ${job.state}`);
    else if (job.ended_at !== null && job.ended_at > subDays(now, cooldownDays))
      busy.set(
        job.path,
        `had job ${job.id}, ended on ${job.ended_at.toISOString().slice(0, 10)}: less than ${cooldownDays} days ago`,
      );
  }
  return busy;
}
