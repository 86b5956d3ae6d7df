import { z } from 'zod';
import { type ChartLine, type DrawnLines, lineChart, type Mark } from '../charts/chart.js';
import { addDays, earlierBy } from '../day.js';
import { audienceName, AUDIENCES } from '../format/audience.js';
import { dayRange, shortDayRange } from '../format/days.js';
import { percent, thousands } from '../format/numbers.js';
import { dayColumn, type Row } from '../warehouse/query.js';
import type { Range } from './range.js';
import { countsOfStates, happenedIn, marksOn, remarksOn, stateOf, statesOf } from './remarks.js';

const number = z.number().nullable();
const periodRow = z.looseObject({
  first: dayColumn,
  last: dayColumn,
  days: z.int(),
  human: number,
  ai: number,
  share: number,
  human_before: number,
  ai_before: number,
  share_before: number,
  ...countsOfStates,
});
type SeriesPeriod = z.infer<typeof periodRow>;

/** A line of a chart of periods, and how the readout says its value. */
interface Course {
  readonly label: string;
  readonly color: string;
  readonly valueOf: (period: SeriesPeriod) => number | null;
  readonly write: (value: number, period: SeriesPeriod) => string;
  /** The same line in the days that are compared with. */
  readonly before?: (period: SeriesPeriod) => number | null;
}

const viewsIn = (value: number, { days }: SeriesPeriod): string =>
  `${thousands(value)}${days > 1 ? ' per day' : ''}`;

const inPercent = (share: number | null): number | null => (share === null ? null : 100 * share);

/** What a page shows of its periods. */
export const VIEWS = {
  title: 'Human and AI views per day',
  unit: '' as const,
  courses: AUDIENCES.map((audience): Course => ({
    label: audienceName(audience),
    color: audience,
    valueOf: (period) => period[audience],
    before: (period) => period[`${audience}_before`],
    write: viewsIn,
  })),
};
export const AI_SHARE = {
  title: 'AI share of all views',
  unit: '%' as const,
  courses: [
    {
      label: 'AI share',
      color: 'ai',
      valueOf: ({ share }: SeriesPeriod) => inPercent(share),
      before: (period: SeriesPeriod) => inPercent(period.share_before),
      write: (value: number) => percent(value / 100),
    },
  ],
};

/** Courses as a chart, with a dashed line for each in the days `shift` earlier, if they are compared. */
function drawn(
  periods: readonly SeriesPeriod[],
  marks: readonly Mark[],
  { title, unit, courses }: { title: string; unit: '' | '%'; courses: readonly Course[] },
  shift = 0,
): DrawnLines {
  const before = shift === 0 ? [] : courses;
  const line = ({ label, color }: Course, look: ChartLine['look'], of: Course['valueOf']) => ({
    label,
    color,
    look,
    values: periods.map(of),
  });
  const saidAt = (period: SeriesPeriod) => [
    dayRange(period),
    ...courses.flatMap(({ label, valueOf, write }) => {
      const value = valueOf(period);
      return value === null ? [] : `${label} ${write(value, period)}`;
    }),
    ...before.flatMap(({ label, before, write }) => {
      const value = before?.(period) ?? null;
      return value === null
        ? []
        : `${label} ${write(value, period)} on ${shortDayRange(earlierBy(shift, period))}`;
    }),
    ...remarksOn(period, marks),
  ];
  return lineChart.parse({
    kind: 'lines',
    title,
    unit,
    marks,
    points: periods.map((period) => ({
      first: period.first,
      last: period.last,
      said: saidAt(period),
      state: stateOf(period),
    })),
    lines: [
      ...before.map((course) => line(course, 'dashed', (period) => course.before?.(period) ?? null)),
      ...courses.map((course) => line(course, 'plain', course.valueOf)),
    ],
  });
}

/** Periods as a chart, as numbers, and how many of their days are not final. */
export function seriesOf(
  rows: Row[],
  { chart, shift }: Pick<Range, 'chart' | 'shift'>,
  events: Row[],
  shown: typeof VIEWS | typeof AI_SHARE = VIEWS,
) {
  const periods = z.array(periodRow).parse(rows);
  const marks = marksOn(periods, events);
  const isCompared =
    chart.about === null && shift > 0 && periods.some(({ human_before }) => human_before !== null);
  return {
    states: statesOf(periods),
    periods: periods.map((period) => ({ ...period, remarks: remarksOn(period, marks) })).reverse(),
    /** The days that the dashed lines show. */
    dashed: isCompared ? earlierBy(shift, chart) : null,
    picture: { ...drawn(periods, marks, shown, isCompared ? shift : 0), shaded: chart.about },
  };
}

const weekRow = z.object({
  week: dayColumn,
  audience: z.enum(['human', 'ai']),
  views: z.int(),
  is_far: z.boolean(),
  expected: number,
  low: number,
  high: number,
});

/** The weeks of a page, with the range in which each was expected, and those far outside it. */
export function weeksOf(rows: Row[], events: Row[]) {
  const weeks = z.array(weekRow).parse(rows);
  const points = [...new Set(weeks.map(({ week }) => week))].map((first) => ({
    first,
    last: addDays(first, 6),
  }));
  const marks = marksOn(points, events);
  const at = (first: string, audience: string) =>
    weeks.find((row) => row.week === first && row.audience === audience);
  const saidOf = (first: string) =>
    AUDIENCES.flatMap((audience) => {
      const week = at(first, audience);
      if (week === undefined) return [];
      const { views, low, high } = week;
      const usual = low === null || high === null ? '' : `, ${thousands(low)} to ${thousands(high)} expected`;
      return `${audienceName(audience)} ${thousands(views)}${usual}`;
    });
  const chart = {
    kind: 'lines' as const,
    title: 'Human and AI views per week, with their expected ranges',
    marks,
    points: points.map((days) => ({
      ...days,
      said: [dayRange(days), ...saidOf(days.first), ...happenedIn(days, marks)],
    })),
    lines: AUDIENCES.map((audience) => ({
      label: audienceName(audience),
      color: audience,
      values: points.map(({ first }) => at(first, audience)?.views ?? null),
      range: {
        low: points.map(({ first }) => at(first, audience)?.low ?? null),
        high: points.map(({ first }) => at(first, audience)?.high ?? null),
      },
    })),
  };
  return {
    /** Null if no week is loaded. */
    weekPicture: points.length === 0 ? null : lineChart.parse(chart),
    far: weeks.filter(({ is_far }) => is_far).toReversed(),
  };
}
