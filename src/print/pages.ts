import { differenceInDays } from 'date-fns';
import type { Job } from '../agents/ledger.js';
import type { ImprovePlan } from '../agents/plan.js';
import type { Proposal } from '../agents/prompt.js';
import { reasonWords } from '../agents/reasons.js';
import { type ConsideredPage, MIN_WEEKS } from '../agents/select.js';
import type { Settings } from '../config/schema.js';
import { counted, signedPercent, thousands } from '../format/numbers.js';
import { alignedLines, type Column } from '../terminal/table.js';
import { escapeUnsafe, indented } from '../format/text.js';

/** Skipped pages beyond these are only counted, unless `--verbose` is given. */
const LEFT_OUT_SHOWN = 15;

const LATE_REVIEW_DAYS = 7;
const LATE_SHOWN = 3;

const FLAGGED_COLUMNS: readonly Column[] = [
  { head: 'page', align: 'left', shrinks: true },
  { head: 'people a week', align: 'right' },
  { head: 'AI a week', align: 'right' },
  { head: 'AI per human', align: 'right' },
  { head: 'trend', align: 'right' },
];

/** Of any width: a terminal wraps the reasons. */
const LEFT_OUT_COLUMNS: readonly Column[] = [
  { head: 'page', align: 'left' },
  { head: 'left out', align: 'left' },
];

interface PlanView {
  readonly name: string;
  readonly plan: ImprovePlan;
  readonly rules: Settings['improve'];
  readonly width: number;
  /** Shows the exact prompts and all skipped pages. */
  readonly proposals: readonly Proposal[] | undefined;
}

/** A project's plan: a table no wider than the terminal. */
export function planLines({ name, plan, rules, width, proposals }: PlanView): string[] {
  const { flagged, waiting, toSend } = plan;
  const lines = [`${name}: ${flaggedWords(plan)}`];
  if (plan.weeks < MIN_WEEKS)
    lines.push(
      `  The history has only ${counted(plan.weeks, 'full week')}; ${MIN_WEEKS} are needed to distinguish sustained traffic from a burst.`,
    );
  for (const [index, { id, path }] of waiting.entries()) {
    const state = index < toSend.count ? 'not sent yet' : reasonWords(toSend.limit);
    lines.push(`  ${escapeUnsafe(path)}  planned earlier as job ${id}, ${state}`);
  }
  lines.push(...reviewLines(plan));
  if (flagged.length > 0) lines.push('', ...indentedTable(FLAGGED_COLUMNS, flagged.map(flaggedCells), width));
  for (const proposal of proposals ?? []) lines.push('', ...promptLines(proposal));
  lines.push(...leftOutLines(plan, rules, proposals === undefined ? LEFT_OUT_SHOWN : Infinity));
  if (flagged.length + Math.min(waiting.length, toSend.count) > 0)
    lines.push('', `Nothing was created. To create the jobs: readership improve --apply`);
  const [first] = flagged;
  if (first !== undefined)
    lines.push(`To choose pages: readership improve --apply ${first.path}, or --skip ${first.path}`);
  return lines;
}

function flaggedWords({ flagged, pairs }: ImprovePlan): string {
  if (pairs.length > 0)
    return `chance would decide which page of ${counted(pairs.length, 'pair')} gets a job now; the other is held out`;
  return `${flagged.length === 0 ? 'no page' : counted(flagged.length, 'page')} would get a job now`;
}

/** How long the pull requests have been waiting for review; after a week, which ones. */
function reviewLines({ inReview, now }: ImprovePlan): string[] {
  const [oldest] = inReview;
  if (oldest === undefined) return [];
  const days = (job: Job) => differenceInDays(now, job.ended_at ?? job.planned_at);
  const late = inReview.filter((job) => days(job) >= LATE_REVIEW_DAYS).slice(0, LATE_SHOWN);
  const age = days(oldest) === 0 ? 'less than a day' : `the oldest for ${counted(days(oldest), 'day')}`;
  return [
    `  ${counted(inReview.length, 'pull request')} waiting for review, ${age}`,
    ...late.map((job) =>
      escapeUnsafe(`    ${job.path}  job ${job.id}, ${counted(days(job), 'day')}, ${job.pr_link ?? ''}`),
    ),
  ];
}

/** The text after “no new job”, if a limit is the reason. */
export function whyNoJob({ plannedThisWeek, leftOut, inReview }: ImprovePlan): string {
  const isFull = leftOut.some(({ why }) => why.code === 'limit' && why.setting === 'maxOpenPullRequests');
  if (isFull && inReview.length > 0)
    return `: ${counted(inReview.length, 'pull request')} waiting for review (improve.maxOpenPullRequests). After a review, record it unless pullRequests is set: readership jobs merged ${inReview[0]?.id}, or jobs closed ${inReview[0]?.id}`;
  return plannedThisWeek > 0 ? `: ${counted(plannedThisWeek, 'page')} already chosen this week` : '';
}

const indentedTable = (...[columns, rows, width]: Parameters<typeof alignedLines>): string[] =>
  indented(alignedLines(columns, rows, width - 2));

const flaggedCells = ({ path, evidence }: ConsideredPage): string[] => {
  const { weekly_human, human_rank, weekly_ai, ai_rank, ai_per_human, trend } = evidence;
  return [
    path,
    `${thousands(weekly_human)} (#${human_rank})`,
    `${thousands(weekly_ai)} (#${ai_rank})`,
    ai_per_human === null ? '–' : ai_per_human.toFixed(1),
    trend === null ? '–' : signedPercent(trend),
  ];
};

const promptLines = ({ path, why, digest, prompt }: Proposal): string[] => [
  `  ${path}#${digest}: ${reasonWords(why)}`,
  ...prompt
    .trimEnd()
    .split('\n')
    .map((line) => `    | ${line}`.trimEnd()),
];

function leftOutLines(
  { leftOut, skips, beyondShare, belowFloor }: ImprovePlan,
  { readingShare, minWeeklyViews }: Settings['improve'],
  limit: number,
): string[] {
  // A manually skipped page is shown even if it has few views.
  const reasons = new Map([...skips, ...leftOut].map(({ path, why }) => [path, why] as const));
  const rows = [...reasons]
    .slice(0, limit)
    .map(([path, why]) => [escapeUnsafe(path), escapeUnsafe(reasonWords(why))]);
  const more = reasons.size - rows.length;
  const [skip] = skips;
  const uncounted = indented([
    more > 0 && `${counted(more, 'more page')} left out: --verbose lists them`,
    beyondShare > 0 &&
      `${counted(beyondShare, 'page')} beyond those that make up ${Math.round(readingShare * 100)}% of all views`,
    belowFloor > 0 && `${counted(belowFloor, 'page')} with fewer than ${minWeeklyViews} views a week`,
    skip !== undefined && `To undo a skip: readership improve --unskip ${escapeUnsafe(skip.path)}`,
  ]);
  return [
    ...(rows.length === 0 ? [] : ['', ...indentedTable(LEFT_OUT_COLUMNS, rows, Infinity)]),
    ...(uncounted.length === 0 ? [] : ['', ...uncounted]),
  ];
}
