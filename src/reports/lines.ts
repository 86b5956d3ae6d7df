import { z } from 'zod';
import { addDays, type Day, day, daysBetween } from '../day.js';
import { shortDayRange, shortMonth } from '../format/days.js';
import { onAxis, thousands } from '../format/numbers.js';

/** Values of a line; null where nothing is loaded, which leaves a gap. */
export type Values = readonly (number | null)[];
type Place = (value: number) => number;

/** One point of a picture: a day, a week or a month. */
export interface Point {
  readonly values: Readonly<Record<string, number | null>>;
  /** The text for the point under the pointer. */
  readonly said: readonly string[];
  /** Shown below the axis: the state of its days. */
  readonly flag?: 'missing' | 'provisional' | 'restated' | undefined;
  readonly first: Day;
  readonly last: Day;
  /** Whether the page is about these days, of all that the picture has. */
  readonly isChosen?: boolean;
  /** Whether a vertical line marks an event, such as a pull request. */
  readonly isMarked: boolean;
}

export interface LinesOptions {
  readonly title: string;
  /** After each number of the axis. */
  readonly unit?: string;
  /**
   * The names of the lines, the last on top. `human` and `ai` have a color; others look as their
   * class says.
   */
  readonly lines: readonly string[];
  /** Pairs of values with the area between them filled. */
  readonly bands?: readonly (readonly [name: string, low: string, high: string])[];
}

/** The height of the plot in pixels; its width is 1,000 units, stretched to what the screen has. */
const HEIGHT = 220;
const MOST_LABELS = 7;
/** In percent of the width: a label closer to an edge than this ends or begins there. */
const NEAR_EDGE = 3;

const monthsUntil = (at: Day): number => 12 * Number(at.slice(0, 4)) + Number(at.slice(5, 7)) - 1;
const A_MONDAY = day('2001-01-01');
const weeksUntil = (at: Day): number => Math.floor(daysBetween(A_MONDAY, at) / 7);

/** The steps of an axis, as a person would choose them: days with a new number get a label. */
const STEPS = [
  { numberOf: (at: Day): unknown => at, write: (at: Day) => shortDayRange({ first: at, last: at }) },
  ...[1, 2].map((weeks) => ({
    numberOf: (at: Day) => Math.floor(weeksUntil(at) / weeks),
    write: (at: Day) => shortDayRange({ first: at, last: at }),
  })),
  ...[1, 3, 12, 24, 60, 120, 600].map((months) => ({
    numberOf: (at: Day) => Math.floor(monthsUntil(at) / months),
    write: (at: Day) => (monthsUntil(at) % 12 === 0 ? at.slice(0, 4) : shortMonth(at)),
  })),
];

/** The labels of an axis, with the index of their point: weeks, months or years, whichever fit. */
function labelsOf(points: readonly Point[]) {
  const steps = points.every(({ first }) => first.endsWith('-01')) ? STEPS.slice(3) : STEPS;
  const labeled = steps.map(({ numberOf, write }) =>
    points.flatMap(({ first }, index) => {
      const before = points[index - 1]?.first ?? addDays(first, -1);
      return numberOf(first) === numberOf(before) ? [] : { index, label: write(first) };
    }),
  );
  return labeled.find(({ length }) => length <= MOST_LABELS) ?? [];
}

/** A picture of lines, as the template `web/lines` shows it: one that fits every width. */
export function drawLines(points: readonly Point[], { title, lines, bands = [], unit = '' }: LinesOptions) {
  const names = [...lines, ...bands.flatMap(([, low, high]) => [low, high])];
  const { top, marks } = scaleOf(points.flatMap(({ values }) => names.map((name) => values[name] ?? 0)));
  const xOf = (index: number): number => ((index + 0.5) / points.length) * 1000;
  const yOf = (value: number): number => round(HEIGHT - (value / top) * (HEIGHT - 12));
  const placeOf = (index: number) => ({
    x: round((index / points.length) * 1000),
    width: round(1000 / points.length),
  });
  const valuesOf = (name: string) => points.map(({ values }) => values[name] ?? null);
  return {
    title,
    grid: marks.map((value) => ({ y: yOf(value), label: onAxis(value) + unit })),
    lines: lines.map((name) => {
      const d = pathOf(valuesOf(name), xOf, yOf);
      return { name, d, dots: d.match(/M[^ML]+h0/g)?.join('') ?? '' };
    }),
    bands: bands.map(([name, low, high]) => ({ name, d: areaOf(valuesOf(low), valuesOf(high), xOf, yOf) })),
    labels: labelsOf(points).map(({ index, label }) => {
      const x = round(xOf(index) / 10);
      return { label, x: `${x}%`, edge: x < NEAR_EDGE ? 'start' : x > 100 - NEAR_EDGE ? 'end' : 'none' };
    }),
    days: JSON.stringify(points.map(({ first, last }) => [first, last])),
    chosen: points.flatMap(({ isChosen }, index) => (isChosen === true ? [placeOf(index)] : [])),
    flags: points.flatMap(({ flag, said }, index) => {
      return flag === undefined ? [] : { flag, said: said.join(', '), ...placeOf(index) };
    }),
    marks: points.flatMap(({ isMarked }, index) => (isMarked ? { x: round(xOf(index)) } : [])),
    said: JSON.stringify(points.map(({ said }) => said)),
    height: HEIGHT,
  };
}

export const round = (value: number): number => Math.round(value * 10) / 10;

/** The end of an axis over some values, and where its lines are: zero, the end, and about three between. */
export function scaleOf(values: readonly number[]): { top: number; marks: number[] } {
  const highest = Math.max(1, ...values);
  const step = niceStep(highest / 4);
  const steps = Math.ceil(highest / step);
  return { top: steps * step, marks: Array.from({ length: steps + 1 }, (_, index) => index * step) };
}

/** 1, 2, 2.5 or 5 times a power of ten, not below `least`. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return Math.ceil(([1, 2, 2.5, 5, 10].find((factor) => factor * power >= least) ?? 10) * power);
}

/** A line with gaps for missing values; a single value between gaps is a dot. */
export function pathOf(values: Values, xOf: Place, yOf: Place): string {
  return values
    .map((value, index) => {
      if (value === null) return '';
      const isFirst = index === 0 || values[index - 1] === null;
      const isAlone = isFirst && (values[index + 1] ?? null) === null;
      return `${isFirst ? 'M' : 'L'}${round(xOf(index))},${yOf(value)}${isAlone ? 'h0' : ''}`;
    })
    .join('');
}

/** The area between two lines, where both have values. */
export function areaOf(low: Values, high: Values, xOf: Place, yOf: Place): string {
  const runs: number[][] = [];
  for (const [index, value] of high.entries())
    if (value !== null && low[index] != null) {
      if (runs.at(-1)?.at(-1) === index - 1) runs.at(-1)?.push(index);
      else runs.push([index]);
    }
  return runs
    .map((run) => {
      const at = (values: Values) => (index: number) => `${round(xOf(index))},${yOf(values[index] ?? 0)}`;
      return `M${run.map(at(high)).join('L')}L${run.toReversed().map(at(low)).join('L')}Z`;
    })
    .join('');
}

/** The box of a small line, in pixels. */
const SPARK = { width: 128, height: 30, margin: 4 };

/** Where the points of a small line are. */
const sparkPlaces = (count: number, highest: number, { width, height, margin } = SPARK) => ({
  xOf: (index: number): number => margin + (index / Math.max(1, count - 1)) * (width - 2 * margin),
  yOf: (value: number): number => round(height - margin - (value / highest) * (height - 2 * margin)),
});

/** A small line of some views, with gaps for null. */
export function sparkline(values: Values, highest: number): string {
  const { xOf, yOf } = sparkPlaces(values.length, highest);
  return pathOf(values, xOf, yOf);
}

/** A full week of a page: its views, and the expected range if known. */
export const sparkWeek = z.object({
  ago: z.number().nonnegative(),
  views: z.number().nonnegative(),
  low: z.number().nullable(),
  high: z.number().nullable(),
});
type SparkWeek = z.infer<typeof sparkWeek>;

/** Number of weeks on the axis, loaded or not. */
const WEEKS = 13;

/** The views of each of thirteen weeks, oldest first. */
const byWeek = (weeks: readonly SparkWeek[], of: (week: SparkWeek) => number | null): Values =>
  Array.from({ length: WEEKS }, (_, index) => {
    const week = weeks.find(({ ago }) => ago === WEEKS - 1 - index);
    return week === undefined ? null : of(week);
  });

/** A page's thirteen weeks as SVG over its expected range. */
export function sparkChart(weeks: readonly SparkWeek[], audience: string): string {
  const { width, height } = SPARK;
  const most = Math.max(1, ...weeks.flatMap(({ views, high }) => [views, high ?? 0]));
  const { xOf, yOf } = sparkPlaces(WEEKS, most);
  const values = byWeek(weeks, ({ views }) => views);
  const band = areaOf(
    byWeek(weeks, ({ low }) => low),
    byWeek(weeks, ({ high }) => high),
    xOf,
    yOf,
  );
  const last = values.findLastIndex((value) => value !== null);
  const words = `Views per week: ${weeks.map(({ views }) => thousands(views)).join(', ')}`;
  return (
    `<svg role="img" class="spark" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" xmlns="http://www.w3.org/2000/svg"><title>${words}</title>` +
    (band === '' ? '' : `<path d="${band}" fill="var(--muted)" fill-opacity=".22"/>`) +
    `<path d="${pathOf(values, xOf, yOf)}" fill="none" stroke="var(--${audience})" stroke-width="1.6" stroke-linejoin="round" stroke-linecap="round"/>` +
    (last < 0
      ? ''
      : `<circle cx="${round(xOf(last))}" cy="${yOf(values[last] ?? 0)}" r="2.8" fill="var(--${audience})"/>`) +
    '</svg>'
  );
}

const BLOCKS = '▁▂▃▄▅▆▇█';

/** The same as plain text, one character per week. */
export function sparkText(weeks: readonly SparkWeek[]): string {
  const most = Math.max(1, ...weeks.map(({ views }) => views));
  return byWeek(weeks, ({ views }) => views)
    .map((views) => (views === null ? ' ' : (BLOCKS[Math.round((views / most) * (BLOCKS.length - 1))] ?? '')))
    .join('');
}
