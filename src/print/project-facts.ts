import { subDays } from 'date-fns';
import { LIMITS } from '../api/schema.js';
import type { Day } from '../day.js';
import { DISAGREEMENT_WORDS } from '../export/paging.js';
import { dayList, longDay, moment, plainDayRange } from '../format/days.js';
import { counted, thousands } from '../format/numbers.js';
import type { ProjectStatus } from '../service/status.js';
import type { Colors } from '../terminal/output.js';

/** A fact with its name. If it is not as it should be, its color says how urgent it is, and the command what changes it. */
export interface Fact {
  readonly name: string;
  readonly value: string;
  readonly color?: 'red' | 'yellow';
  readonly command?: string | undefined;
}

export const factLines = (facts: readonly Fact[], colors: Colors): string[] =>
  facts.map(({ name, value, color, command }) => {
    const words = command === undefined ? value : `${value}: ${command}`;
    return `  ${name.padEnd(14)}${color ? colors[color](words) : words}`;
  });

/** The facts about a project: how far its history goes, and what is not as it should be. */
export function projectFacts(status: ProjectStatus, now: Date): Fact[] {
  const { firstDay, lastDay, daysStored, gaps, isYesterdayStored, inconsistent, failed, stuck } = status;
  const { pageSize, pageSizeUntil, keptFrom, keptFromUntil, disagreement } = status;
  if (firstDay === null || lastDay === null)
    return [failure('history', 'nothing is loaded yet', 'readership export')];
  const stuckDays = stuck.map(({ day }) => day);
  const readSoon = inconsistent.filter((day) => !stuckDays.includes(day));
  const settling = settlingText(status);
  const unverified = unverifiedText(status, now);
  const all = [
    fact('history', `${plainDayRange({ first: firstDay, last: lastDay })}, ${counted(daysStored, 'day')}`),
    gaps.length > 0 && fact('loading', `${counted(gaps.length, 'day')} left`),
    !isYesterdayStored && gaps.length < 2 && warning('yesterday', 'not loaded yet', 'readership export'),
    readSoon.length > 0 && warning('inconsistent', `${daysText(readSoon)}; read again the next night`),
    stuckDays.length > 0 && warning('inconsistent', `${daysText(stuckDays)}; ask the platform's operators`),
    failed.length > 0 && failure('failed', daysText(failed), 'readership export'),
    settling !== undefined && fact('settling', settling),
    unverified !== undefined && warning('verified', unverified, 'readership audit'),
    fact('requests', requestsText(status)),
    pageSize !== LIMITS.viewsPage.max &&
      fact('page size', `${pageSize} rows at once${triedAgain('more', pageSizeUntil)}`),
    disagreement !== null && fact('platform', DISAGREEMENT_WORDS[disagreement]),
    keptFrom !== null &&
      fact('kept', `by the platform since ${longDay(keptFrom)}${triedAgain('older days', keptFromUntil)}`),
  ];
  return all.filter((one) => one !== false);
}

export const fact = (name: string, value: string): Fact => ({ name, value });
export const warning = (name: string, value: string, command?: string): Fact => ({
  name,
  value,
  color: 'yellow',
  command,
});
const failure = (name: string, value: string, command: string): Fact => ({
  name,
  value,
  color: 'red',
  command,
});

/** Whether nothing but the numbers of a project is to be shown. */
export const isUpToDate = (status: ProjectStatus, now: Date): boolean =>
  status.firstDay !== null && status.requests.pausedUntil === null && projectFacts(status, now).length === 2;

const triedAgain = (what: string, from: Day | null): string =>
  from === null ? '' : `; ${what} will be tried again on ${longDay(from)}`;

const daysText = (days: readonly Day[]): string => `${counted(days.length, 'day')}: ${dayList(days)}`;

/** What the history of changes says of `settleDays`; undefined if it seems long enough. */
function settlingText({ settling, settleDays, recommendedSettleDays }: ProjectStatus): string | undefined {
  const { oldest_change_days: oldest } = settling;
  if (oldest === null || recommendedSettleDays === null) return undefined;
  return `days changed up to ${counted(oldest, 'day')} after they ended: set history.settleDays to ${recommendedSettleDays} (now ${settleDays})`;
}

const UNVERIFIED_DAYS = 7;

/** Since when the history was not compared with the platform; undefined if it was within a week, or is younger. */
function unverifiedText(
  { verifiedAt, firstLoadAt, disagreement }: ProjectStatus,
  now: Date,
): string | undefined {
  if (disagreement === 'page totals') return undefined;
  const since = verifiedAt ?? firstLoadAt;
  if (since === null || since >= subDays(now, UNVERIFIED_DAYS)) return undefined;
  return `not compared with the platform since ${moment(since)}`;
}

function requestsText({ requests }: ProjectStatus): string {
  const { perHour, learnedPerHour: learned } = requests;
  const isLearned = learned !== null && (perHour === 'unlimited' || learned < perHour);
  const cap = isLearned ? learned : perHour;
  const ofCap = cap === 'unlimited' ? '' : ` of ${thousands(cap)}`;
  const used = `${thousands(requests.usedThisHour)}${ofCap} used in the last hour${isLearned ? ', the most that the platform accepts' : ''}`;
  const paused =
    requests.pausedUntil === null
      ? ''
      : `; the platform refused one: the next is sent on ${moment(requests.pausedUntil)}, or once readership doctor finds that it answers`;
  return `${used}${paused}${requests.left === 0 ? '' : `; about ${thousands(requests.left)} due`}`;
}
