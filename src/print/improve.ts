import { differenceInDays } from 'date-fns';
import type { ImprovePlan } from '../agents/plan.js';
import { limitWords, reasonWords } from '../agents/reasons.js';
import type { Proposal } from '../agents/prompt.js';
import type { OtherAddresses } from '../agents/ranking.js';
import { type ConsideredPage, MIN_WEEKS } from '../agents/select.js';
import type { Settings } from '../config/schema.js';
import { dayOf } from '../day.js';
import { inSequence, longDay } from '../format/days.js';
import { counted, signedPercent, thousands } from '../format/numbers.js';
import { escapeUnsafe, indented } from '../format/text.js';
import { evidenceRow, type Job } from '../state/jobs.js';
import { alignedLines, plainLines, type TableColumn } from '../terminal/table.js';

/** Pages beyond these are only counted, unless `--verbose` is given. */
const NEXT_SHOWN = 5;
const LEFT_OUT_SHOWN = 15;

const LATE_REVIEW_DAYS = 7;
const LATE_SHOWN = 3;

const RANKED_COLUMNS: readonly TableColumn[] = [
  { head: 'rank', align: 'right' },
  { head: 'page', align: 'left', shrinks: true },
  { head: 'views a week', align: 'right' },
  { head: 'people', align: 'right' },
  { head: 'AI', align: 'right' },
  { head: 'change', align: 'right' },
];

/** A terminal wraps the reasons. */
const LEFT_OUT_COLUMNS: readonly TableColumn[] = [
  { head: 'page', align: 'left', most: 48 },
  { head: 'left out', align: 'left' },
];

interface PlanView {
  readonly name: string;
  readonly plan: ImprovePlan;
  readonly rules: Settings['improve'];
  /** Columns of the terminal; undefined if there is none. */
  readonly width: number | undefined;
  /** With them, the exact prompts and all left-out pages are shown too. */
  readonly details?: PlanDetails | undefined;
}

interface PlanDetails {
  readonly proposals: readonly Proposal[];
  readonly others: OtherAddresses | undefined;
}

/** A project's plan: a table no wider than the terminal. */
export function improvePlanLines({ name, plan, rules, width, details }: PlanView): string[] {
  const { flagged, next, waiting, toPlan, toSend } = plan;
  const count = flagged.length === 0 ? 'no page' : counted(flagged.length, 'page');
  const lines = [`${name}: ${count} would get a job now`];
  if (plan.weeks < MIN_WEEKS)
    lines.push(
      `  The history has only ${counted(plan.weeks, 'full week')}; ${MIN_WEEKS} are needed for a ranking.`,
    );
  for (const [index, { id, path }] of waiting.entries()) {
    const state = index < toSend.count ? 'not sent yet' : `waits for room: ${limitWords(toSend)}`;
    lines.push(`  ${escapeUnsafe(path)}  planned earlier as job ${id}, ${state}`);
  }
  lines.push(...reviewLines(plan));
  if (flagged.length > 0) lines.push('', ...rankedTable(flagged, width));
  for (const proposal of details?.proposals ?? []) lines.push('', ...promptLines(proposal));
  const isShort = details === undefined;
  if (next.length > 0) {
    lines.push('', `Up next, with ${limitWords(toPlan)}:`);
    lines.push(...rankedTable(next.slice(0, isShort ? NEXT_SHOWN : next.length), width));
    if (isShort && next.length > NEXT_SHOWN)
      lines.push(`  ${counted(next.length - NEXT_SHOWN, 'more page')}: --verbose lists them`);
  }
  lines.push(...leftOutLines(plan, rules, isShort ? LEFT_OUT_SHOWN : Infinity, width));
  if (details !== undefined) lines.push('', ...indented([variantWords(plan, rules)]));
  if (details?.others !== undefined && details.others.views > 0)
    lines.push('', ...indented([otherWords(details.others)]));
  if (flagged.length + Math.min(waiting.length, toSend.count) > 0)
    lines.push('', `Nothing was created. To create the jobs: readership improve --apply`);
  const [first] = flagged;
  if (first !== undefined)
    lines.push(
      `Only for one page: readership improve --apply ${first.path}`,
      `Not for this page: readership improve --skip ${first.path}`,
    );
  return lines;
}

/** The same as JSON, with the prompts of the flagged pages. */
export const improvePlanJson = (project: string, plan: ImprovePlan, proposals: readonly Proposal[]) => ({
  project,
  ...plan,
  flagged: proposals.map(({ digest, prompt, ...page }) => ({ ...shownPage(page), digest, prompt })),
  next: plan.next.map(shownPage),
  leftOut: plan.leftOut.map(shownPage),
});

/** A page with the reason as a code and as text. */
const shownPage = ({ path, why, evidence }: ConsideredPage) => ({
  path,
  code: why.code,
  why: reasonWords(why),
  evidence: evidenceRow.parse(evidence),
});

function variantWords({ variants }: ImprovePlan, rules: Settings['improve']): string {
  const found = rules.variants === 'auto' ? 'as guessed from the addresses' : 'as configured';
  return variants.length === 0
    ? `No translations or versions, ${found} (improve.variants).`
    : escapeUnsafe(
        `Translations and versions, ${found} (improve.variants): ${inSequence(variants)}. Of a page in several, only the most viewed one gets a job.`,
      );
}

function otherWords({ week, views, paths, for_ai }: OtherAddresses): string {
  const such = paths.length === 0 ? '' : `, such as ${inSequence(paths)}`;
  const forAi = for_ai.map(
    ({ path, human, ai }) => `${path} (${thousands(human)} human, ${thousands(ai)} AI)`,
  );
  return escapeUnsafe(
    `Not considered, because they are not pages: files and system addresses${such}, with ${counted(views, 'view')} in the week of ${longDay(week)}.` +
      (forAi.length === 0 ? '' : ` Files for AI: ${inSequence(forAi)}.`),
  );
}

const openedAt = ({ ended_at, planned_at }: Job): Date => ended_at ?? planned_at;
const sinceOf = (job: Job): string => longDay(dayOf(openedAt(job)));

/** Since when pull requests have been waiting for review; after a week, which ones; and how many could not be looked up. */
function reviewLines({ inReview, now }: ImprovePlan): string[] {
  const waiting = inReview.filter(({ pull_request_problem: problem }) => problem === null);
  const toCheck = inReview.length - waiting.length;
  const [oldest] = waiting;
  const isLate = (job: Job) => differenceInDays(now, openedAt(job)) >= LATE_REVIEW_DAYS;
  const since = (job: Job) => `${waiting.length === 1 ? '' : ', the oldest'} since ${sinceOf(job)}`;
  return indented([
    oldest !== undefined && `${counted(waiting.length, 'pull request')} waiting for review${since(oldest)}`,
    ...waiting
      .filter(isLate)
      .slice(0, LATE_SHOWN)
      .map((job) =>
        escapeUnsafe(`  ${job.path}  job ${job.id}, since ${sinceOf(job)}, ${job.pr_link ?? ''}`),
      ),
    toCheck > 0 &&
      `${counted(toCheck, 'pull request')} to check, which could not be looked up: readership status`,
  ]);
}

/** How many jobs were created, or why none was. */
export const createdWords = (plan: ImprovePlan, created: number): string =>
  created === 0 ? `no new job${whyNoJob(plan)}` : `${counted(created, 'job')} created`;

/** The text after “no new job”, if a limit is the reason. */
function whyNoJob({ week, plannedThisWeek, toPlan, inReview }: ImprovePlan): string {
  if (toPlan.count === 0 && toPlan.setting === 'maxOpenPullRequests' && inReview.length > 0)
    return `: ${counted(inReview.length, 'pull request')} waiting for review (improve.maxOpenPullRequests). After a review, record its outcome, unless pullRequests is set: readership jobs settle ${inReview[0]?.id} --merged, or --closed`;
  return plannedThisWeek > 0
    ? `: ${counted(plannedThisWeek, 'job')} already planned for the week of ${longDay(week)}`
    : '';
}

const indentedTable = (
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  width: number | undefined,
): string[] =>
  indented(width === undefined ? plainLines(columns, rows) : alignedLines(columns, rows, width - 2));

/** Pages with their rank and the views of a typical week, rounded so that those of people and AI add up. */
const rankedTable = (pages: readonly ConsideredPage[], width: number | undefined): string[] =>
  indentedTable(
    RANKED_COLUMNS,
    pages.map(({ path, why, evidence: { weekly_human, weekly_ai, trend } }) => {
      const [people, ai] = [Math.round(weekly_human), Math.round(weekly_ai)];
      return [
        'rank' in why ? `#${thousands(why.rank)}` : '',
        path,
        ...[people + ai, people, ai].map(thousands),
        trend === null ? '–' : signedPercent(trend),
      ];
    }),
    width,
  );

const promptLines = ({ path, why, digest, prompt }: Proposal): string[] => [
  `  ${path}#${digest}: ${reasonWords(why)}`,
  '    What the agent would get:',
  ...prompt
    .trimEnd()
    .split('\n')
    .map((line) => `    | ${line}`.trimEnd()),
];

function leftOutLines(
  { leftOut, skips, belowMinimum }: ImprovePlan,
  { minWeeklyViews }: Settings['improve'],
  limit: number,
  width: number | undefined,
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
    belowMinimum > 0 &&
      `${counted(belowMinimum, 'page')} with fewer than ${minWeeklyViews} views in a typical week`,
    skip !== undefined && `To undo a skip: readership improve --unskip ${escapeUnsafe(skip.path)}`,
  ]);
  return [
    ...(rows.length === 0
      ? []
      : ['', ...indentedTable(LEFT_OUT_COLUMNS, rows, width === undefined ? width : Infinity)]),
    ...(uncounted.length === 0 ? [] : ['', ...uncounted]),
  ];
}
