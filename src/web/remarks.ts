import { z } from 'zod';
import { type Mark, markedWith } from '../charts/chart.js';
import type { DayRange } from '../day.js';
import { counted } from '../format/numbers.js';
import { shownText } from '../format/text.js';
import { sum } from '../reports/weekly/comparison.js';
import { dayColumn } from '../columns.js';
import type { Row } from '../history/query.js';

/** The states of days whose numbers are not final, the worst first, in words. */
const STATES = [
  ['missing', 'not loaded'],
  ['provisional', 'may still change'],
] as const;

/** How many days of a period are in each of these states, as columns. */
export const countsOfStates = { missing: z.int(), provisional: z.int() };
type StatedPeriod = DayRange & { readonly days: number } & Readonly<
    Record<keyof typeof countsOfStates, number>
  >;

const markRows = z.array(z.object({ day: dayColumn, text: z.string(), is_break: z.boolean() }));

/** What happened on some days: agent jobs and notes. */
export function marksOn(periods: readonly DayRange[], rows: readonly Row[]): Mark[] {
  const isDrawn = (day: string) => periods.some(({ first, last }) => first <= day && day <= last);
  const events = markRows
    .parse(rows)
    .filter(({ day }) => isDrawn(day))
    .map(({ day, text, is_break: isBreak }) => ({ day, text: shownText(text), isBreak }));
  // Notes about different pages may have the same text.
  return markedWith([...new Map(events.map((event) => [event.day + event.text, event])).values()]);
}

const MOST_MARKS = 3;

/** What the readout and the table say about a period besides its views: the state of its days, and its marks. */
export function remarksOn(period: StatedPeriod, marks: readonly Mark[]): string[] {
  const states = STATES.flatMap(([state, words]) => {
    if (period[state] === 0) return [];
    return period.days === 1 ? words : `${counted(period[state], 'day')} ${words}`;
  });
  return [...states, ...happenedIn(period, marks)];
}

export function happenedIn({ first, last }: DayRange, marks: readonly Mark[]): string[] {
  const words = marks.flatMap(({ day, letter, text }) =>
    first <= day && day <= last ? `${letter}: ${text}` : [],
  );
  const more = words.length - MOST_MARKS;
  return more > 0 ? [...words.slice(0, MOST_MARKS), `and ${more} more`] : words;
}

/** How many days of some periods are in each of these states. */
export const statesOf = (periods: readonly StatedPeriod[]) =>
  Object.fromEntries(STATES.map(([state]) => [state, sum(periods.map((period) => period[state]))]));

export const stateOf = (period: StatedPeriod) => STATES.find(([state]) => period[state] > 0)?.[0] ?? null;
