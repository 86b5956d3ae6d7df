import { z } from 'zod';
import {
  effectWords,
  jobEffects,
  type JobEffect,
  projectEffectRow,
  togetherWords,
} from '../agents/effect.js';
import { reasonOf, wordsOf } from '../agents/reasons.js';
import { addDays } from '../day.js';
import { counted } from '../format/numbers.js';
import { dayColumn } from '../warehouse/query.js';
import { byGroup, jobRow, reportedJob, type JobGroup, type ReportedJob } from './jobs.js';
import { ISO_CALENDAR, periodOf } from './period.js';

const count = z.number().int().nonnegative();

const choiceRow = z.object({
  ...{ path: z.string(), is_flagged: z.boolean(), code: z.string(), facts: z.string() },
  ...{ weekly_human: z.number(), weekly_ai: z.number() },
});

const improveRows = z.object({
  jobs: z.array(
    jobRow.extend({
      merged_on: dayColumn.nullable(),
      reason: z.string(),
      newly_flagged: z.boolean(),
      human: count,
      ai: count,
    }),
  ),
  effects: jobEffects,
  effects_together: z.array(projectEffectRow),
  choices: z.array(choiceRow),
});

/** Skipped pages beyond these are only counted. */
const SKIPPED_LISTED = 10;

/** The improve report, before it is shown in any form: the jobs by what they mean to the reader. */
export function improveModel(answers: object) {
  const { jobs: rows, effects, effects_together, choices } = improveRows.parse(answers);
  const jobs = rows.map((row) => ({
    ...reportedJob(row),
    ...{ reason: row.reason, human: row.human, ai: row.ai },
    ...{ plannedAt: row.planned_at, endedAt: row.ended_at },
  }));
  const isMerged = (index: number) => rows[index]?.merged_on != null;
  const groups = byGroup(jobs.filter((_, index) => !isMerged(index)));
  const flagged = jobs.filter((_, index) => rows[index]?.newly_flagged === true);
  /** Pages without a job, and why each deserves one or was skipped; views are of a median week. */
  const pages = (isFlagged: boolean) =>
    choices
      .filter(({ is_flagged }) => is_flagged === isFlagged)
      .map(({ path, weekly_human, weekly_ai, ...reason }) => ({
        ...{
          path,
          why: wordsOf(reasonOf(reason)),
          human: Math.round(weekly_human),
          ai: Math.round(weekly_ai),
        },
      }));
  const skipped = pages(false);
  return {
    summary: summaryOf(groups, flagged.length),
    ...groups,
    /** Their pull requests need no attention any more. */
    merged: jobs.flatMap((job, index) => (isMerged(index) ? { ...job, isTask: false } : [])),
    /** Planned in the week or since, whatever happened to them. */
    flagged,
    /** Flagged in `mode: plan`: no job was created for them. */
    proposed: pages(true),
    /** Null when the last twelve weeks have no pull request. */
    earlierWork:
      effects.length === 0
        ? null
        : {
            together: togetherWords(effects_together) ?? null,
            ...earlierWorkOf(effects),
          },
    skipped: skipped.slice(0, SKIPPED_LISTED),
    /** Pages skipped beyond those that are listed. */
    moreSkipped: Math.max(0, skipped.length - SKIPPED_LISTED),
  };
}

/** What happened to the views of pages after earlier pull requests, where enough time has passed. */
function earlierWorkOf(all: readonly JobEffect[]) {
  const early = all.filter(({ isTooEarly }) => isTooEarly);
  const [first] = early
    .flatMap(({ merged_on }) => merged_on ?? [])
    .map((merged) => addDays(periodOf('week', merged, ISO_CALENDAR).first, 7 + 4 * 7))
    .sort();
  return {
    effects: all
      .filter((effect) => effect.merged_on !== null && !effect.isTooEarly)
      .map((effect) => ({ path: effect.path, job: effect.job, words: effectWords(effect) })),
    /** Pages whose four weeks after the change are not over, and the day when those of the first are. */
    tooEarly: first === undefined ? null : { pages: new Set(early.map(({ path }) => path)).size, first },
    /** Pull requests whose merge nobody recorded. */
    unmerged: all.filter(({ merged_on }) => merged_on === null).length,
  };
}

/** What there is to do, in a sentence or two. */
function summaryOf(
  { ready, unconfirmed, running }: Readonly<Record<JobGroup, readonly ReportedJob[]>>,
  flagged: number,
): string {
  const review =
    ready.length === 0
      ? 'No pull requests to review'
      : `${counted(ready.length, 'pull request')} ${ready.length === 1 ? 'awaits' : 'await'} your review`;
  const settle = unconfirmed.length > 0 ? `, and ${counted(unconfirmed.length, 'job')} to settle` : '';
  const pages = flagged === 0 ? 'No pages newly flagged' : `${counted(flagged, 'page')} newly flagged`;
  const busy = running.length === 0 ? '' : `; ${counted(running.length, 'job')} running`;
  return `${review}${settle}. ${pages}${busy}.`;
}
