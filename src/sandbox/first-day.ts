import { addDays, type Day, dayOf, startOfDay } from '../day.js';

const WEEKS_OF_HISTORY = 26;

/** The Monday 26 weeks before the week of `now`: a new sandbox has half a year of whole weeks behind it. */
export function defaultFirstDay(now: Date): Day {
  const today = dayOf(now);
  const sinceMonday = (startOfDay(today).getUTCDay() + 6) % 7;
  return addDays(today, -sinceMonday - 7 * WEEKS_OF_HISTORY);
}
