import { extent } from 'd3-array';
import { plainDayRange } from '../format/days.js';
import { compact, counted, formatter, thousands } from '../format/numbers.js';
import type { DrawnBars, DrawnLines, ChartLine } from './chart.js';

/** With more points, a line is described by its ends and its extremes. */
const MOST_SAID = 14;

const upToOneDecimal = formatter({ maximumFractionDigits: 1 });
const upToTwoDecimals = formatter({ maximumFractionDigits: 2 });

/** A value as text: fractions below ten keep two decimals. */
export function numberText(value: number, unit: '' | '%'): string {
  const write = unit === '%' ? upToOneDecimal : Math.abs(value) < 10 ? upToTwoDecimals : thousands;
  return withMinus(write(value)) + unit;
}

/** The same where there is little room. */
export const shortNumber = (value: number, unit: '' | '%'): string =>
  Math.abs(value) < 100_000 ? numberText(value, unit) : withMinus(compact(value));

const withMinus = (digits: string): string => digits.replace('-', '−');

/** The data of a chart as text. */
export const linesInWords = (chart: DrawnLines): string =>
  chart.lines
    .filter(({ look }) => look !== 'dashed')
    .map((line) => `${line.label}: ${lineInWords(line, chart)}.`)
    .join(' ');

function lineInWords({ values }: ChartLine, { points, unit }: DrawnLines): string {
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

export const barsInWords = ({ bars, rows, unit, more }: DrawnBars): string =>
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
