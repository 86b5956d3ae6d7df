import { z } from 'zod';
import { webLink } from '../../format/paths.js';
import { counted } from '../../format/numbers.js';
import type { Answers } from '../answers.js';
import { groupOf, type JobGroup } from '../weekly/agent-work.js';
import { job } from '../weekly/rows.js';

const count = z.number().int().nonnegative();

const improveRows = z.object({
  jobs: z.array(job.extend({ reason: z.string(), newly_flagged: z.boolean(), human: count, ai: count })),
});

/** A job, with the views of its page in the reported week. */
interface ImproveJob {
  readonly id: number;
  readonly path: string;
  readonly group: JobGroup;
  readonly reason: string;
  readonly human: number;
  readonly ai: number;
  /** The pull request, when its address is one of the web. */
  readonly pullRequest: string | null;
  readonly plannedAt: Date;
  readonly endedAt: Date | null;
  readonly note: string | null;
}

/** The improve report, before it is shown in any way: the jobs by what they mean for the reader. */
export interface ImproveModel extends Readonly<Record<JobGroup, readonly ImproveJob[]>> {
  readonly summary: string;
  /** Planned in the week or since, whatever became of them. */
  readonly flagged: readonly ImproveJob[];
}

export function improveModel(answers: Answers): ImproveModel {
  const rows = improveRows.parse(answers).jobs;
  const jobs = rows.map((row) => ({
    id: row.id,
    path: row.path,
    group: groupOf(row),
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
  return { summary: summaryOf(groups.ready.length, flagged.length, groups), ...groups, flagged };
}

/** What there is to do, in a sentence. */
function summaryOf(
  ready: number,
  flagged: number,
  { unconfirmed, running }: Pick<ImproveModel, 'unconfirmed' | 'running'>,
): string {
  const waiting =
    ready === 0
      ? 'No pull request waits for you'
      : `${counted(ready, 'pull request')} ${ready === 1 ? 'waits' : 'wait'} for your review`;
  const settle = unconfirmed.length > 0 ? `, and ${counted(unconfirmed.length, 'job')} to be settled` : '';
  const pages = flagged === 0 ? 'No page was newly flagged' : `${counted(flagged, 'page')} newly flagged`;
  const busy = running.length === 0 ? '' : `; ${counted(running.length, 'job')} running`;
  return `${waiting}${settle}. ${pages}${busy}.`;
}
