import { dayList, longDay, moment } from '../format/days.js';
import { counted, thousands } from '../format/numbers.js';
import type { Day } from '../day.js';
import type { Colors } from '../terminal/output.js';
import type { ProjectStatus } from '../service/project-status.js';

/** The state of a project for people: what is well first, what is not where it can be seen. */
export function statusLines(status: ProjectStatus, { bold, red, yellow, green }: Colors): string[] {
  const { firstDay, lastDay } = status;
  if (firstDay === null || lastDay === null)
    return [bold(status.name), red('  nothing is loaded yet: readership export')];
  const rows: [string, string][] = [
    [
      'history',
      `${longDay(firstDay)} – ${longDay(lastDay)}, ${counted(status.daysStored, 'day')}, ${thousands(status.final)} final`,
    ],
    ['yesterday', status.isYesterdayStored ? green('loaded') : yellow('not loaded yet')],
    ['gaps', daysOr(status.gaps, 'none', yellow)],
    ['provisional', daysOr(status.provisional, 'none', String)],
    ['inconsistent', daysOr(status.inconsistent, 'none', yellow)],
    ['failed', daysOr(status.failed, 'none', red)],
    ['restated', settlingText(status)],
    ['verified', status.verifiedAt === null ? yellow('never') : moment(status.verifiedAt)],
    ['requests', requestsText(status)],
  ];
  return [bold(status.name), ...rows.map(([name, value]) => `  ${name.padEnd(14)}${value}`)];
}

function daysOr(days: readonly Day[], none: string, paint: (text: string) => string): string {
  if (days.length === 0) return none;
  return paint(`${counted(days.length, 'day')}: ${dayList(days)}`);
}

function settlingText({ settling, settleDays, recommendedSettleDays }: ProjectStatus): string {
  const { restated_days: days, oldest_change_days: oldest } = settling;
  if (oldest === null) return 'no day changed after its first load in the last 90 days';
  const advice =
    recommendedSettleDays === null || recommendedSettleDays === settleDays
      ? `; history.settleDays: ${settleDays} fits`
      : `; history.settleDays is ${settleDays}, ${recommendedSettleDays} would fit`;
  return `${counted(days, 'day')} in the last 90, changes seen up to ${counted(oldest, 'day')} after the day ended${advice}`;
}

function requestsText({ requests }: ProjectStatus): string {
  const used =
    requests.perHour === 'unlimited'
      ? 'no limit'
      : `${requests.usedThisHour} of ${requests.perHour} used in the last hour`;
  const paused =
    requests.pausedUntil === null ? '' : `; paused by the server until ${moment(requests.pausedUntil)}`;
  const left = requests.left === 0 ? '; nothing is due' : `; about ${thousands(requests.left)} due`;
  const end =
    requests.finishingAt === null || requests.left === 0 || requests.perHour === 'unlimited'
      ? ''
      : `, done at about ${moment(requests.finishingAt)}`;
  return used + paused + left + end;
}
