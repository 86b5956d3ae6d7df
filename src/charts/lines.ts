import { onAxis, thousands } from '../format/numbers.js';
import { dateLabels } from './axes.js';
import { drawBars } from './bars.js';
import { type Chart, type ChartLine, type ChartValues, type LineChart, linesInWords } from './chart.js';
import { type Layout, layoutOf, MOST_PLAIN_POINTS } from './layout.js';
import { areaPath, linePath, round, shade, type Size, stroke, svgOf, textAt, widthOfText } from './svg.js';

/** In pixels: the room below the plot, and that for a label of the horizontal axis. */
const BELOW = 30;
const LABEL = 75;

/** A chart as SVG, for a page, a tablet, a phone or an email. Its colors are `var(--name)`, from the palette. */
export const drawChart = (chart: Chart, size: Size): string =>
  chart.kind === 'lines' ? drawLines(chart, size) : drawBars(chart, size);

/** Lines over time as SVG. */
function drawLines(chart: LineChart, size: Size): string {
  const layout = layoutOf(chart, size);
  const { left, right, top, bottom } = layout.plot;
  const parts = [
    `<rect class="plot" x="${left}" y="${top}" width="${round(right - left)}" height="${bottom - top}" fill="none"/>`,
    ...backgroundOf(chart, layout),
    ...gridOf(chart, layout),
    ...datesOf(chart, layout),
    ...statesOf(chart, layout),
    ...lettersOf(chart, layout),
    ...chart.lines.map((line) => rangeOf(line, layout)),
    ...chart.lines.map((line, index) => lineOf(line, layout.bold[index] ?? [], layout, size)),
    ...trianglesOf(chart, layout),
    ...namesOf(layout),
  ];
  return svgOf({ title: chart.title, data: linesInWords(chart), size, height: bottom + BELOW }, parts);
}

function backgroundOf({ shaded }: LineChart, { plot: { top, bottom }, edgesOf }: Layout): string[] {
  if (shaded === null) return [];
  const { from, to } = edgesOf(shaded);
  return [
    `<rect x="${round(from)}" y="${top}" width="${round(to - from)}" height="${bottom - top}" fill="var(--band)"/>`,
  ];
}

const gridOf = ({ unit }: LineChart, { ticks, yOf, plot: { left, right } }: Layout): string[] =>
  ticks.map((tick) => {
    const line = `<path d="M${left} ${round(yOf(tick))}H${round(right)}" stroke="var(--${tick === 0 ? 'edge' : 'line'})"/>`;
    return line + textAt(left - 8, yOf(tick) + 4.5, onAxis(tick) + unit, { anchor: 'end' });
  });

function datesOf({ points, shaded }: LineChart, { plot, xs }: Layout): string[] {
  const most = Math.floor((plot.right - plot.left) / LABEL);
  return dateLabels(points, most, shaded?.first).map(({ index, label }) => {
    const x = xs[index] ?? 0;
    const isAtEnd = x + 22 > plot.right;
    return textAt(isAtEnd ? plot.right : x, plot.bottom + 22, label, { anchor: isAtEnd ? 'end' : 'middle' });
  });
}

/** A strip below the axis for days that are not final. */
const statesOf = ({ points }: LineChart, { plot, edgesOf }: Layout): string[] =>
  points.map(({ state = null, ...days }) => {
    if (state === null) return '';
    const { from, to } = edgesOf(days);
    return `<rect x="${round(from)}" y="${plot.bottom + 3}" width="${round(to - from)}" height="5" fill="var(--${state})"/>`;
  });

const rangeOf = ({ range, color }: ChartLine, { xs, yOf }: Layout): string =>
  range === undefined
    ? ''
    : shade(
        areaPath(range.low, range.high, (index) => xs[index] ?? 0, yOf),
        color,
      );

function lineOf(
  { values, color, look }: ChartLine,
  bold: ChartValues,
  { xs, yOf, highest }: Layout,
  size: Size,
): string {
  const xOf = (index: number): number => xs[index] ?? 0;
  const drawn = (of: ChartValues, how: string): string => stroke(linePath(of, xOf, yOf), color, how);
  if (look === 'dashed')
    return drawn(values, 'stroke-width="1.4" stroke-dasharray="4 4" stroke-opacity=".75"');
  // Thin lines would make the image of an email twice as large.
  const hasThin = look === 'averaged' && size !== 'email';
  const dots = values.flatMap((value, index) => {
    if (values.length > MOST_PLAIN_POINTS || value === null || value > highest) return [];
    return `<circle cx="${round(xOf(index))}" cy="${round(yOf(value))}" r="2.6" fill="var(--${color})"/>`;
  });
  return [
    hasThin ? drawn(values, 'stroke-width="1" stroke-opacity=".4"') : '',
    drawn(bold, 'stroke-width="2.4"'),
    ...dots,
  ].join('');
}

/** The names of the lines, each in the color of its line. */
const namesOf = ({ names }: Layout): string[] =>
  names.map(({ x, y, words, color }) => textAt(x, y, words, { color, isBold: true }));

/** In pixels: letters nearer to each other become one label. */
const LETTERS_APART = 30;

/** A vertical line where something happened, with its letter. A solid one says that counting changed. */
function lettersOf({ marks, points }: LineChart, { plot, xs }: Layout): string[] {
  const placed = marks.flatMap(({ day, letter, isBreak }) => {
    const x = xs[points.findIndex(({ first, last }) => first <= day && day <= last)];
    return x === undefined ? [] : { x, letter, isBreak };
  });
  const drawn = placed.map(({ x, isBreak }) => {
    const look = isBreak ? 'stroke="var(--ink)"' : 'stroke="var(--muted)" stroke-dasharray="2 3"';
    return `<path class="mark" d="M${round(x)} ${plot.top}V${plot.bottom}" ${look}/>`;
  });
  const groups: (typeof placed)[] = [];
  for (const mark of placed) {
    const last = groups.at(-1);
    if (last !== undefined && mark.x - (last.at(-1)?.x ?? 0) < LETTERS_APART) last.push(mark);
    else groups.push([mark]);
  }
  const labels = groups.map((group) => {
    const [first, last] = [group[0], group.at(-1)];
    const words = first === last ? first?.letter : `${first?.letter ?? ''}–${last?.letter ?? ''}`;
    const middle = ((first?.x ?? 0) + (last?.x ?? 0)) / 2;
    return textAt(middle, plot.top - 6, words ?? '', { anchor: 'middle' });
  });
  return [...new Set(drawn), ...labels];
}

/** In pixels: how far the triangles of one day are apart, and where their numbers begin. */
const TRIANGLES_APART = 5;
const BESIDE = 9;

/** Triangles for the values above the scale, with the numbers that have room. */
function trianglesOf({ lines }: LineChart, { xs, highest, plot }: Layout): string[] {
  const above = lines
    .flatMap(({ color, values }, line) =>
      values.flatMap((value, index) => {
        const x = (xs[index] ?? 0) + TRIANGLES_APART * (line - (lines.length - 1) / 2);
        return value === null || value <= highest ? [] : { color, value, x };
      }),
    )
    .sort((one, two) => two.value - one.value);
  const numbered: number[] = [];
  return above.map(({ color, value, x }) => {
    const triangle = `<path d="M${round(x - 5)} ${plot.top + 3}h10l-5 -8z" fill="var(--${color})"/>`;
    const reach = BESIDE + widthOfText(thousands(value));
    // Of days near each other, the highest has its number, beside all of their triangles.
    if (numbered.some((other) => Math.abs(other - x) < 2 * reach)) return triangle;
    numbered.push(x);
    const near = above.map((other) => other.x).filter((other) => Math.abs(other - x) < reach);
    const [first, last] = [Math.min(...near), Math.max(...near)];
    const isBefore = first - reach > plot.left;
    const at = isBefore ? first - BESIDE : last + BESIDE;
    return triangle + textAt(at, plot.top + 4, thousands(value), { anchor: isBefore ? 'end' : 'start' });
  });
}
