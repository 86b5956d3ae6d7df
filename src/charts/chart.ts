import { z } from 'zod';
import { day } from '../day.js';

/** Values of a line, one per point; null where nothing is loaded, which leaves a gap. */
export const values = z.array(z.number().nullable()).readonly();
export type ChartValues = z.infer<typeof values>;

const dayField = z.string().transform(day);
const colorName = z.string().regex(/^[a-z]+(?:-[a-z]+)*$/);

/** A point of the horizontal axis: a day, a week or a month, by its days. */
const point = z.object({
  first: dayField,
  last: dayField,
  /** What is shown for the point under the pointer: its days, its values and what happened on them. */
  said: z.array(z.string()).readonly(),
  /** Shown below the axis, for days that are not final. */
  state: z.enum(['missing', 'provisional']).nullable().default(null),
});
export type Point = z.input<typeof point>;

const line = z.object({
  label: z.string(),
  /** Its name in the palette. */
  color: colorName,
  values,
  /**
   * `averaged`: thin, with the average of each day and the six before it in bold over it. `dashed`: for an earlier
   * period; it has no label.
   */
  look: z.enum(['plain', 'averaged', 'dashed']).default('plain'),
  /** The range in which each value was expected. */
  range: z.object({ low: values, high: values }).nullable().default(null),
});
export type ChartLine = z.infer<typeof line>;

/** Something that happened on a day. The letter on the chart stands for the text beneath it. */
export const mark = z.object({ day: dayField, letter: z.string(), text: z.string(), isBreak: z.boolean() });
export type Mark = z.infer<typeof mark>;
/** The same before it has a letter. */
export type Event = Omit<Mark, 'letter'>;

export const lineChart = z.object({
  kind: z.literal('lines'),
  title: z.string(),
  points: z.array(point).readonly(),
  lines: z.array(line).readonly(),
  marks: z.array(mark).readonly().default([]),
  /** Days with a shaded background. */
  shaded: z.object({ first: dayField, last: dayField }).nullable().default(null),
  /** Percentages range from 0 to 100. */
  unit: z.enum(['', '%']).default(''),
});
/** Lines over time. */
export type LineChart = z.input<typeof lineChart>;
/** The same with every default. */
export type DrawnLines = z.output<typeof lineChart>;

export const barChart = z.object({
  kind: z.literal('bars'),
  title: z.string(),
  /** The bars of each row. */
  bars: z.array(z.object({ label: z.string(), color: colorName })).readonly(),
  rows: z.array(z.object({ label: z.string(), values })).readonly(),
  /** The number of rows left out. */
  more: z.number().default(0),
  unit: z.enum(['', '%']).default(''),
});
/** Rows with one or several bars each. */
export type BarChart = z.input<typeof barChart>;
export type DrawnBars = z.output<typeof barChart>;

export type DrawnChart = DrawnLines | DrawnBars;

/** The colors of lines and bars that are neither human nor AI views. */
export const SERIES_COLORS = [
  'series-one',
  'series-two',
  'series-three',
  'series-four',
  'series-five',
] as const;

/** The most lines of a chart, and bars of a row. */
export const MOST_SERIES = SERIES_COLORS.length;

/** A, B … Z, AA, AB …: the letter of each mark, in their order. */
export function letterOf(index: number): string {
  const letter = String.fromCharCode(65 + (index % 26));
  return index < 26 ? letter : letterOf(Math.floor(index / 26) - 1) + letter;
}

/** What happened on some days as marks, oldest first. */
export const markedWith = (events: readonly Event[]): Mark[] =>
  events
    .toSorted((one, two) => (one.day < two.day ? -1 : one.day > two.day ? 1 : 0))
    .map((event, index) => ({ ...event, letter: letterOf(index) }));
