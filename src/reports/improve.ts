import { z } from 'zod';
import { jobEffectRow } from '../agents/job-effects.js';
import { type Reason, reasonOf, reasonWords } from '../agents/reasons.js';
import type { CurrentSelection } from '../agents/plan.js';
import type { ConsideredPage } from '../agents/select.js';
import { dayOf } from '../day.js';
import { counted } from '../format/numbers.js';
import { capitalised } from '../format/text.js';
import { dayColumn, timestampColumn } from '../columns.js';
import {
  byGroup,
  type JobGroup,
  jobRow,
  type JobRow,
  type ReportedJob,
  reportedJob,
  waitingForReview,
} from './jobs.js';

/** Why a page was chosen, as numbers: its typical week, and the change within eight weeks; null if unknown. */
const weekly = z.object({
  human: z.number().nullable(),
  ai: z.number().nullable(),
  trend: z.number().nullable(),
});

const choiceRow = z.object({
  path: z.string(),
  code: z.string(),
  facts: z.string(),
  chosen_at: timestampColumn,
  newly_flagged: z.boolean(),
  weekly,
});

const improveRows = z.object({
  jobs: z.array(
    jobRow.extend({
      planned_at: timestampColumn,
      ended_at: timestampColumn.nullable(),
      merged_on: dayColumn.nullable(),
      reason: z.string(),
      newly_flagged: z.boolean(),
      weekly,
    }),
  ),
  effects: z.array(jobEffectRow),
  choices: z.array(choiceRow),
});

type ImproveRows = z.infer<typeof improveRows>;

/** As many are listed as `readership improve` lists. */
const NEXT_SHOWN = 5;

/**
 * The model of the improve report, with the jobs grouped by what they mean to the reader, and the pages up next: those
 * of the given selection, or else of the last one that is stored.
 */
export function improveModel(answers: object, selection?: CurrentSelection) {
  const rows = improveRows.parse(answers);
  const jobs = rows.jobs.map(jobModel);
  const groups = byGroup(jobs.filter(({ isMerged }) => !isMerged));
  const flagged = jobs.filter(({ isNew }) => isNew);
  const chosenBy = (code: string) => rows.choices.filter((choice) => choice.code === code).map(chosenPage);
  const stored = chosenBy('flagged');
  const isUnknown = ({ path }: { readonly path: string }) => stored.every((page) => page.path !== path);
  /** Flagged in `mode: plan`: no job was created for them. */
  const proposed = [...stored, ...(selection?.flagged ?? []).filter(isUnknown).map(selectedPage)];
  const next = selection?.next.map(selectedPage) ?? chosenBy('next');
  /** A page may have several jobs: the platform rejected the first. */
  const newlyFlagged = new Set([...flagged, ...proposed.filter(({ isNew }) => isNew)].map(({ path }) => path))
    .size;
  return {
    ...summaryOf(groups, newlyFlagged),
    /** What digests order projects by: the pull requests to review. */
    stake: groups.ready.length,
    ...groups,
    /** Open for longest first. */
    ready: groups.ready.toSorted((one, two) => Number(one.endedAt) - Number(two.endedAt)),
    proposed,
    newlyFlagged,
    /** The other pages with a job of the week or an open one, each once, the pages flagged without a job, and those up next. */
    pages: [
      ...otherPages(jobs, groups),
      ...proposed.map((page) => ({ ...page, state: 'No job yet' })),
      ...next
        .filter(isUnknown)
        .slice(0, NEXT_SHOWN)
        .map((page) => ({ ...page, flaggedOn: null, state: 'Up next' })),
    ],
    /** Merges of the last twelve weeks, with the views before and after. */
    effects: rows.effects,
  };
}

function jobModel(row: ImproveRows['jobs'][number]) {
  const { reason, weekly } = row;
  return {
    ...reportedJob(row),
    reason,
    /** The reason as numbers, or in words if it has none. */
    weekly: { ...weekly, note: weekly.human === null ? `${capitalised(reason)}.` : null },
    plannedAt: row.planned_at,
    endedAt: row.ended_at,
    isNew: row.newly_flagged,
    isMerged: row.merged_on !== null,
    flaggedOn: dayOf(row.planned_at),
    /** Of a job with a pull request, since when it has been open. */
    endedOn: row.ended_at && dayOf(row.ended_at),
    nextStep: NEXT_STEPS[row.state]?.(row.id) ?? null,
  };
}

const chosenPage = ({ path, chosen_at, newly_flagged, weekly, ...reason }: z.infer<typeof choiceRow>) => ({
  ...consideredPage(path, reasonOf(reason), weekly),
  isNew: newly_flagged,
  flaggedOn: dayOf(chosen_at),
});

/** As of now, so it was not flagged on a day before. */
const selectedPage = ({
  path,
  why,
  evidence: { weekly_human: human, weekly_ai: ai, trend },
}: ConsideredPage) => ({
  ...consideredPage(path, why, { human, ai, trend }),
  isNew: false,
  flaggedOn: null,
});

function consideredPage(path: string, why: Reason, weekly: z.infer<typeof choiceRow>['weekly']) {
  const words = reasonWords(why);
  const note = 'rank' in why ? `#${why.rank} of ${counted(why.pages, 'page')}` : words;
  return {
    path,
    reason: words,
    weekly,
    note: `${capitalised(note)}.`,
  };
}

/** The pages whose jobs are in none of the lists above, each once. */
function otherPages(
  jobs: readonly ReturnType<typeof jobModel>[],
  { ready, check, unknown, failed }: Readonly<Record<JobGroup, readonly ReportedJob[]>>,
) {
  const shown = new Set([...ready, ...check, ...unknown, ...failed].map(({ path }) => path));
  const others = new Map(jobs.filter(({ path }) => !shown.has(path)).map((job) => [job.path, job]));
  return [...others.values()].map(({ path, note, weekly, flaggedOn, isMerged, group }) => ({
    path,
    note: weekly.note ?? note,
    weekly,
    flaggedOn,
    state: isMerged ? 'Merged' : STATES[group],
  }));
}

const STATES = {
  ready: 'Pull request',
  check: 'Pull request',
  running: 'Running',
  unchanged: 'No change',
  failed: 'Failed',
  unknown: 'Outcome unknown',
} as const;

/** What to do about a job that failed. */
const NEXT_STEPS: Readonly<Partial<Record<JobRow['state'], (job: number) => string>>> = {
  failed: (job) => `Once the cause is fixed, ask the agent to continue: readership jobs message ${job} "…"`,
  refused: () => 'Once the cause is fixed, the page can be selected again.',
};

/** What there is to do, and what is running. */
function summaryOf(
  { ready, check, unknown, running }: Readonly<Record<JobGroup, readonly ReportedJob[]>>,
  flagged: number,
): { summary: string; detail: string } {
  const review = ready.length === 0 ? 'No pull requests to review' : waitingForReview(ready.length);
  const others = [
    ...(check.length > 0 ? [`${counted(check.length, 'pull request')} to check`] : []),
    ...(unknown.length > 0 ? [`${counted(unknown.length, 'job')} with an unknown outcome`] : []),
  ];
  const rest = others
    .map((words, index) => `, ${index + 1 === others.length ? 'and ' : ''}${words}`)
    .join('');
  const pages = flagged === 0 ? 'No pages newly flagged' : `${counted(flagged, 'page')} newly flagged`;
  const busy = running.length === 0 ? '' : `; ${counted(running.length, 'job')} running`;
  return { summary: `${review}${rest}.`, detail: `${pages}${busy}.` };
}
