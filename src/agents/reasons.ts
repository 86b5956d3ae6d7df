import { z } from 'zod';
import { longDay } from '../format/days.js';
import { dayColumn } from '../warehouse/query.js';
import { signedPercent, thousands } from '../format/numbers.js';

export const leavingColumn = z.object({ human_change: z.number(), ai_change: z.number() }).nullable();

/** The evidence stored with a job: views by people and AI over the last full weeks, at most 8. */
export const evidenceRow = z.object({
  /** Weekly medians. */
  weekly_human: z.number(),
  weekly_ai: z.number(),
  /** 1 is the most viewed page. */
  human_rank: z.int(),
  ai_rank: z.int(),
  /** Null without human views. */
  ai_per_human: z.number().nullable(),
  /** Relative change from the older to the newer half of the weeks; null if the older half has no views or is before a break. */
  trend: z.number().nullable(),
  /** Oldest first. */
  weeks: z.array(z.object({ week: dayColumn, human: z.int(), ai: z.int() })),
});
export type Evidence = z.infer<typeof evidenceRow>;

/** For a job stored without evidence. */
export const NO_EVIDENCE: Evidence = {
  weekly_human: 0,
  weekly_ai: 0,
  human_rank: 0,
  ai_rank: 0,
  ai_per_human: null,
  trend: null,
  weeks: [],
};

const flagged = evidenceRow.extend({
  code: z.literal('flagged'),
  rank: z.int(),
  /** Their number. */
  weeks: z.int(),
  /** Changes relative to the median page, if the page is losing people but not AI; null otherwise. */
  leaving: leavingColumn.default(null),
});
const days = z.int();

const reasonSchema = z.discriminatedUnion('code', [
  flagged,
  z.object({ code: z.enum(['not-plain', 'excluded', 'not-in-sitemap']) }),
  z.object({ code: z.enum(['few-days', 'few-days-by-people']), days }),
  z.object({ code: z.literal('has-job'), job: z.int(), state: z.string() }),
  z.object({ code: z.literal('had-job'), job: z.int(), ended: dayColumn, cooldown_days: days }),
  z.object({
    code: z.literal('limit'),
    setting: z.enum(['maxJobsPerRun', 'maxJobsPerWeek', 'maxOpenPullRequests']),
    limit: z.int(),
  }),
  z.object({ code: z.literal('in-review'), job: z.int(), since: dayColumn }),
  z.object({ code: z.literal('changed-elsewhere'), link: z.string() }),
  z.object({ code: z.literal('rejected'), job: z.int(), on: dayColumn }),
  /** The twin of a page with a job; `until` is null while the pull request of that job is open. */
  z.object({
    code: z.literal('held-out'),
    twin: z.string(),
    job: z.int(),
    drawn: dayColumn,
    until: dayColumn.nullable(),
  }),
  z.object({ code: z.literal('skipped'), until: dayColumn.nullable() }),
  /** A page given by name has too few views. */
  z.object({ code: z.literal('not-considered'), words: z.string() }),
]);

/** Why a page is flagged for a job, or left out: a code and its details. */
export type Reason = z.infer<typeof reasonSchema>;
type FlagReason = z.infer<typeof flagged>;

/** A reason as it is stored: the code, and the rest as JSON. */
export const storedReason = ({ code, ...facts }: Reason) => ({ code, facts: JSON.stringify(facts) });

export const reasonOf = ({ code, facts }: { readonly code: string; readonly facts: string }): Reason =>
  reasonSchema.parse({ ...z.looseObject({}).parse(JSON.parse(facts)), code });

/** A reason as a phrase. That of a flagged page contains no path, since it goes into the prompt. */
export function reasonWords(reason: Reason): string {
  switch (reason.code) {
    case 'flagged':
      return flagWords(reason);
    case 'not-plain':
      return 'not a plain path, so it cannot go into a prompt';
    case 'excluded':
      return 'excluded by improve.exclude';
    case 'not-in-sitemap':
      return 'not in the sitemap';
    case 'few-days':
      return `viewed on only ${reason.days} days`;
    case 'few-days-by-people':
      return `viewed by people on only ${reason.days} days`;
    case 'has-job':
      return `has job ${reason.job}, ${reason.state}`;
    case 'had-job':
      return `had job ${reason.job}, which ended on ${longDay(reason.ended)}, less than ${reason.cooldown_days} days ago`;
    case 'in-review':
      return `pull request of job ${reason.job} in review since ${longDay(reason.since)}`;
    case 'changed-elsewhere':
      return `an open pull request of others changes it: ${reason.link}`;
    case 'rejected':
      return `rejected on ${longDay(reason.on)} (job ${reason.job}): it gets another job only if you propose it again`;
    case 'held-out': {
      const until = reason.until === null ? 'eight weeks after the review' : longDay(reason.until);
      return `held out until ${until}: on ${longDay(reason.drawn)}, chance gave job ${reason.job} to ${reason.twin}`;
    }
    case 'limit':
      return `left for a later run: improve.${reason.setting} is ${reason.limit}`;
    case 'skipped':
      return reason.until === null ? 'skipped manually' : `skipped manually until ${longDay(reason.until)}`;
    case 'not-considered':
      return reason.words;
  }
}

/** Smaller changes in weekly views are called steady. */
const STEADY = 0.05;

/** How the reason begins for a page that loses people, but not AI. */
export const LEAVING = 'losing people but not AI';

function flagWords(reason: FlagReason): string {
  const { rank, weekly_human, human_rank, weekly_ai, ai_rank, ai_per_human, trend, weeks, leaving } = reason;
  const signal =
    leaving === null
      ? ''
      : `${LEAVING}: human views ${signedPercent(leaving.human_change)} and AI views ${signedPercent(leaving.ai_change)} ` +
        'over eight weeks, relative to the median page; ';
  const views = (median: number): string => thousands(Math.round(median));
  const before = `${Math.floor(weeks / 2)} weeks before`;
  const change =
    trend === null
      ? 'no comparable earlier views'
      : Math.abs(trend) < STEADY
        ? 'steady'
        : `${signedPercent(trend)} compared with the ${before}`;
  const ratio =
    ai_per_human === null ? 'viewed only by AI' : `${ai_per_human.toFixed(1)} AI views per human view`;
  return (
    signal +
    `#${rank} in sustained traffic, with ${views(weekly_human)} human views (#${human_rank}) and ` +
    `${views(weekly_ai)} AI views (#${ai_rank}) in a median week of the last ${weeks}; ${change}, ${ratio}`
  );
}
