import { highestDrawn } from '../../charts/axes.js';
import { addDays } from '../../day.js';
import type { Audience } from '../../format/audience.js';
import { changeOf, type Change } from '../../format/numbers.js';
import type { Coverage } from '../coverage.js';
import { agentWorkOf } from '../jobs.js';
import { periodOf, type Calendar, type Period } from '../period.js';
import { chartOf } from './chart.js';
import { type AudienceWeek, bothWeeks, compareWeeks, type WeekComparison } from './comparison.js';
import { type MostReadRow, type WeekRow, weeklyRows, type WeeklyRows } from './rows.js';
import { newsOf, weekdaysOf } from './sentences.js';

interface ReportedWeek {
  readonly period: Period;
  readonly calendar: Calendar;
  readonly coverage: Coverage;
}

/** The model of the weekly report, from the rows of its queries. Counts are views; shares range from 0 to 1. */
export function weeklyModel(answers: object, { period, calendar, coverage }: ReportedWeek) {
  const rows = weeklyRows.parse(answers);
  const week = compareWeeks(rows, period.first);
  if (week === null) throw new RangeError(`no row of the week that begins on ${period.first}`);
  const agentWork = agentWorkOf(rows.agent_work);
  const { newPages, notPages, mostRead: mostReadRows, ...pages } = rows.pages;
  const moved = movedOf(rows.moved, pages.read, week);
  const movedRows = moved === null ? [] : rows.moved;
  const news = newsOf(week, compareWeeks(rows, addDays(period.first, -7)), {
    moved: movedRows.filter(({ changed }) => changed.length > 0),
    pullRequests: agentWork?.counts.ready ?? 0,
    isReviewNews: agentWork?.isNews === true,
    coverage,
  });
  const mostRead = mostReadRows.map((page) => mostReadOf(page, week, movedRows));
  const counts = mostReadRows.flatMap(({ human, ai }) => [human, ai]);
  const longestBar = highestDrawn(counts, MOST_OF_BARS);
  return {
    ...news,
    /** The week before, if this one can be compared with it. */
    comparedWith: week.before && { first: week.before.week, last: addDays(week.before.week, 6) },
    human: figuresOf(week.human),
    ai: figuresOf(week.ai),
    share: shareOf(week),
    /** The pages read, among those of the 52 weeks; a younger history has all of them. */
    pages: { ...pages, isWholeYear: coverage.historySince <= addDays(period.last, -363) },
    weeks: rows.weeks.map((row) => weekFigures(row, calendar)).toReversed(),
    chart: chartOf(rows, week),
    moved,
    /** Most viewed first. Pages after the tenth are hidden at first, unless they lead for one audience. */
    mostRead: mostRead.slice(0, MOST_READ_FIRST),
    alsoRead: mostRead.slice(MOST_READ_FIRST),
    /** The common scale of the bars in `mostRead`, and whether some counts are beyond it. */
    longestBar,
    hasCutBars: counts.some((count) => count > longestBar),
    oneSided: rows.one_sided,
    newPages,
    /** Null if there are none. */
    notPages: notPages.views === 0 ? null : notPages,
    agentWork,
  };
}

function figuresOf({ views, same, firstDay, leftOut, usual, noUsual, place }: AudienceWeek) {
  return {
    views,
    change: same === null ? UNKNOWN : changeOf(same.now, same.before),
    /** The weekdays that the change leaves out because of a burst, in this week or the week before. */
    without: weekdaysOf(leftOut, firstDay) || null,
    usual,
    noUsual,
    place,
  };
}

const UNKNOWN: Change = { kind: 'unknown' };

/** Shares are null without any views; `difference` is from the week before. */
function shareOf({ thisWeek, before, earlier, human, ai }: WeekComparison) {
  const earliest = earlier.at(-1);
  const leftOut = new Set([...human.leftOut, ...ai.leftOut]);
  const [people, agents] = [bothWeeks(human.days, leftOut), bothWeeks(ai.days, leftOut)];
  const shareIn = (week: 'now' | 'before') => agents[week] / (people[week] + agents[week]);
  const difference = before === null ? NaN : shareIn('now') - shareIn('before');
  return {
    ai: thisWeek.ai_share,
    difference: Number.isNaN(difference) ? null : difference,
    without: weekdaysOf(leftOut, human.firstDay) || null,
    earliest:
      earliest?.ai_share == null || earliest === before || thisWeek.days_loaded < 7
        ? null
        : { share: earliest.ai_share, week: earliest.week },
  };
}

function weekFigures(
  { week: first, human, ai, ai_share: share, days_loaded: daysLoaded }: WeekRow,
  calendar: Calendar,
) {
  const { name } = periodOf('week', first, calendar);
  return { name, first, last: addDays(first, 6), human, ai, share, daysLoaded };
}

const MOST_READ_FIRST = 10;
/** A bar is cut if it is this many times as long as nearly all others. */
const MOST_OF_BARS = 10;

/** `movers` needs at least this many earlier full weeks. */
const MOVED_WEEKS_LEAST = 3;

/** As many are shown; others are counted. */
const MOVED_MOST = 5;

/** With fewer pages, the median page says little about the site, so that none moved says nothing. */
const MOVED_PAGES_LEAST = 5;

/** Null if there are too few full weeks or an outage, or too few pages to say that none moved. */
function movedOf(rows: WeeklyRows['moved'], pagesRead: number, { thisWeek, earlier }: WeekComparison) {
  if (thisWeek.days_loaded < 7 || thisWeek.outages.length > 0) return null;
  if (earlier.length < MOVED_WEEKS_LEAST) return null;
  if (rows.length === 0 && pagesRead < MOVED_PAGES_LEAST) return null;
  return {
    /** How many moved besides these. */
    more: Math.max(0, rows.length - MOVED_MOST),
    pages: rows.slice(0, MOVED_MOST).map(({ path, audience, weeks, ...row }) => {
      const [views, expected] = [row[audience], row[`${audience}_expected`] ?? 0];
      return {
        path,
        /** The audience that moved, or moved further. */
        audience,
        direction: views > expected ? 'up' : 'down',
        change: changeOf(views, expected),
        human: { views: row.human, expected: row.human_expected },
        ai: { views: row.ai, expected: row.ai_expected },
        weeks,
      };
    }),
  };
}

/** A page's views, with their change from the week before, and whether they are beyond the expected range, as in `moved`. */
function mostReadOf(page: MostReadRow, { before }: WeekComparison, moved: WeeklyRows['moved']) {
  const ofMoved = moved.find(({ path }) => path === page.path);
  const of = (audience: Audience) => {
    const views = page[audience];
    const isBeyond = (ofMoved?.[`${audience}_expected`] ?? null) !== null;
    const viewsBefore = before && page[`${audience}_before`];
    const known = viewsBefore === null ? UNKNOWN : changeOf(views, viewsBefore);
    const change: Change = page.is_new && views > 0 ? { kind: 'new' } : known;
    return { views, change, isBeyond };
  };
  return { path: page.path, human: of('human'), ai: of('ai') };
}
