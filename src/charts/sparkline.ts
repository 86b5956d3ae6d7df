import { max } from 'd3-array';
import { scaleLinear } from 'd3-scale';
import { escapeMarkup } from '../format/text.js';
import type { ChartValues } from './chart.js';
import { areaPath, linePath, round, shade, stroke } from './svg.js';

/** In pixels. */
const WIDTH = 128;
const HEIGHT = 30;
const MARGIN = 4;

export interface Sparkline {
  /** Says the values, for those who cannot see the lines. */
  readonly title: string;
  readonly lines: readonly {
    readonly color: string;
    readonly values: ChartValues;
    readonly range?: { readonly low: ChartValues; readonly high: ChartValues };
  }[];
  /** The end of the scale, if several sparklines share one. */
  readonly highest?: number;
}

/** Small lines without axes, as SVG. The last value has a dot. */
export function sparkline({ title, lines, highest }: Sparkline): string {
  const all = lines.flatMap(({ values, range }) => [...values, ...(range?.high ?? [])]);
  const count = max(lines, ({ values }) => values.length) ?? 0;
  const xOf = scaleLinear()
    .domain([0, Math.max(1, count - 1)])
    .range([MARGIN, WIDTH - MARGIN]);
  const top = highest ?? max(all, (value) => value ?? 0) ?? 0;
  const yOf = scaleLinear()
    .domain([0, Math.max(1, top)])
    .range([HEIGHT - MARGIN, MARGIN]);
  const drawn = lines.map(({ color, values, range }) => {
    const last = values.findLastIndex((value) => value !== null);
    return [
      range === undefined ? '' : shade(areaPath(range.low, range.high, xOf, yOf), 'muted'),
      stroke(linePath(values, xOf, yOf), color, 'stroke-width="1.6"'),
      last < 0
        ? ''
        : `<circle cx="${round(xOf(last))}" cy="${round(yOf(values[last] ?? 0))}" r="2.6" fill="var(--${color})"/>`,
    ].join('');
  });
  return `<svg role="img" class="spark" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" xmlns="http://www.w3.org/2000/svg"><title>${escapeMarkup(title)}</title>${drawn.join('')}</svg>`;
}
