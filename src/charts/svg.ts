import { max } from 'd3-array';
import { scaleLinear } from 'd3-scale';
import { area, line } from 'd3-shape';
import { escapeMarkup } from '../format/text.js';
import type { ChartValues } from './chart.js';

/**
 * In pixels: how wide a chart is drawn, and how wide it is shown. A page has one for each kind of screen. Emails
 * enlarge it, because phones shrink it.
 */
const SIZES = {
  page: { width: 900, shown: 900 },
  tablet: { width: 560, shown: 560 },
  phone: { width: 350, shown: 350 },
  email: { width: 442, shown: 552 },
} as const;

export type Size = keyof typeof SIZES;
export const isSize = (size: unknown): size is Size => typeof size === 'string' && size in SIZES;

export const widthOf = (size: Size): number => SIZES[size].width;

/** Narrower charts have their labels above what they label, not beside it. */
const NARROW = 700;
export const isNarrow = (size: Size): boolean => widthOf(size) < NARROW;

/** About how wide text is, in pixels, whatever font a page has. */
const CHARACTER = 7.3;
export const widthOfText = (words: string): number => Array.from(words).length * CHARACTER;
export const widthOfBold = (words: string): number => 1.1 * widthOfText(words);

export const round = (value: number): number => Math.round(value * 10) / 10;

/** A drawing with its title and, for those who cannot see it, its data in words. */
export function svgOf(
  { title, data, size, height }: { title: string; data: string; size: Size; height: number },
  parts: readonly string[],
): string {
  const { width, shown } = SIZES[size];
  return [
    `<svg role="img" xmlns="http://www.w3.org/2000/svg" class="drawing ${size}" width="${shown}" height="${Math.round((height * shown) / width)}" viewBox="0 0 ${width} ${height}" font-family="inherit" font-size="13">`,
    `<title>${escapeMarkup(title)}</title><desc>${escapeMarkup(data)}</desc>`,
    ...parts,
    '</svg>',
  ].join('');
}

interface TextLook {
  readonly anchor?: 'start' | 'middle' | 'end';
  readonly color?: string;
  readonly isBold?: boolean;
}

export const textAt = (
  x: number,
  y: number,
  words: string,
  { anchor = 'start', color = 'muted', isBold = false }: TextLook = {},
): string =>
  `<text x="${round(x)}" y="${round(y)}" fill="var(--${color})" text-anchor="${anchor}"${isBold ? ' font-weight="600"' : ''}>${escapeMarkup(words)}</text>`;

/** Text that fits into a width, cut in the middle if it is longer: paths differ at their ends. */
export function fitting(words: string, width: number): string {
  const characters = Array.from(words);
  const most = Math.max(3, Math.floor(width / CHARACTER));
  if (characters.length <= most) return words;
  const end = Math.floor((most - 1) / 2);
  return `${characters.slice(0, most - 1 - end).join('')}…${characters.slice(-end).join('')}`;
}

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

/** In pixels. */
const SPARK_WIDTH = 128;
const SPARK_HEIGHT = 30;
const SPARK_MARGIN = 4;

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
    .range([SPARK_MARGIN, SPARK_WIDTH - SPARK_MARGIN]);
  const top = highest ?? max(all, (value) => value ?? 0) ?? 0;
  const yOf = scaleLinear()
    .domain([0, Math.max(1, top)])
    .range([SPARK_HEIGHT - SPARK_MARGIN, SPARK_MARGIN]);
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
  return `<svg role="img" class="spark" width="${SPARK_WIDTH}" height="${SPARK_HEIGHT}" viewBox="0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}" xmlns="http://www.w3.org/2000/svg"><title>${escapeMarkup(title)}</title>${drawn.join('')}</svg>`;
}
