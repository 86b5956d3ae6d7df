import { z } from 'zod';
import { dayColumn } from '../columns.js';
import type { Day } from '../day.js';
import { longDay } from '../format/days.js';
import { counted, inWords, percentOf, thousands } from '../format/numbers.js';
import { type Evidence, evidenceRow } from '../state/jobs.js';

/** For a page that nothing is known of. */
export const NO_EVIDENCE: Evidence = { weekly_human: 0, weekly_ai: 0, trend: null, weeks: [] };

/** The views of a page on its last complete days, up to `until`, and those that are usual on these weekdays. */
const lately = z.object({ days: z.int(), until: dayColumn, views: z.int(), usual: z.int() });
export type Lately = z.infer<typeof lately>;
/** Unknown if the last days are not all loaded; 0.4 did not store it. */
const latelyIfKnown = lately.nullable().default(null);

const rankedReason = evidenceRow.extend({
  /** `next`: the page qualifies as well, and waits only for room. */
  code: z.enum(['flagged', 'next']),
  /** Among all pages of the site. */
  rank: z.int(),
  pages: z.int(),
  /** Their number. */
  weeks: z.int(),
  lately: latelyIfKnown,
});
const days = z.int();

const reasonSchema = z.discriminatedUnion('code', [
  rankedReason,
  z.object({ code: z.enum(['not-plain', 'excluded', 'not-in-sitemap', 'few-weeks']) }),
  z.object({ code: z.literal('variant'), of: z.string(), has_job: z.boolean() }),
  z.object({ code: z.literal('gone'), lately: latelyIfKnown }),
  z.object({ code: z.literal('few-views'), minimum: z.int() }),
  z.object({ code: z.enum(['few-days', 'few-days-by-people']), days }),
  z.object({ code: z.literal('has-job'), job: z.int(), state: z.string() }),
  z.object({
    code: z.literal('had-job'),
    job: z.int(),
    is_failed: z.boolean(),
    ended: dayColumn,
    until: dayColumn,
  }),
  z.object({ code: z.literal('in-review'), job: z.int(), since: dayColumn }),
  z.object({ code: z.literal('rejected'), job: z.int(), on: dayColumn }),
  z.object({ code: z.literal('skipped'), until: dayColumn.nullable() }),
]);

/** Why a page is flagged for a job, is up next or is left out: a code and its details. */
export type Reason = z.infer<typeof reasonSchema>;
type RankedReason = z.infer<typeof rankedReason>;

/** A reason as it is stored: the code, and the rest as JSON. */
export const storedReason = ({ code, ...facts }: Reason) => ({ code, facts: JSON.stringify(facts) });

export const reasonOf = ({ code, facts }: { readonly code: string; readonly facts: string }): Reason =>
  reasonSchema.parse({ ...z.looseObject({}).parse(JSON.parse(facts)), code });

export const reasonOfSkip = (until: Day | null): Reason => ({ code: 'skipped', until });

/** A reason as a phrase. That of a flagged page contains no path, since it goes into the prompt. */
export function reasonWords(reason: Reason): string {
  switch (reason.code) {
    case 'flagged':
    case 'next':
      return rankWords(reason);
    case 'not-plain':
      return 'not a plain path, so it cannot go into a prompt';
    case 'excluded':
      return 'excluded (improve.exclude)';
    case 'not-in-sitemap':
      return 'not in the sitemap';
    case 'gone':
      return goneWords(reason.lately);
    case 'variant':
      return reason.has_job
        ? `translation or version of ${reason.of}, which has, or recently had, a job`
        : `translation or version of ${reason.of}, which has more views`;
    case 'few-views':
      return `fewer than ${thousands(reason.minimum)} views in a typical week (improve.minWeeklyViews)`;
    case 'few-weeks':
      return 'the history has fewer than four full weeks';
    case 'few-days':
      return `viewed on only ${reason.days} days`;
    case 'few-days-by-people':
      return `viewed by people on only ${reason.days} days`;
    case 'has-job':
      return `has job ${reason.job}, ${reason.state}`;
    case 'had-job':
      return `job ${reason.job} ${reason.is_failed ? 'failed' : 'ended'} on ${longDay(reason.ended)}; its next one may start on ${longDay(reason.until)}`;
    case 'in-review':
      return `pull request of job ${reason.job} in review since ${longDay(reason.since)}`;
    case 'rejected':
      return `rejected on ${longDay(reason.on)} (job ${reason.job}): it gets another job only if you approve it`;
    case 'skipped':
      return reason.until === null
        ? 'skipped by your team'
        : `skipped by your team until ${longDay(reason.until)}`;
  }
}

function goneWords(lately: Lately | null): string {
  if (lately === null) return 'rarely viewed anymore';
  const views = lately.views === 0 ? 'no views' : `only ${counted(lately.views, 'view')}`;
  return `${views} in ${daysWords(lately)} (usually ${thousands(lately.usual)})`;
}

const daysWords = ({ days, until }: Lately): string => `the ${inWords(days)} days to ${longDay(until)}`;

/** Smaller changes in weekly views are called steady. */
const STEADY = 0.05;

function rankWords({ rank, pages, weekly_human, weekly_ai, trend, weeks, lately }: RankedReason): string {
  const [people, ai] = [Math.round(weekly_human), Math.round(weekly_ai)];
  const half = inWords(Math.floor(weeks / 2));
  const course =
    trend === null
      ? ''
      : Math.abs(trend) < STEADY
        ? `, steady over ${inWords(weeks)} weeks`
        : `; the last ${half} weeks are ${trend < 0 ? 'down' : 'up'} ${percentOf(trend)} from the ${half} before`;
  return (
    `#${thousands(rank)} of ${thousands(pages)} pages: ${thousands(people + ai)} views in a typical week ` +
    `(${thousands(people)} by people, ${thousands(ai)} by AI)${course}` +
    (lately === null ? '' : `; ${thousands(lately.views)} in ${daysWords(lately)}`)
  );
}

/** How many jobs are allowed, and the limit that decides it. */
export interface Room {
  readonly count: number;
  readonly setting: 'maxJobsPerWeek' | 'maxOpenPullRequests';
  readonly limit: number;
}

/** The limit as a phrase: `at most 5 jobs a week (improve.maxJobsPerWeek)`. */
export function limitWords({ setting, limit }: Room): string {
  const most = { maxJobsPerWeek: 'job', maxOpenPullRequests: 'open pull request' }[setting];
  return `at most ${counted(limit, most)}${setting === 'maxJobsPerWeek' ? ' a week' : ''} (improve.${setting})`;
}

/** When what waits for room is sent, as a phrase. */
export const whenRoom = (room: Room): string => `when there is room: ${limitWords(room)}`;
