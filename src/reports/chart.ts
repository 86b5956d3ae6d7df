import { z } from 'zod';
import { AUDIENCES, type Audience, audienceName } from '../format/audience.js';
import { shortDayRange } from '../format/days.js';
import { compact, onAxis, thousands } from '../format/numbers.js';
import { escapeMarkup } from '../format/text.js';
import { dayColumn } from '../warehouse/query.js';
import { pathOf, round, scaleOf, type Values } from './lines.js';

/** A day's views; null if it is not loaded. */
export const dayViews = z.object({
  day: dayColumn,
  human: z.number().nonnegative().nullable(),
  ai: z.number().nonnegative().nullable(),
});
/** A day of a report's chart, with the letters of the notes about it. */
export const chartDay = dayViews.extend({ letters: z.string() });
type ChartDay = z.infer<typeof chartDay>;

/** In pixels: what is drawn, and how wide it is shown. Emails enlarge it, for phones that shrink it. */
const SIZES = {
  page: { width: 840, shown: 840 },
  phone: { width: 350, shown: 350 },
  email: { width: 442, shown: 552 },
} as const;

export const chartLook = z.object({
  title: z.string(),
  size: z.enum(['page', 'phone', 'email']),
  /** The days at the end to shade. */
  reported: z.number(),
});
type ChartLook = z.infer<typeof chartLook>;

/** Wider charts name their lines at the right, others at the top. */
const NARROW = 500;

/** A chart ends below a few days that have this many times the views of nearly all others. */
const FAR_ABOVE = 4;
const FEW = 0.05;

/** The highest value to draw: the highest, or if a few are `times` as high as nearly all others, that of these. */
export function highestDrawn(values: readonly number[], times = FAR_ABOVE): number {
  const sorted = [...values].sort((one, two) => two - one);
  const limit = times * (sorted[Math.ceil(sorted.length * FEW)] ?? 0);
  const [highest = 0] = sorted;
  return limit === 0 || highest <= limit ? highest : (sorted.find((value) => value <= limit) ?? highest);
}

/** The end of a chart's scale: beyond it are only a few days of each audience, not a lasting change of one. */
export const highestOf = (days: readonly Pick<ChartDay, Audience>[]): number =>
  Math.max(...AUDIENCES.map((audience) => highestDrawn(days.map((day) => day[audience] ?? 0))));

/** With more days, the average of seven days is drawn over them. */
export const MOST_PLAIN_DAYS = 14;

/** The average of each day and the six before; null if any is missing. Days above `highest` are left out. */
const averageOf = (values: Values, highest: number): Values =>
  values.map((_, index) => {
    const seven = values.slice(Math.max(0, index - 6), index + 1);
    const known = seven.filter((value) => value !== null && value <= highest) as number[];
    if (seven.length < 7 || seven.includes(null) || known.length === 0) return null;
    return known.reduce((sum, value) => sum + value, 0) / known.length;
  });

/** Where the days of a chart are, in pixels, and its bold lines. */
function layoutOf(days: readonly ChartDay[], width: number) {
  const isWide = width > NARROW;
  const [left, right, top] = isWide ? [44, 112, 20] : [40, 8, 40];
  const [plotWidth, plotHeight] = [width - left - right, isWide ? 210 : 160];
  const bottom = top + plotHeight;
  const highest = highestOf(days);
  const scale = scaleOf([highest]);
  const isAveraged = days.length > MOST_PLAIN_DAYS;
  const boldOf = (audience: Audience): Values => {
    const values = days.map((day) => day[audience]);
    return isAveraged ? averageOf(values, highest) : values;
  };
  return {
    isWide,
    isAveraged,
    left,
    top,
    bottom,
    right: left + plotWidth,
    plotWidth,
    scale,
    highest,
    bold: { human: boldOf('human'), ai: boldOf('ai') },
    xOf: (index: number): number => round(left + ((index + 0.5) / days.length) * plotWidth),
    yOf: (value: number): number => round(bottom - (Math.min(value, scale.top) / scale.top) * plotHeight),
  };
}
type Layout = ReturnType<typeof layoutOf>;

const textAt = (x: number, y: number, words: string, anchor: 'start' | 'middle' | 'end' = 'middle'): string =>
  `<text x="${x}" y="${round(y)}" fill="var(--muted)" text-anchor="${anchor}">${escapeMarkup(words)}</text>`;

/** The views of people and AI per day as SVG. */
export function lineChart(days: readonly ChartDay[], { title, size, reported }: ChartLook): string {
  const { width, shown } = SIZES[size];
  const layout = layoutOf(days, width);
  const { left, top, bottom, right, plotWidth } = layout;
  const height = bottom + 30;
  const shade = round((plotWidth * reported) / days.length);
  return [
    `<svg role="img" xmlns="http://www.w3.org/2000/svg" width="${shown}" height="${Math.floor((height * shown) / width)}" viewBox="0 0 ${width} ${height}" font-family="inherit" font-size="13">`,
    `<title>${escapeMarkup(title)}</title>`,
    `<rect class="plot" x="${left}" y="${top}" width="${plotWidth}" height="${bottom - top}" fill="none"/>`,
    `<rect x="${round(right - shade)}" y="${top}" width="${shade}" height="${bottom - top}" fill="var(--band)"/>`,
    ...gridOf(layout),
    ...datesOf(days, layout),
    ...days.map(({ letters }, index) => (letters === '' ? '' : markOf(letters, index, layout))),
    ...AUDIENCES.map((audience) => lineOf(audience, days, layout, size)),
    ...trianglesOf(days, layout),
    ...namesOf(days, layout),
    '</svg>',
  ].join('');
}

const gridOf = ({ scale, left, plotWidth, yOf }: Layout): string[] =>
  scale.marks.map((value) => {
    const line = `<path d="M${left} ${yOf(value)}h${plotWidth}" stroke="var(--line)"/>`;
    return line + textAt(left - 8, yOf(value) + 4.5, onAxis(value), 'end');
  });

/** The first days of some weeks, counted back from the last, or of some days if there are few. */
function datesOf(days: readonly ChartDay[], { isWide, right, bottom, xOf }: Layout): string[] {
  const unit = days.length > MOST_PLAIN_DAYS ? 7 : 1;
  const every = unit * Math.ceil(days.length / unit / (isWide ? 7 : 4));
  return days.flatMap(({ day }, index) => {
    if ((days.length - unit - index) % every !== 0) return [];
    const isAtEnd = xOf(index) + 22 > right;
    const [x, anchor] = isAtEnd ? ([right, 'end'] as const) : ([xOf(index), 'middle'] as const);
    return textAt(x, bottom + 20, shortDayRange({ first: day, last: day }), anchor);
  });
}

const markOf = (letters: string, index: number, { top, bottom, xOf }: Layout): string =>
  `<path d="M${xOf(index)} ${top}V${bottom}" stroke="var(--muted)" stroke-dasharray="2 3"/>` +
  textAt(xOf(index), top - 5, letters);

function lineOf(audience: Audience, days: readonly ChartDay[], layout: Layout, size: ChartLook['size']) {
  const { xOf, yOf, highest, isAveraged, bold } = layout;
  const color = `var(--${audience})`;
  const drawn = (values: Values, look: string) =>
    `<path d="${pathOf(values, xOf, yOf)}" fill="none" stroke="${color}" stroke-linejoin="round" stroke-linecap="round" ${look}/>`;
  const points = days.map((day, index) => {
    const value = day[audience];
    if (value === null || value > highest || isAveraged) return '';
    return `<circle cx="${xOf(index)}" cy="${yOf(value)}" r="2.6" fill="${color}"/>`;
  });
  const daily = days.map((day) => day[audience]);
  return [
    // Thin lines would make the image of an email twice as large.
    ...(isAveraged && size !== 'email' ? [drawn(daily, 'stroke-width="1" stroke-opacity=".4"')] : []),
    drawn(bold[audience], 'stroke-width="2.4"'),
    ...points,
  ].join('');
}

/** In pixels: how far triangles are aside, where their numbers begin, and the room for a character. */
const ASIDE = { human: -2.5, ai: 2.5 };
const BESIDE = 9;
const CHARACTER = 7.5;

/** Triangles for the days above the scale, with the numbers that have room. */
function trianglesOf(days: readonly ChartDay[], { xOf, highest, left, top }: Layout): string[] {
  const above = days
    .flatMap((day, index) =>
      AUDIENCES.map((audience) => ({ audience, value: day[audience] ?? 0, x: xOf(index) + ASIDE[audience] })),
    )
    .filter(({ value }) => value > highest)
    .sort((one, two) => two.value - one.value);
  const numbered: number[] = [];
  return above.map(({ audience, value, x }) => {
    const triangle = `<path d="M${round(x - 5)} ${top + 3}h10l-5 -8z" fill="var(--${audience})"/>`;
    const reach = BESIDE + CHARACTER * thousands(value).length;
    // Of days near each other, the highest has its number, beside all of their triangles.
    if (numbered.some((other) => Math.abs(other - x) < 2 * reach)) return triangle;
    numbered.push(x);
    const near = above.map((other) => other.x).filter((other) => Math.abs(other - x) < reach);
    const [first, last] = [Math.min(...near), Math.max(...near)];
    const [at, anchor] =
      first - reach > left ? ([first - BESIDE, 'end'] as const) : ([last + BESIDE, 'start'] as const);
    return triangle + textAt(round(at), top + 4, thousands(value), anchor);
  });
}

/** Names the lines at their ends, apart from each other, or else above the plot. */
function namesOf(days: readonly ChartDay[], { isWide, left, right, bold, yOf }: Layout): string[] {
  const ends = AUDIENCES.flatMap((audience) => {
    const last = bold[audience].at(-1) ?? null;
    const value = last ?? days.findLast((day) => day[audience] !== null)?.[audience] ?? null;
    const words =
      audienceName(audience) + (last === null ? '' : ` ${last < 100_000 ? thousands(last) : compact(last)}`);
    return value === null ? [] : [{ audience, words, y: yOf(value) }];
  });
  const [one, two] = ends;
  const overlap = one && two ? Math.max(0, 18 - Math.abs(one.y - two.y)) / 2 : 0;
  return ends.map(({ audience, words, y }, index) => {
    const other = ends[1 - index]?.y ?? y;
    const shift = y < other || (y === other && index === 0) ? -overlap : overlap;
    const [atX, atY] = isWide ? [right + 10, y + shift + 4.5] : [left + index * 120, 16];
    return `<text x="${atX}" y="${round(atY)}" fill="var(--${audience})" font-weight="600">${words}</text>`;
  });
}
