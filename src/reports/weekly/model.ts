import { addDays, type Day, daysBetween } from '../../day.js';
import { changeOf, type Change, counted, inWords, thousands } from '../../format/numbers.js';
import { capitalised } from '../../format/text.js';
import { isCut, MOST_PLAIN_DAYS } from '../chart.js';
import type { Coverage, ModelContext } from '../coverage.js';
import { agentWorkOf } from '../improve.js';
import { periodOf, type Calendar } from '../period.js';
import {
  type Audience,
  compareWeeks,
  type Comparison,
  type DayRow,
  type MostReadRow,
  type MovedRow,
  placeOf,
  usualOf,
  type WeekRow,
  weeklyRows,
} from './comparison.js';
import { newsOf } from './sentences.js';

/**
 * The model of the weekly report, from the rows of its queries. Counts are views; shares range from 0 to 1.
 */
export function weeklyModel(answers: object, { period, calendar, coverage }: ModelContext) {
  const rows = weeklyRows.parse(answers);
  const weekFrom = (day: Day) => compareWeeks(rows.weeks, day, rows.usual, coverage.historySince);
  const week = weekFrom(period.first);
  if (week === null) throw new RangeError(`no row of the week that begins on ${period.first}`);
  const isFirstWeek = week.isFirst;
  const agentWork = agentWorkOf(rows.agent_work);
  const moved = movedOf(rows.moved, week);
  const news = newsOf(week, weekFrom(addDays(period.first, -7)), {
    ...{ moved: moved?.pages ?? [], pullRequests: agentWork?.counts.ready ?? 0 },
  });
  const mostRead = rows.most_read.map((page) => mostReadOf(page, week, isFirstWeek));
  const readBy = (audience: Audience) =>
    rows.one_sided
      .filter(({ reader }) => reader === audience)
      .map(({ path, human, ai }) => ({ path, human, ai }));
  return {
    headline: news.headline,
    /** For the subject: the headline, and how much other news there is. */
    news: news.subject,
    detail: news.detail,
    /** The week before, if this one can be compared with it. */
    comparedWith: week.before && { first: week.before.week, last: addDays(week.before.week, 6) },
    human: figuresOf(week, 'human', coverage),
    ai: figuresOf(week, 'ai', coverage),
    share: shareOf(week),
    pages: {
      read: rows.pages.read,
      everSeen: rows.pages.ever_seen,
      new: isFirstWeek ? null : rows.pages.first_seen,
    },
    weeks: rows.weeks.map((row) => weekFigures(row, calendar)).toReversed(),
    chart: chartOf(rows.daily_views, { human: week.thisWeek.human, ai: week.thisWeek.ai }),
    moved,
    /** Most viewed first. Pages after the tenth are hidden at first, unless they lead for one audience. */
    mostRead: mostRead.slice(0, MOST_READ_FIRST),
    alsoRead: mostRead.slice(MOST_READ_FIRST),
    /** The largest count in `mostRead`: the common scale of its bars. */
    longestBar: Math.max(0, ...rows.most_read.flatMap(({ human, ai }) => [human, ai])),
    /** Pages that one audience reads and the other hardly does, by the audience that reads them. */
    oneSided: { human: readBy('human'), ai: readBy('ai') },
    newPages: isFirstWeek ? [] : rows.pages.new_pages,
    agentWork,
  };
}

/** A restatement of at least this share is shown next to the number. */
const RESTATED_RATIO = 0.005;

/** By what share later loads changed a count; null if too small to mention. */
function restatedOf(views: number | undefined, change: number): number | null {
  const ratio = views === undefined ? 0 : change / Math.max(1, views - change);
  return Math.abs(ratio) < RESTATED_RATIO ? null : ratio;
}

function figuresOf(week: Comparison, audience: Audience, { restated, restatedBefore }: Coverage) {
  const views = week.thisWeek[audience];
  return {
    views,
    change: changeSince(week, views, week.before?.[audience]),
    usual: usualOf(week, audience),
    place: placeOf(week, audience),
    restated: restatedOf(views, restated[audience]),
    restatedBefore: restatedOf(week.before?.[audience], restatedBefore[audience]),
  };
}

/** Shares are null without any views; `difference` is from the week before. */
function shareOf({ thisWeek, before, earlier }: Comparison) {
  const earliest = earlier.at(-1);
  const ai = thisWeek.ai_share;
  return {
    ai,
    difference: ai === null || before?.ai_share == null ? null : ai - before.ai_share,
    earliest:
      earliest?.ai_share == null || earliest === before || thisWeek.days_loaded < 7
        ? null
        : { share: earliest.ai_share, weeksAgo: daysBetween(earliest.week, thisWeek.week) / 7 },
  };
}

function weekFigures(
  { week: first, human, ai, ai_share: share, days_loaded: daysLoaded }: WeekRow,
  calendar: Calendar,
) {
  const { name } = periodOf('week', first, calendar);
  return { name, first, last: addDays(first, 6), human, ai, share, daysLoaded };
}

/** The days that are drawn, oldest first, and what is written around them. */
function chartOf(days: readonly DayRow[], { human, ai }: Readonly<Record<Audience, number>>) {
  const weeks = days.length / 7;
  const isAveraged = days.length > MOST_PLAIN_DAYS;
  const gaps = days.some((day) => day.human === null) ? ' Days that are not loaded leave gaps.' : '';
  const cut = isCut(days) ? ' A triangle marks a day above the end of the scale.' : '';
  return {
    heading: weeks === 1 ? 'Day by day' : `${capitalised(inWords(weeks))} weeks`,
    under: `Views per day${isAveraged ? ', as a 7-day average' : ''}.${weeks === 1 ? '' : ' The shaded band is this week.'}${gaps}${cut}`,
    title: `Views per day over ${counted(weeks, 'week')}. Human: ${thousands(human)} this week. AI: ${thousands(ai)} this week.`,
    /** The days at the end to shade. */
    reported: weeks === 1 ? 0 : 7,
    days: days.map((day) => ({ ...day, letters: '' })),
  };
}

const MOST_READ_FIRST = 10;

/** `movers` needs at least this many earlier full weeks. */
const MOVED_WEEKS_LEAST = 3;

/** Null if there are too few full weeks. */
function movedOf(rows: readonly MovedRow[], { thisWeek, earlier }: Comparison) {
  if (thisWeek.days_loaded < 7 || earlier.length < MOVED_WEEKS_LEAST) return null;
  return {
    pages: rows.map((row) => ({
      ...row,
      direction: row.views > row.expected ? 'up' : 'down',
      change: changeOf(row.views, row.expected),
    })),
  };
}

/** The change from the week before; unknown if the two cannot be compared. */
const changeSince = ({ before }: Comparison, now: number, then: number | undefined): Change =>
  before === null || then === undefined ? { kind: 'unknown' } : changeOf(now, then);

function mostReadOf(page: MostReadRow, week: Comparison, isFirstWeek: boolean) {
  const change = (now: number, then: number): Change =>
    page.first_seen && !isFirstWeek ? { kind: 'new' } : changeSince(week, now, then);
  return {
    path: page.path,
    human: { views: page.human, change: change(page.human, page.human_before) },
    ai: { views: page.ai, change: change(page.ai, page.ai_before) },
  };
}
