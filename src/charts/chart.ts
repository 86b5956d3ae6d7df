import { extent } from 'd3-array';
import type { Day, DayRange } from '../day.js';
import { plainDayRange } from '../format/days.js';
import { compact, counted, formatter, thousands } from '../format/numbers.js';

/** Values of a line, one per point; null where nothing is loaded, which leaves a gap. */
export type ChartValues = readonly (number | null)[];

/** Percentages range from 0 to 100. */
export type Unit = '' | '%';

/** A point of the horizontal axis: a day, a week or a month, by its days. */
export interface Point extends DayRange {
  /** What is shown for the point under the pointer: its days, its values and what happened on them. */
  readonly said: readonly string[];
  /** Shown below the axis, for days that are not final. */
  readonly state?: 'missing' | 'provisional' | null;
}

export interface ChartLine {
  readonly label: string;
  /** Its name in the palette. */
  readonly color: string;
  readonly values: ChartValues;
  /**
   * `averaged`: thin, with the average of each day and the six before it in bold over it. `dashed`: for an earlier
   * period; it has no label.
   */
  readonly look?: 'plain' | 'averaged' | 'dashed';
  /** The range in which each value was expected. */
  readonly range?: { readonly low: ChartValues; readonly high: ChartValues };
}

/** Something that happened on a day. */
export interface Event {
  readonly day: Day;
  readonly text: string;
  readonly isBreak: boolean;
}

/** The same with the letter that stands for it on the chart. */
export interface Mark extends Event {
  readonly letter: string;
}

/** Lines over time. */
export interface LineChart {
  readonly kind: 'lines';
  readonly title: string;
  readonly unit: Unit;
  readonly points: readonly Point[];
  readonly lines: readonly ChartLine[];
  readonly marks: readonly Mark[];
  /** Days with a shaded background. */
  readonly shaded: DayRange | null;
}

/** Rows with one or several bars each. */
export interface BarChart {
  readonly kind: 'bars';
  readonly title: string;
  readonly unit: Unit;
  /** The bars of each row. */
  readonly bars: readonly Pick<ChartLine, 'label' | 'color'>[];
  readonly rows: readonly { readonly label: string; readonly values: ChartValues }[];
  /** The number of rows left out. */
  readonly more: number;
}

export type Chart = LineChart | BarChart;

/** The colors of lines and bars that are neither human nor AI views. */
export const SERIES_COLORS = ['series-one', 'series-two', 'series-three', 'series-four', 'series-five'];

/** The most lines of a chart, and bars of a row. */
export const MOST_SERIES = SERIES_COLORS.length;

/** A, B … Z, AA, AB …: the letter of each mark, in their order. */
function letterOf(index: number): string {
  const letter = String.fromCharCode(65 + (index % 26));
  return index < 26 ? letter : letterOf(Math.floor(index / 26) - 1) + letter;
}

/** What happened on some days as marks, oldest first. */
export const markedWith = (events: readonly Event[]): Mark[] =>
  events
    .toSorted((one, two) => (one.day < two.day ? -1 : one.day > two.day ? 1 : 0))
    .map((event, index) => ({ ...event, letter: letterOf(index) }));

/** What happened on some days, as their readout says it. */
export const marksIn = ({ first, last }: DayRange, marks: readonly Mark[]): string[] =>
  marks.flatMap(({ day, letter, text }) => (first <= day && day <= last ? `${letter}: ${text}` : []));

/** With more points, a line is described by its ends and its extremes. */
const MOST_SAID = 14;

const upToOneDecimal = formatter({ maximumFractionDigits: 1 });
const upToTwoDecimals = formatter({ maximumFractionDigits: 2 });

/** A value as text: fractions below ten keep two decimals. */
export function numberText(value: number, unit: Unit): string {
  const write = unit === '%' ? upToOneDecimal : Math.abs(value) < 10 ? upToTwoDecimals : thousands;
  return withMinus(write(value)) + unit;
}

/** The same where there is little room. */
export const shortNumber = (value: number, unit: Unit): string =>
  Math.abs(value) < 100_000 ? numberText(value, unit) : withMinus(compact(value));

const withMinus = (digits: string): string => digits.replace('-', '−');

/** The data of lines as text. */
export const linesInWords = (chart: LineChart): string =>
  chart.lines
    .filter(({ look }) => look !== 'dashed')
    .map((line) => `${line.label}: ${lineInWords(line, chart)}.`)
    .join(' ');

function lineInWords({ values }: ChartLine, { points, unit }: LineChart): string {
  const known = points.flatMap((days, index) => {
    const value = values[index] ?? null;
    return value === null ? [] : { value, days };
  });
  const inWords = ({ value, days }: (typeof known)[number]) =>
    `${numberText(value, unit)} on ${plainDayRange(days)}`;
  const [first, last] = [known[0], known.at(-1)];
  if (first === undefined || last === undefined) return 'nothing loaded';
  if (known.length <= MOST_SAID) return known.map(inWords).join(', ');
  const [lowest = 0, highest = 0] = extent(known, ({ value }) => value);
  const ends = `${inWords(first)}, ${inWords(last)}`;
  return `${ends}, between ${numberText(lowest, unit)} and ${numberText(highest, unit)}`;
}

/** The data of bars as text. */
export const barsInWords = ({ bars, rows, unit, more }: BarChart): string =>
  rows
    .map(({ label, values }) => {
      const words = bars.map((bar, index) => {
        const value = values[index] ?? null;
        return `${bars.length > 1 ? `${bar.label} ` : ''}${value === null ? '–' : numberText(value, unit)}`;
      });
      return `${label}: ${words.join(', ')}`;
    })
    .concat(more > 0 ? [`and ${counted(more, 'more row')}`] : [])
    .join('; ');
