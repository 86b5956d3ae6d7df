/** Site-wide expected views a day, before noise. `age` is the number of days since the site's first day. */

/** Sunday first, as `Date` counts weekdays. Each adds up to 7. */
const HUMAN_WEEK = [0.67, 1.13, 1.17, 1.16, 1.14, 1.05, 0.68];
const AI_WEEK = [0.9, 1.02, 1.05, 1.05, 1.04, 1.02, 0.92];

const inWeek = (week: readonly number[], weekday: number): number => week[weekday] ?? 1;

/** People: 2,560 a day, growing by a tenth over some years and never further. */
export const humanViewsExpected = (age: number, weekday: number): number =>
  2560 * (1.12 - 0.12 * Math.exp(-age / 220)) * inWeek(HUMAN_WEEK, weekday);

/**
 * AI: from about a third of all views to past people at the end of the first half year, then levelling off at
 * some 57 % (logistic), so that a site served for years stays plausible.
 */
export const aiViewsExpected = (age: number, weekday: number): number =>
  (1250 + 2450 / (1 + Math.exp(-(age - 153) / 30))) * inWeek(AI_WEEK, weekday);
