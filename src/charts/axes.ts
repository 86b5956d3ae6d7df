import { max, min } from 'd3-array';
import { scaleLinear, scaleUtc } from 'd3-scale';
import {
  type TimeInterval,
  utcDay,
  utcFriday,
  utcMonday,
  utcMonth,
  utcSaturday,
  utcSunday,
  utcThursday,
  utcTuesday,
  utcWednesday,
  utcYear,
} from 'd3-time';
import { addDays, day, type Day, type DayRange, startOfDay } from '../day.js';
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
    ticks: scale.ticks(4).filter((tick) => !isWhole || Number.isInteger(tick)),
    yOf: (value: number): number => scale(value),
  };
}

/** The horizontal axis of some days, weeks or months. */
export function dayAxis(points: readonly DayRange[], { left, right }: Plot) {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) throw new RangeError('a chart without points has no axis');
  const scale = scaleUtc()
    .domain([startOfDay(first.first), endOf(last.last)])
    .range([left, right]);
  const edgesOf = (days: DayRange) => ({ from: scale(startOfDay(days.first)), to: scale(endOf(days.last)) });
  return {
    edgesOf,
    /** The middle of a point. */
    xOf: (days: DayRange): number => {
      const { from, to } = edgesOf(days);
      return (from + to) / 2;
    },
  };
}

const endOf = (day: Day): Date => startOfDay(addDays(day, 1));

const WEEKS = [utcSunday, utcMonday, utcTuesday, utcWednesday, utcThursday, utcFriday, utcSaturday];
const A_MONDAY = day('2001-01-01');

interface Step {
  /** Null where d3 has no such interval. */
  readonly interval: TimeInterval | null;
  /** Every how many of them a label is written, counted back from the last. */
  readonly every: number;
  readonly write: (at: Day) => string;
}

const writeDay = (at: Day): string => shortDayRange({ first: at, last: at });
const writeMonth = (at: Day): string => (at.slice(5, 7) === '01' ? at.slice(0, 4) : shortMonth(at));

/** What may be labeled on an axis: days and weeks, then months and years. */
function stepsFrom(points: readonly DayRange[], aWeek: Day | undefined): Step[] {
  const week = WEEKS[startOfDay(aWeek ?? A_MONDAY).getUTCDay()] ?? utcMonday;
  const weeks = aWeek === undefined ? [1, 2] : [1, 2, 4];
  const short = [
    ...[1, 2].map((every) => ({ interval: utcDay, every, write: writeDay })),
    ...weeks.map((every) => ({ interval: week, every, write: writeDay })),
  ];
  const long = [
    ...[1, 2, 3, 6].map((months) => ({ interval: utcMonth.every(months), every: 1, write: writeMonth })),
    ...[1, 2, 5, 10, 50].map((years) => ({ interval: utcYear.every(years), every: 1, write: writeMonth })),
  ];
  const isMonthly = points.every(({ first, last }) => first.endsWith('-01') && first !== last);
  return isMonthly ? long : [...short, ...long];
}

/**
 * The labels of some points, with the index of each: days, weeks, months or years, whichever are at most `most`. Weeks
 * begin on the weekday of `aWeek`, or on Mondays.
 */
export function dateLabels(points: readonly DayRange[], most: number, aWeek?: Day) {
  const days = points.map(({ first }) => startOfDay(first));
  const [first = new Date()] = days;
  for (const { interval, every, write } of stepsFrom(points, aWeek)) {
    const starts = [utcDay.offset(first, -1), ...days].map((at) => interval?.floor(at).getTime());
    const labeled = points
      .map((point, index) => ({ index, at: point.first, isStart: starts[index] !== starts[index + 1] }))
      .filter(({ isStart }) => isStart)
      .filter((_, index, all) => (all.length - 1 - index) % every === 0);
    if (labeled.length <= most) return labeled.map(({ index, at }) => ({ index, label: write(at) }));
  }
  return [];
}
