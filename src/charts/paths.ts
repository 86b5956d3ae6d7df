import { area, line } from 'd3-shape';
import type { ChartValues } from './chart.js';

type Scale = (value: number) => number;

/** A line with gaps for missing values; a value between two gaps is a dot. `xOf` places an index. */
export const linePath = (values: ChartValues, xOf: Scale, yOf: Scale): string =>
  line<number | null>()
    .defined((value) => value !== null)
    .x((_, index) => xOf(index))
    .y((value) => yOf(value ?? 0))
    .digits(1)(values) ?? '';

/** The area between two lines, where both have values; empty if that is nowhere. */
export function areaPath(low: ChartValues, high: ChartValues, xOf: Scale, yOf: Scale): string {
  const edges = low.map((from, index) => ({ from, to: high[index] ?? null }));
  const path = area<(typeof edges)[number]>()
    .defined(({ from, to }) => from !== null && to !== null)
    .x((_, index) => xOf(index))
    .y0(({ from }) => yOf(from ?? 0))
    .y1(({ to }) => yOf(to ?? 0))
    .digits(1);
  return path(edges) ?? '';
}

/** The lines of charts and sparklines. */
export const stroke = (path: string, color: string, look: string): string =>
  `<path class="line" d="${path}" fill="none" stroke="var(--${color})" stroke-linejoin="round" stroke-linecap="round" ${look}/>`;

export const shade = (path: string, color: string): string =>
  path === '' ? '' : `<path d="${path}" fill="var(--${color})" fill-opacity=".14"/>`;
