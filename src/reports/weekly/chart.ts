import { isCut } from '../../charts/axes.js';
import { type ChartValues, type LineChart, markedWith, marksIn } from '../../charts/chart.js';
import { MOST_PLAIN_POINTS } from '../../charts/layout.js';
import { sparkline } from '../../charts/svg.js';
import { type Audience, audienceName, AUDIENCES } from '../../format/audience.js';
import { addDays } from '../../day.js';
import { dayRange, shortDayRange } from '../../format/days.js';
import { counted, inWords, thousands } from '../../format/numbers.js';
import { capitalised } from '../../format/text.js';
import { eventOf } from '../charts.js';
import type { WeekComparison } from './comparison.js';
import type { SparkWeek, WeeklyRows } from './rows.js';

/** The days that are drawn, oldest first, the notes about them, and what is written around them. */
export function chartOf(
  { daily_views: days, notes }: WeeklyRows,
  { thisWeek: { week, human, ai } }: WeekComparison,
) {
  const weeks = days.length / 7;
  const isOneWeek = weeks === 1;
  const reported = shortDayRange({ first: week, last: addDays(week, 6) });
  const average = days.length > MOST_PLAIN_POINTS ? ', as a 7-day average' : '';
  const views = AUDIENCES.map((audience) => days.map((day) => day[audience]));
  return {
    heading: isOneWeek ? 'Day by day' : `${capitalised(inWords(weeks))} weeks`,
    under: [
      `Views per day${average}.`,
      ...(isOneWeek ? [] : [`The shaded band is ${reported}.`]),
      ...(days.some((day) => day.human === null) ? ['Days that are not loaded leave gaps.'] : []),
      ...(isCut(views) ? ['A triangle marks a day above the end of the scale.'] : []),
    ].join(' '),
    title: `Views per day over ${counted(weeks, 'week')}. ${reported}: human ${thousands(human)}, AI ${thousands(ai)}.`,
    /** The number of days at the end to shade. */
    reported: isOneWeek ? 0 : 7,
    days: days.map(({ day, human, ai }) => ({ day, human, ai })),
    notes: markedWith(notes.map(eventOf).filter((note) => days.some(({ day }) => day === note.day))),
  };
}

/** The chart of the weekly report: views per day by people and AI. */
export function viewsChart({ title, days, notes, reported }: ReturnType<typeof chartOf>): LineChart {
  const [first, last] = [days.at(-reported)?.day, days.at(-1)?.day];
  return {
    kind: 'lines',
    title,
    unit: '',
    marks: notes,
    shaded: reported === 0 || first === undefined || last === undefined ? null : { first, last },
    points: days.map(({ day, human, ai }) => ({
      first: day,
      last: day,
      said: [
        dayRange({ first: day, last: day }),
        ...(human === null ? ['not loaded'] : [`Human ${thousands(human)}`, `AI ${thousands(ai ?? 0)}`]),
        ...marksIn({ first: day, last: day }, notes),
      ],
    })),
    lines: AUDIENCES.map((audience) => ({
      label: audienceName(audience),
      color: audience,
      values: days.map((of) => of[audience]),
      look: days.length > MOST_PLAIN_POINTS ? 'averaged' : 'plain',
    })),
  };
}

/** Number of weeks of a sparkline, loaded or not. */
const WEEKS = 13;

/** The views of each of thirteen weeks, oldest first. */
const byWeek = (weeks: readonly SparkWeek[], of: (week: SparkWeek) => number | null): ChartValues =>
  Array.from({ length: WEEKS }, (_, index) => {
    const week = weeks.find(({ ago }) => ago === WEEKS - 1 - index);
    return week === undefined ? null : of(week);
  });

/** A page's thirteen weeks over the range in which they were expected. */
export const weeksSparkline = (weeks: readonly SparkWeek[], audience: Audience): string =>
  sparkline({
    title: `Views per week: ${weeks.map(({ views }) => thousands(views)).join(', ')}`,
    lines: [
      {
        color: audience,
        values: byWeek(weeks, ({ views }) => views),
        range: { low: byWeek(weeks, ({ low }) => low), high: byWeek(weeks, ({ high }) => high) },
      },
    ],
  });

const BLOCKS = '▁▂▃▄▅▆▇█';

/** The same as plain text, one character per week. */
export function weeksText(weeks: readonly SparkWeek[]): string {
  const most = Math.max(1, ...weeks.map(({ views }) => views));
  return byWeek(weeks, ({ views }) => views)
    .map((views) => (views === null ? ' ' : (BLOCKS[Math.round((views / most) * (BLOCKS.length - 1))] ?? '')))
    .join('');
}
