import { mean } from 'd3-array';
import { dayAxis, highestOf, valueAxis } from './axes.js';
import { type ChartValues, type LineChart, shortNumber } from './chart.js';
import { fitting, isNarrow, type Size, widthOf, widthOfBold } from './svg.js';

/** With more points, the average of seven is drawn over them; with fewer, each point has a dot. */
export const MOST_PLAIN_POINTS = 14;

/** In pixels: the height of the plot, and the room at its left. */
const HEIGHTS = { page: 210, tablet: 190, phone: 160, email: 160 } as const;
const AT_LEFT = 44;

/** In pixels: the room above the plot, and the least and the most room beside it for the names of lines. */
const ABOVE = 22;
const LEAST_BESIDE = 112;
const MOST_BESIDE = 190;

/** Where the parts of a chart are, in pixels. */
export type Layout = ReturnType<typeof layoutOf>;

export function layoutOf(chart: LineChart, size: Size) {
  const values = chart.lines.map((line) => line.values);
  const highest = highestOf(values);
  const bold = chart.lines.map((line) =>
    line.look === 'averaged' ? averageOf(line.values, highest) : line.values,
  );
  const named = namedEnds(chart, bold);
  const width = widthOf(size);
  const above = isNarrow(size) ? namesAbove(named, width) : null;
  const longest = Math.max(...named.map(({ words }) => widthOfBold(words)));
  const beside = Math.min(MOST_BESIDE, Math.max(LEAST_BESIDE, longest + 20));
  const top = above === null ? ABOVE : Math.max(...above.map(({ y }) => y)) + 24;
  const right = width - (above === null ? beside : 8);
  const plot = { left: AT_LEFT, right, top, bottom: top + HEIGHTS[size] };
  const edgesOf = dayAxis(chart.points, plot);
  const xs = chart.points.map((days) => (edgesOf(days).from + edgesOf(days).to) / 2);
  const axis = valueAxis(values, highest, plot);
  return {
    plot,
    /** Where days begin and end. */
    edgesOf,
    /** The middle of each point. */
    xs,
    /** The end of the scale: a value above it is a triangle. */
    highest,
    /** The bold values of each line. */
    bold,
    /** The names of the lines, each with its last value. */
    names: above ?? namesBeside(named, axis.yOf, right + 10, beside - 12),
    ...axis,
  };
}

/** The average of each day and the six before; null if any is missing. Days above `highest` are left out. */
const averageOf = (values: ChartValues, highest: number): ChartValues =>
  values.map((_, index) => {
    const seven = values.slice(Math.max(0, index - 6), index + 1);
    if (seven.length < 7 || seven.includes(null)) return null;
    return mean(seven.filter((value) => value !== null && value <= highest)) ?? null;
  });

type NamedEnd = ReturnType<typeof namedEnds>[number];

/** The lines with a name, and their last values. Those of an earlier period have none. */
const namedEnds = ({ lines, unit }: LineChart, bold: readonly ChartValues[]) =>
  lines.flatMap(({ label, color, look, values }, index) => {
    if (look === 'dashed') return [];
    const value = bold[index]?.at(-1) ?? null;
    const words = value === null ? label : `${label} ${shortNumber(value, unit)}`;
    return { words, color, last: value ?? values.findLast((one) => one !== null) ?? null };
  });

/** Names in rows above the plot. */
function namesAbove(named: readonly NamedEnd[], width: number) {
  let [x, y] = [AT_LEFT, 16];
  return named.map(({ words, color }) => {
    const length = widthOfBold(words);
    if (x > AT_LEFT && x + length > width) [x, y] = [AT_LEFT, y + 18];
    const name = { words: fitting(words, width - AT_LEFT), color, x, y };
    x += length + 18;
    return name;
  });
}

/** Names at the ends of their lines, apart from each other. */
function namesBeside(named: readonly NamedEnd[], yOf: (value: number) => number, x: number, width: number) {
  const sorted = named
    .map(({ words, color, last }) => ({ words: fitting(words, width), color, end: yOf(last ?? 0) }))
    .sort((one, two) => one.end - two.end);
  const ys = spread(
    sorted.map(({ end }) => end),
    18,
  );
  return sorted.map(({ words, color }, index) => ({ words, color, x, y: (ys[index] ?? 0) + 4.5 }));
}

/** Sorted positions at least `apart` from each other: those too near are spread around their middle. */
function spread(sorted: readonly number[], apart: number): number[] {
  const groups: { middle: number; count: number }[] = [];
  for (const position of sorted) {
    let group = { middle: position, count: 1 };
    for (let before = groups.at(-1); before !== undefined; before = groups.at(-1)) {
      const count = before.count + group.count;
      if (group.middle - before.middle >= (apart * count) / 2) break;
      const middle = (before.middle * before.count + group.middle * group.count) / count;
      group = { middle, count };
      groups.pop();
    }
    groups.push(group);
  }
  return groups.flatMap(({ middle, count }) =>
    Array.from({ length: count }, (_, index) => middle + (index - (count - 1) / 2) * apart),
  );
}
