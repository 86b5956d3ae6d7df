import { z } from 'zod';
import { dayColumn } from '../warehouse/query.js';
import { signedPercent, thousands } from '../format/numbers.js';

export const leavingColumn = z.object({ human_change: z.number(), ai_change: z.number() }).nullable();

/** The numbers behind a flagged page; those of reading are medians of a week. */
const flagged = z.object({
  code: z.literal('flagged'),
  rank: z.int(),
  weekly_human: z.number(),
  human_rank: z.int(),
  weekly_ai: z.number(),
  ai_rank: z.int(),
  ai_per_human: z.number().nullable(),
  trend: z.number().nullable(),
  weeks: z.int(),
  /** Changes beside the middle page, if people leave the page while AI stays; null otherwise. */
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
    setting: z.enum(['maxJobsPerRun', 'maxJobsPerWeek']),
    limit: z.int(),
  }),
  z.object({ code: z.literal('skipped'), until: dayColumn.nullable() }),
  /** `not-considered`: too little read for a page that somebody named. `other`: words of 0.1.0. */
  z.object({ code: z.enum(['not-considered', 'other']), words: z.string() }),
]);

/** Why a page is flagged for a job, or left out: a code, and what its sentence says beyond it. */
export type Reason = z.infer<typeof reasonSchema>;
export type FlagReason = z.infer<typeof flagged>;

/** A reason as it is stored: the code, and the rest as JSON. */
export const storedReason = ({ code, ...facts }: Reason) => ({ code, facts: JSON.stringify(facts) });

export const reasonOf = ({ code, facts }: { readonly code: string; readonly facts: string }): Reason =>
  reasonSchema.parse({ ...z.looseObject({}).parse(JSON.parse(facts)), code });

/** A reason in words. They hold no text of the page, since they go into its prompt. */
export function wordsOf(reason: Reason): string {
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
      return `had job ${reason.job}, which ended on ${reason.ended}, less than ${reason.cooldown_days} days ago`;
    case 'limit':
      return `waits for a later run: improve.${reason.setting} is ${reason.limit}`;
    case 'skipped':
      return reason.until === null ? 'skipped by hand' : `skipped by hand until ${reason.until}`;
    case 'not-considered':
    case 'other':
      return reason.words;
  }
}

/** Changes of weekly reading smaller than this are called steady. */
const STEADY = 0.05;

function flagWords(reason: FlagReason): string {
  const { rank, weekly_human, human_rank, weekly_ai, ai_rank, ai_per_human, trend, weeks, leaving } = reason;
  const signal =
    leaving === null
      ? ''
      : `people leave, AI stays: human views ${signedPercent(leaving.human_change)} and AI views ${signedPercent(leaving.ai_change)} ` +
        'over eight weeks, beside the middle page; ';
  const views = (median: number): string => thousands(Math.round(median));
  const before = `${Math.floor(weeks / 2)} weeks before`;
  const course =
    trend === null
      ? 'read only lately'
      : Math.abs(trend) < STEADY
        ? 'steady'
        : `${signedPercent(trend)} over the ${before}`;
  const ratio =
    ai_per_human === null ? 'read by AI alone' : `${ai_per_human.toFixed(1)} AI views for each human one`;
  return (
    signal +
    `number ${rank} in sustained reading, with ${views(weekly_human)} human views (number ${human_rank}) and ` +
    `${views(weekly_ai)} AI views (number ${ai_rank}) in a median week of the last ${weeks}; ${course}, ${ratio}`
  );
}
