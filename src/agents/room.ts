import { UTCDateMini as UTCDate } from '@date-fns/utc/date/mini';
import { addWeeks, startOfISOWeek } from 'date-fns';
import type { Settings } from '../config/schema.js';
import type { Job } from '../state/jobs.js';
import { OPEN_STATES } from './lifecycle.js';

/** The limits in the `improve` section of the configuration. */
export type RoomRules = Pick<Settings['improve'], 'maxJobsPerWeek' | 'maxOpenPullRequests'>;

/** How many jobs are allowed, and the limit that decides it. */
export interface Room {
  readonly count: number;
  readonly setting: keyof RoomRules;
  readonly limit: number;
}

/** The limit as a phrase: `improve.maxJobsPerWeek is 5`. */
export const limitWords = ({ setting, limit }: Room): string => `improve.${setting} is ${limit}`;

/** Whether its pull request waits for review, as far as is known. */
export const isInReview = ({ pr_link, merged_on, closed_on, merged_into, state }: Job): boolean =>
  pr_link !== null && merged_on === null && closed_on === null && merged_into === null && state !== 'active';

/**
 * How many jobs may be planned now, and how many of those that wait may be sent: limits may have been lowered since
 * they were planned, and a job counts toward the week (UTC) in which it is sent.
 */
export function roomFor(jobs: readonly Job[], rules: RoomRules, now: Date) {
  const monday = startOfISOWeek(new UTCDate(now));
  const isThisWeek = (at: Date) => at >= monday && at < addWeeks(monday, 1);
  const waiting = jobs.filter(({ state }) => state === 'planned').length;
  const sent = jobs.filter(({ state }) => state !== 'planned' && state !== 'refused');
  const week = sent.filter(({ submitted_at, planned_at }) => isThisWeek(submitted_at ?? planned_at)).length;
  const open = sent.filter((job) => OPEN_STATES.has(job.state) || isInReview(job)).length;
  const roomBeside = (others: number) =>
    roomLeft(rules, { maxJobsPerWeek: week + others, maxOpenPullRequests: open + others });
  return { plannedThisWeek: week + waiting, toPlan: roomBeside(waiting), toSend: roomBeside(0) };
}

/** How many new jobs are allowed with those that count toward each limit. */
function roomLeft(rules: RoomRules, used: Readonly<Record<keyof RoomRules, number>>): Room {
  const roomBy = (setting: keyof RoomRules): Room => ({
    count: Math.max(0, rules[setting] - used[setting]),
    setting,
    limit: rules[setting],
  });
  const [week, review] = [roomBy('maxJobsPerWeek'), roomBy('maxOpenPullRequests')];
  return review.count < week.count ? review : week;
}
