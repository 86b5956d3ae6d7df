import type { Day } from '../../day.js';
import { counted } from '../../format/numbers.js';
import { dayList } from '../../format/days.js';
import type { HistoryRow, WeekDayRow } from './rows.js';

/** How much of the week the numbers rest on, and how far they can be trusted. */
export interface Coverage {
  readonly daysLoaded: number;
  readonly missing: readonly Day[];
  readonly provisional: readonly Day[];
  /** Loaded, but the rows moved while they were read, or a later load failed. */
  readonly doubtful: readonly Day[];
  readonly latestLoad: Date | null;
  readonly historySince: Day;
  /** Days of the week that a later load changed, and by what part of the views before. */
  readonly restated: { readonly days: number; readonly ratio: number | null };
}

export function coverageOf(days: readonly WeekDayRow[], history: HistoryRow, historySince: Day): Coverage {
  const inState = (...states: WeekDayRow['state'][]): Day[] =>
    days.filter(({ state }) => states.includes(state)).map(({ day }) => day);
  const missing = inState(null);
  return {
    daysLoaded: days.length - missing.length,
    missing,
    provisional: inState('provisional'),
    doubtful: inState('inconsistent', 'failed'),
    latestLoad: history.latest_load,
    historySince,
    restated: { days: history.restated_days, ratio: history.restated_ratio },
  };
}

/** What a reader should know before trusting the numbers; none for a week that is whole and settled. */
export function cautionsOf({ missing, daysLoaded, provisional, doubtful }: Coverage): string[] {
  const cautions: string[] = [];
  if (missing.length > 0) {
    cautions.push(
      `${dayList(missing)} ${isOrAre(missing)} not loaded: all numbers are of ${counted(daysLoaded, 'loaded day')}, and not compared with other weeks.`,
    );
  }
  if (provisional.length > 0) {
    cautions.push(`${dayList(provisional)} ${isOrAre(provisional)} provisional: numbers may still change.`);
  }
  if (doubtful.length > 0) {
    cautions.push(`${dayList(doubtful)} did not load cleanly the last time, and will be loaded again.`);
  }
  return cautions;
}

const isOrAre = (days: readonly Day[]): string => (days.length === 1 ? 'is' : 'are');
