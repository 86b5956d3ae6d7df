import { z } from 'zod';
import { effectWords } from '../../agents/effect-words.js';
import { jobEffectRow, type JobEffect } from '../../agents/read-effects.js';
import { addDays, type Day } from '../../day.js';
import { webLink } from '../../format/paths.js';
import { counted } from '../../format/numbers.js';
import type { Answers } from '../answers.js';
import { ISO_CALENDAR, periodOf } from '../period.js';
import { groupOf, type JobGroup } from '../weekly/agent-work.js';
import { job } from '../weekly/rows.js';

const count = z.number().int().nonnegative();

const improveRows = z.object({
  jobs: z.array(job.extend({ reason: z.string(), newly_flagged: z.boolean(), human: count, ai: count })),
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

const TASKS: ReadonlySet<JobGroup> = new Set(['ready', 'unconfirmed']);

/** Pages left out beyond these are counted. */
const SKIPPED_LISTED = 10;

/** A job, with the views of its page in the reported week. */
interface ImproveJob {
  readonly id: number;
  readonly path: string;
  readonly group: JobGroup;
  /** Whether somebody has to do something about it; of the others, the group says all. */
  readonly isTask: boolean;
  readonly reason: string;
  readonly human: number;
  readonly ai: number;
  /** The pull request, when its address is one of the web. */
  readonly pullRequest: string | null;
  readonly plannedAt: Date;
  readonly endedAt: Date | null;
  readonly note: string | null;
}

/** Reading of a page beside that of untouched pages, in a sentence. */
interface ImproveEffect {
  readonly path: string;
  readonly job: number;
  readonly words: string;
}

/** What became of reading after earlier pull requests, where it can be told by now. */
interface EarlierWork {
  readonly effects: readonly ImproveEffect[];
  readonly tooEarly: TooEarly | null;
}

/** Pages whose four weeks after the change are not over; `first` is the day when those of the first are. */
interface TooEarly {
  readonly pages: number;
  readonly first: Day;
}

/** A page that has no job, and why it deserves one or was left out. */
interface ChosenPage {
  readonly path: string;
  readonly why: string;
  /** In a median week. */
  readonly human: number;
  readonly ai: number;
}

/** The improve report, before it is shown in any way: the jobs by what they mean for the reader. */
export interface ImproveModel extends Readonly<Record<JobGroup, readonly ImproveJob[]>> {
  readonly summary: string;
  /** Planned in the week or since, whatever became of them. */
  readonly flagged: readonly ImproveJob[];
  /** Flagged in `mode: plan`: nothing was created for them. */
  readonly proposed: readonly ChosenPage[];
  /** Null without any pull request of the last twelve weeks. */
  readonly earlierWork: EarlierWork | null;
  readonly skipped: readonly ChosenPage[];
  /** Pages skipped beyond those that are listed. */
  readonly moreSkipped: number;
}

export function improveModel(answers: Answers): ImproveModel {
  const { jobs: rows, effects, choices } = improveRows.parse(answers);
  const jobs = rows.map((row) => ({
    id: row.id,
    path: row.path,
    group: groupOf(row),
    isTask: TASKS.has(groupOf(row)),
    reason: row.reason,
    human: row.human,
    ai: row.ai,
    pullRequest: webLink(row.pr_link) ?? null,
    plannedAt: row.planned_at,
    endedAt: row.ended_at,
    note: row.note,
  }));
  const of = (group: JobGroup): ImproveJob[] => jobs.filter((job) => job.group === group);
  const groups = {
    ready: of('ready'),
    running: of('running'),
    unchanged: of('unchanged'),
    failed: of('failed'),
    unconfirmed: of('unconfirmed'),
  };
  const flagged = jobs.filter((_, index) => rows[index]?.newly_flagged === true);
  const pages = choices.map(({ weekly_human, weekly_ai, ...page }) => ({
    ...page,
    human: Math.round(weekly_human),
    ai: Math.round(weekly_ai),
  }));
  const skipped = pages.filter(({ is_flagged }) => !is_flagged);
  return {
    summary: summaryOf(groups.ready.length, flagged.length, groups),
    ...groups,
    flagged,
    proposed: pages.filter(({ is_flagged }) => is_flagged),
    earlierWork: effects.length === 0 ? null : earlierWorkOf(effects),
    skipped: skipped.slice(0, SKIPPED_LISTED),
    moreSkipped: Math.max(0, skipped.length - SKIPPED_LISTED),
  };
}

function earlierWorkOf(all: readonly JobEffect[]): EarlierWork {
  const isEarly = ({ effect }: JobEffect): boolean => effect.verdict === 'too early';
  return {
    effects: all
      .filter((effect) => !isEarly(effect))
      .map((effect) => ({ path: effect.path, job: effect.job, words: effectWords(effect) })),
    tooEarly: tooEarlyOf(all.filter(isEarly)),
  };
}

function tooEarlyOf(effects: readonly JobEffect[]): TooEarly | null {
  const [first] = effects
    .map(({ counted_from }) => addDays(periodOf('week', counted_from, ISO_CALENDAR).first, 7 + 4 * 7))
    .sort();
  return first === undefined ? null : { pages: new Set(effects.map(({ path }) => path)).size, first };
}

/** What there is to do, in a sentence. */
function summaryOf(
  ready: number,
  flagged: number,
  { unconfirmed, running }: Pick<ImproveModel, 'unconfirmed' | 'running'>,
): string {
  const waiting =
    ready === 0
      ? 'No new pull request waits for you'
      : `${counted(ready, 'pull request')} ${ready === 1 ? 'waits' : 'wait'} for your review`;
  const settle = unconfirmed.length > 0 ? `, and ${counted(unconfirmed.length, 'job')} to be settled` : '';
  const pages = flagged === 0 ? 'No page was newly flagged' : `${counted(flagged, 'page')} newly flagged`;
  const busy = running.length === 0 ? '' : `; ${counted(running.length, 'job')} running`;
  return `${waiting}${settle}. ${pages}${busy}.`;
}
