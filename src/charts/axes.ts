import { max, min } from 'd3-array';
import { scaleLinear } from 'd3-scale';
import { addDays, type Day, day, type DayRange, daysBetween } from '../day.js';
import { shortDayRange, shortMonth } from '../format/days.js';
import type { ChartValues } from './chart.js';

/** The edges of what is drawn between the axes, in pixels. */
export interface Plot {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** A scale ends below a few values that are this many times as high as nearly all others. */
const FAR_ABOVE = 4;
const FEW = 0.05;

/** The highest value to draw: the highest, or if a few are `times` as high as nearly all others, that of these. */
export function highestDrawn(values: readonly number[], times = FAR_ABOVE): number {
  const sorted = values.toSorted((one, two) => two - one);
  const limit = times * (sorted[Math.ceil(sorted.length * FEW)] ?? 0);
  const [highest = 0] = sorted;
  return limit <= 0 || highest <= limit ? highest : (sorted.find((value) => value <= limit) ?? highest);
}

const isKnown = (value: number | null): value is number => value !== null;

/** The end of the scale of some lines: beyond it are only a few values of each, not a lasting change of one. */
export const highestOf = (lines: readonly ChartValues[]): number =>
  max(lines, (values) => highestDrawn(values.filter(isKnown))) ?? 0;

/** Whether some values are beyond the end of the scale. */
export const isCut = (lines: readonly ChartValues[]): boolean =>
  (max(lines.flat(), (value) => value ?? 0) ?? 0) > highestOf(lines);

/** The vertical axis of some lines, from zero to the highest value to draw, and below zero if values are. */
export function valueAxis(lines: readonly ChartValues[], highest: number, { top, bottom }: Plot) {
  const all = lines.flat().filter(isKnown);
  const lowest = Math.min(0, min(all) ?? 0);
  const scale = scaleLinear()
    .domain([lowest, highest > lowest ? highest : lowest + 1])
    .nice(4)
    .range([bottom, top])
    .clamp(true);
  const isWhole = all.every(Number.isInteger);
  return {
    /** The values with a line of the grid. */
    ticks: scale.ticks(4).filter((tick) => !isWhole || Number.isInteger(tick)),
    yOf: (value: number): number => scale(value),
  };
}

/** The horizontal axis of some days, weeks or months. Returns where days begin and end on it. */
export function dayAxis(points: readonly DayRange[], { left, right }: Plot) {
  const [first, last] = [points[0]?.first, points.at(-1)?.last];
  if (first === undefined || last === undefined) throw new RangeError('a chart without points has no axis');
  const scale = scaleLinear()
    .domain([0, daysBetween(first, last) + 1])
    .range([left, right]);
  return (days: DayRange) => ({
    from: scale(daysBetween(first, days.first)),
    to: scale(daysBetween(first, days.last) + 1),
  });
}

const A_MONDAY = day('2001-01-01');
/** How far labels may be apart, in days, and then in months. */
const DAYS_APART = [1, 2, 7, 14];
const MONTHS_APART = [1, 2, 3, 6, 12, 24, 60, 120, 600];

/**
 * The labels of some points, with the index of each: days, weeks, months or years, whichever are at most `most`. Weeks
 * begin on the weekday of `aWeek`, or on Mondays. Days and weeks are counted back from the last.
 */
export function dateLabels(points: readonly DayRange[], most: number, aWeek?: Day) {
  const [begin, end] = [points[0]?.first ?? A_MONDAY, points.at(-1)?.first ?? A_MONDAY];
  const lastWeek = addDays(end, -(((daysBetween(aWeek ?? A_MONDAY, end) % 7) + 7) % 7));
  const isMonthly = points.every(({ first, last }) => first.endsWith('-01') && first !== last);
  const short = (aWeek === undefined ? DAYS_APART : [...DAYS_APART, 28]).map((days) => ({
    write: (at: Day) => shortDayRange({ first: at, last: at }),
    /** The number of the span of days that a day is in. */
    spanOf: (at: Day) => Math.floor(daysBetween(days < 7 ? end : lastWeek, at) / days),
  }));
  const long = MONTHS_APART.map((months) => ({
    write: (at: Day) => (at.slice(5, 7) === '01' || months > 6 ? at.slice(0, 4) : shortMonth(at)),
    spanOf: (at: Day) => Math.floor((12 * Number(at.slice(0, 4)) + Number(at.slice(5, 7)) - 1) / months),
  }));
  for (const { write, spanOf } of isMonthly ? long : [...short, ...long]) {
    let span = spanOf(addDays(begin, -1));
    const labels = points.flatMap(({ first }, index) => {
      const before = span;
      span = spanOf(first);
      return span === before ? [] : { index, label: write(first) };
    });
    if (labels.length <= most) return labels;
  }
  return [];
}
