import { max, min } from 'd3-array';
import { scaleLinear } from 'd3-scale';
import { type BarChart, barsInWords, shortNumber } from './chart.js';
import {
  fitting,
  isNarrow,
  round,
  type Size,
  svgOf,
  textAt,
  widthOf,
  widthOfBold,
  widthOfText,
} from './svg.js';

/** In pixels: a bar, the next bar of its row, and the next row. */
const BAR = 8;
const NEXT_BAR = 16;
const ROW_GAP = 12;

/** In pixels: the most room for labels beside the bars, their height above them, and the room for a number. */
const MOST_BESIDE = 280;
const LABEL_HEIGHT = 19;
const NUMBER = 72;

/** Rows of bars on one scale, as SVG. Labels are beside their bars, or above them where it is narrow. */
export function drawBars(chart: BarChart, size: Size): string {
  const { bars, rows } = chart;
  const [isAbove, width] = [isNarrow(size), widthOf(size)];
  const longest = Math.max(...rows.map(({ label }) => widthOfText(label)), 0);
  const left = isAbove ? 10 : 24 + Math.min(MOST_BESIDE, longest);
  const xOf = scaleOf(rows, left, width - NUMBER);
  const top = bars.length > 1 ? 34 : 12;
  const labelHeight = isAbove ? LABEL_HEIGHT : 0;
  const rowHeight = labelHeight + bars.length * NEXT_BAR + ROW_GAP;
  const parts = rows.flatMap(({ label, values }, row) => {
    const y = top + row * rowHeight;
    const labelY = isAbove ? y + 13 : y + (bars.length * NEXT_BAR) / 2 + 4.5;
    const words = fitting(label, isAbove ? width - 20 : MOST_BESIDE);
    return [
      textAt(10, labelY, words, { color: 'ink' }),
      ...bars.map(({ color }, index) =>
        barAt(xOf, y + labelHeight + index * NEXT_BAR, values[index] ?? null, color, chart),
      ),
    ];
  });
  const height = top + rows.length * rowHeight;
  return svgOf({ title: chart.title, data: barsInWords(chart), size, height }, [
    ...legendOf(chart, left),
    ...parts,
  ]);
}

/** From zero to the highest value, and to the lowest if it is below zero. */
function scaleOf(rows: BarChart['rows'], left: number, right: number): (value: number) => number {
  const all = rows.flatMap(({ values }) => values.filter((value) => value !== null));
  const [lowest, highest] = [Math.min(0, min(all) ?? 0), Math.max(0, max(all) ?? 0)];
  return scaleLinear()
    .domain([lowest, highest > lowest ? highest : 1])
    .range([lowest < 0 ? left + NUMBER : left, right]);
}

/** A bar with its number. Any value but zero can be seen. */
function barAt(
  xOf: (value: number) => number,
  y: number,
  value: number | null,
  color: string,
  { unit }: BarChart,
): string {
  const zero = xOf(0);
  if (value === null) return textAt(zero + 7, y + 12.5, '–');
  const end = xOf(value);
  const length = value === 0 ? 0 : Math.max(2, Math.abs(end - zero));
  const number =
    value < 0
      ? textAt(zero - length - 7, y + 12.5, shortNumber(value, unit), { anchor: 'end' })
      : textAt(zero + length + 7, y + 12.5, shortNumber(value, unit));
  return `<rect x="${round(Math.min(zero, zero + (value < 0 ? -length : 0)))}" y="${y + 4}" width="${round(length)}" height="${BAR}" rx="2" fill="var(--${color})"/>${number}`;
}

/** The names of several bars, in their order. */
function legendOf({ bars }: BarChart, left: number): string[] {
  let x = left;
  return bars.length === 1
    ? []
    : bars.map(({ label, color }) => {
        const name = textAt(x, 20, label, { color, isBold: true });
        x += widthOfBold(label) + 20;
        return name;
      });
}
