import { onAxis } from '../format/numbers.js';

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
  /** Shown on the axis if there is room. */
  readonly label: string;
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
/** The limit for short labels, such as Aug 23; long ones need more room each. */
const MOST_LABELS = 7;
const MOST_LONG_LABELS = 5;

/** A picture of lines, as the template `web/lines` shows it: one that fits every width. */
export function drawLines(points: readonly Point[], { title, lines, bands = [], unit = '' }: LinesOptions) {
  const names = [...lines, ...bands.flatMap(([, low, high]) => [low, high])];
  const { top, step } = scaleOf(
    points.flatMap(({ values }) => names.map((name) => values[name] ?? 0)),
    4,
  );
  const xOf = (index: number): number => ((index + 0.5) / points.length) * 1000;
  const yOf = (value: number): number => round(HEIGHT - (value / top) * (HEIGHT - 12));
  const valuesOf = (name: string) => points.map(({ values }) => values[name] ?? null);
  const hasLongLabels = points.some(({ label }) => label.length > 7);
  const every = Math.ceil(points.length / (hasLongLabels ? MOST_LONG_LABELS : MOST_LABELS));
  return {
    title,
    grid: Array.from({ length: top / step + 1 }, (_, index) => ({
      y: yOf(index * step),
      label: onAxis(index * step) + unit,
    })),
    lines: lines.map((name) => {
      const d = pathOf(valuesOf(name), xOf, yOf);
      return { name, d, dots: d.match(/M[^ML]+h0/g)?.join('') ?? '' };
    }),
    bands: bands.map(([name, low, high]) => ({ name, d: areaOf(valuesOf(low), valuesOf(high), xOf, yOf) })),
    labels: points.flatMap(({ label }, index) =>
      (points.length - 1 - index) % every === 0 ? { label, x: `${round(xOf(index) / 10)}%` } : [],
    ),
    flags: points.flatMap(({ flag, said }, index) => {
      const [x, width] = [round((index / points.length) * 1000), round(1000 / points.length)];
      return flag === undefined ? [] : { flag, said: said.join(', '), x, width };
    }),
    marks: points.flatMap(({ isMarked }, index) => (isMarked ? { x: round(xOf(index)) } : [])),
    said: JSON.stringify(points.map(({ said }) => said)),
    height: HEIGHT,
  };
}

/** A small line of some views, in a box of 100 by 24, with gaps for null. */
export function sparkline(values: Values, highest: number): string {
  return pathOf(
    values,
    (index) => (index / Math.max(1, values.length - 1)) * 96 + 2,
    (value) => round(22 - (value / highest) * 20),
  );
}

export const round = (value: number): number => Math.round(value * 10) / 10;

/** The end of an axis over some values, and the step between its lines. */
export function scaleOf(values: readonly number[], steps: number): { top: number; step: number } {
  const highest = Math.max(1, ...values);
  const step = niceStep(highest / steps);
  return { top: Math.ceil(highest / step) * step, step };
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
