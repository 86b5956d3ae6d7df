import { onAxis } from '../format/numbers.js';
import { dateLabels } from './axes.js';
import type { DrawnLines, ChartLine, ChartValues } from './chart.js';
import { linesInWords } from './in-words.js';
import { type Layout, layoutOf, MOST_PLAIN_POINTS } from './layout.js';
import { lettersOf, namesOf, trianglesOf } from './line-labels.js';
import { areaPath, linePath, shade, stroke } from './paths.js';
import { round, type Size, svgOf, textAt } from './svg.js';

/** In pixels: the room below the plot, and that for a label of the horizontal axis. */
const BELOW = 30;
const LABEL = 75;

/** Lines over time as SVG. */
export function drawLines(chart: DrawnLines, size: Size): string {
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

function backgroundOf({ shaded }: DrawnLines, { plot: { top, bottom }, edgesOf }: Layout): string[] {
  if (shaded === null) return [];
  const { from, to } = edgesOf(shaded);
  return [
    `<rect x="${round(from)}" y="${top}" width="${round(to - from)}" height="${bottom - top}" fill="var(--band)"/>`,
  ];
}

const gridOf = ({ unit }: DrawnLines, { ticks, yOf, plot: { left, right } }: Layout): string[] =>
  ticks.map((tick) => {
    const line = `<path d="M${left} ${round(yOf(tick))}H${round(right)}" stroke="var(--${tick === 0 ? 'edge' : 'line'})"/>`;
    return line + textAt(left - 8, yOf(tick) + 4.5, onAxis(tick) + unit, { anchor: 'end' });
  });

function datesOf({ points, shaded }: DrawnLines, { plot, xs }: Layout): string[] {
  const most = Math.floor((plot.right - plot.left) / LABEL);
  return dateLabels(points, most, shaded?.first).map(({ index, label }) => {
    const x = xs[index] ?? 0;
    const isAtEnd = x + 22 > plot.right;
    return textAt(isAtEnd ? plot.right : x, plot.bottom + 22, label, { anchor: isAtEnd ? 'end' : 'middle' });
  });
}

/** A strip below the axis for days that are not final. */
const statesOf = ({ points }: DrawnLines, { plot, edgesOf }: Layout): string[] =>
  points.map(({ state, ...days }) => {
    if (state === null) return '';
    const { from, to } = edgesOf(days);
    return `<rect x="${round(from)}" y="${plot.bottom + 3}" width="${round(to - from)}" height="5" fill="var(--${state})"/>`;
  });

const rangeOf = ({ range, color }: ChartLine, { xs, yOf }: Layout): string =>
  range === null
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
