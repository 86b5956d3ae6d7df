import { z } from 'zod';
import { effectWords } from '../agents/effect-words.js';
import { jobEffectRow, type JobEffect } from '../agents/read-effects.js';
import { addDays, type Day } from '../day.js';
import { counted } from '../format/numbers.js';
import { byGroup, jobRow, reportedJob, type JobGroup, type ReportedJob } from './jobs.js';
import { ISO_CALENDAR, periodOf } from './period.js';

const count = z.number().int().nonnegative();

const improveRows = z.object({
  jobs: z.array(jobRow.extend({ reason: z.string(), newly_flagged: z.boolean(), human: count, ai: count })),
  effects: z.array(jobEffectRow),
  choices: z.array(
    z.object({
      path: z.string(),
      is_flagged: z.boolean(),
      why: z.string(),
      weekly_human: z.number(),
      weekly_ai: z.number(),
    }),
  ),
});

/** Skipped pages beyond these are only counted. */
const SKIPPED_LISTED = 10;

/** A job, with the views of its page in the reported week. */
interface ImproveJob extends ReportedJob {
  readonly reason: string;
  readonly human: number;
  readonly ai: number;
  readonly plannedAt: Date;
  readonly endedAt: Date | null;
}

/** What happened to the views of pages after earlier pull requests, where enough time has passed. */
interface EarlierWork {
  /** `words` compares the page with untouched pages, in a sentence. */
  readonly effects: readonly { readonly path: string; readonly job: number; readonly words: string }[];
  /** Pages whose four weeks after the change are not over; `first` is the day when the first of them is ready. */
  readonly tooEarly: { readonly pages: number; readonly first: Day } | null;
}

/** A page that has no job, and why it deserves one or was skipped. */
interface ChosenPage {
  readonly path: string;
  readonly why: string;
  /** In a median week. */
  readonly human: number;
  readonly ai: number;
}

/** The improve report, before it is shown in any form: the jobs by what they mean to the reader. */
export interface ImproveModel extends Readonly<Record<JobGroup, readonly ImproveJob[]>> {
  readonly summary: string;
  /** Planned in the week or since, whatever happened to them. */
  readonly flagged: readonly ImproveJob[];
  /** Flagged in `mode: plan`: no job was created for them. */
  readonly proposed: readonly ChosenPage[];
  /** Null when the last twelve weeks have no pull request. */
  readonly earlierWork: EarlierWork | null;
  readonly skipped: readonly ChosenPage[];
  /** Pages skipped beyond those that are listed. */
  readonly moreSkipped: number;
}

export function improveModel(answers: object): ImproveModel {
  const { jobs: rows, effects, choices } = improveRows.parse(answers);
  const jobs = rows.map((row) => ({
    ...reportedJob(row),
    ...{ reason: row.reason, human: row.human, ai: row.ai },
    ...{ plannedAt: row.planned_at, endedAt: row.ended_at },
  }));
  const groups = byGroup(jobs);
  const flagged = jobs.filter((_, index) => rows[index]?.newly_flagged === true);
  const pages = (isFlagged: boolean): ChosenPage[] =>
    choices
      .filter(({ is_flagged }) => is_flagged === isFlagged)
      .map(({ path, why, weekly_human, weekly_ai }) => ({
        ...{ path, why, human: Math.round(weekly_human), ai: Math.round(weekly_ai) },
      }));
  const skipped = pages(false);
  return {
    summary: summaryOf(groups, flagged.length),
    ...groups,
    flagged,
    proposed: pages(true),
    earlierWork: effects.length === 0 ? null : earlierWorkOf(effects),
    skipped: skipped.slice(0, SKIPPED_LISTED),
    moreSkipped: Math.max(0, skipped.length - SKIPPED_LISTED),
  };
}

function earlierWorkOf(all: readonly JobEffect[]): EarlierWork {
  const early = all.filter(({ effect }) => effect.verdict === 'too early');
  const [first] = early
    .map(({ counted_from }) => addDays(periodOf('week', counted_from, ISO_CALENDAR).first, 7 + 4 * 7))
    .sort();
  return {
    effects: all
      .filter((effect) => !early.includes(effect))
      .map((effect) => ({ path: effect.path, job: effect.job, words: effectWords(effect) })),
    tooEarly: first === undefined ? null : { pages: new Set(early.map(({ path }) => path)).size, first },
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
