import type { Day } from '../../day.js';
import { dayList, dayRange } from '../../format/days.js';
import { counted } from '../../format/numbers.js';
import { NothingLoadedError } from '../errors.js';
import type { Period } from '../period.js';
import type { HistoryRow, WeekDayRow } from './rows.js';

type Coverage = ReturnType<typeof coverageOf>;

/** How much of the week the numbers rest on, and how far they can be trusted. */
export function coverageOf(days: readonly WeekDayRow[], history: HistoryRow, historySince: Day) {
  const inState = (...states: WeekDayRow['state'][]): Day[] =>
    days.filter(({ state }) => states.includes(state)).map(({ day }) => day);
  const missing = inState(null);
  return {
    daysLoaded: days.length - missing.length,
    missing,
    provisional: inState('provisional'),
    /** Loaded, but the rows moved while they were read, or a later load failed. */
    doubtful: inState('inconsistent', 'failed'),
    latestLoad: history.latest_load,
    historySince,
    /** Days of the week that a later load changed, and by what share of the views before. */
    restated: { days: history.restated_days, ratio: history.restated_ratio },
  };
}

/** What to know before trusting the numbers; nothing for a week that is whole and settled. */
export function cautionsOf({ missing, daysLoaded, provisional, doubtful }: Coverage): string[] {
  const cautions: string[] = [];
  if (missing.length > 0)
    cautions.push(
      `${dayList(missing)} ${areDays(missing)} not loaded: all numbers cover ${counted(daysLoaded, 'loaded day')} and are not compared with other weeks.`,
    );
  if (provisional.length > 0)
    cautions.push(`${dayList(provisional)} ${areDays(provisional)} provisional: numbers may still change.`);
  if (doubtful.length > 0)
    cautions.push(`${dayList(doubtful)} did not load cleanly and will be loaded again.`);
  return cautions;
}

const areDays = (days: readonly Day[]): string => (days.length === 1 ? 'is' : 'are');

export function nothingLoaded(project: string, period: Period, history: HistoryRow): NothingLoadedError {
  const wanted = `Nothing is loaded for ${period.name} (${dayRange(period)}) of ${project}.`;
  const { first_week, last_week, weeks } = history;
  if (first_week === null || last_week === null)
    return new NothingLoadedError(`${wanted} Its history is empty: load it with readership export.`);
  return new NothingLoadedError(
    weeks === 1
      ? `${wanted} The only week with loaded days is ${first_week}.`
      : `${wanted} ${weeks} weeks have loaded days, from ${first_week} to ${last_week}.`,
  );
}
