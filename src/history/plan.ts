import { type Day, daysBetween, daysIn, type DayRange, lastEndedDay } from '../day.js';

/** How far a stored day can be trusted: see `day_loads.state`. A day that was never asked for has no state. */
export type DayState = 'provisional' | 'final' | 'inconsistent' | 'failed';

/** Whether `day` had ended `settleDays` whole days before `now`: late events have arrived, its numbers stay. */
export const isSettled = (day: Day, now: Date, settleDays: number): boolean =>
  daysBetween(day, lastEndedDay(now)) >= settleDays;

/** Days to load, in the order in which to load them, and how many of the range need nothing. */
export interface ExportPlan {
  readonly range: DayRange;
  readonly days: readonly Day[];
  readonly alreadyFinal: number;
}

/**
 * The days of `range` that are missing, failed, inconsistent or provisional. Days that changed or may have changed
 * lately come first, then the holes, newest first, so that a long backfill never keeps yesterday waiting.
 */
export function planExport(states: ReadonlyMap<Day, DayState>, range: DayRange): ExportPlan {
  const days = daysIn(range).reverse();
  const open = days.filter((day) => states.get(day) !== 'final');
  const yesterday = range.last;
  const isUrgent = (day: Day) => day === yesterday || states.has(day);
  return {
    range,
    days: [...open.filter(isUrgent), ...open.filter((day) => !isUrgent(day))],
    alreadyFinal: days.length - open.length,
  };
}
