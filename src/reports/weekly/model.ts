import { addDays, daysBetween, type Day, type DayRange } from '../../day.js';
import { NothingLoadedError } from '../nothing-loaded-error.js';
import type { Answers } from '../answers.js';
import type { Change } from '../../format/change.js';
import { dayRange } from '../../format/days.js';
import { periodOf, type Calendar, type Period } from '../period.js';
import { agentWorkOf, type AgentWork } from './agent-work.js';
import { compareWeeks, usualOf, type Audience, type Comparison, type UsualRange } from './comparison.js';
import { cautionsOf, coverageOf, type Coverage } from './coverage.js';
import { detailOf } from './detail.js';
import { headlineOf, type Phrase } from './headline.js';
import { changeSince, pageListsOf, type PageLists } from './page-lists.js';
import { weeklyRows, type HistoryRow, type WeekRow } from './rows.js';

/** The weekly report, before it is shown in any way. Counts are views, shares go from 0 to 1. */
export interface WeeklyModel extends PageLists {
  readonly headline: readonly Phrase[];
  readonly detail: string;
  readonly cautions: readonly string[];
  /** The week before, when changes are told against it. */
  readonly comparedWith: DayRange | null;
  readonly human: AudienceFigures;
  readonly ai: AudienceFigures;
  readonly share: ShareFigures;
  readonly pages: { readonly read: number; readonly everSeen: number; readonly new: number | null };
  readonly weeks: readonly WeekFigures[];
  /** The days that the picture draws, oldest first; null where a day is not loaded. */
  readonly days: readonly { readonly day: Day; readonly human: number | null; readonly ai: number | null }[];
  /** Weeks that the picture spans. */
  readonly weeksDrawn: number;
  /** Whether its bold line is the average of seven days; in a very short history it is the days themselves. */
  readonly averageDrawn: boolean;
  readonly agentWork: AgentWork | null;
  readonly coverage: Coverage;
}

interface AudienceFigures {
  readonly views: number;
  readonly change: Change;
  readonly usual: UsualRange | null;
}

interface ShareFigures {
  /** Null without any view. */
  readonly ai: number | null;
  /** Against the week before, as a difference of shares. */
  readonly difference: number | null;
  readonly earliest: { readonly share: number; readonly weeksAgo: number } | null;
}

interface WeekFigures extends DayRange {
  readonly name: string;
  readonly human: number;
  readonly ai: number;
  readonly share: number | null;
  readonly daysLoaded: number;
}

/** Makes the model from what the report's queries answered. Throws when no day of the week is loaded. */
export function weeklyModel(
  answers: Answers,
  { project, period, calendar }: { project: { name: string }; period: Period; calendar: Calendar },
): WeeklyModel {
  const rows = weeklyRows.parse(answers);
  const week = compareWeeks(rows.weeks, period.first, rows.records);
  const historySince = rows.history.first_day;
  if (week === undefined || historySince === null) throw nothingLoaded(project.name, period, rows.history);
  const coverage = coverageOf(rows.week_days, rows.history, historySince);
  const isFirstWeek = historySince >= period.first;
  const drawn = rows.daily_views[0];
  const aiViews = new Map(
    rows.daily_views.flatMap((row) => (row.audience === 'AI' ? [[row.day, row.views]] : [])),
  );
  return {
    headline: headlineOf(week),
    detail: detailOf(week, isFirstWeek),
    cautions: cautionsOf(coverage),
    comparedWith: week.before && { first: week.before.week, last: addDays(week.before.week, 6) },
    human: figuresOf(week, 'human'),
    ai: figuresOf(week, 'ai'),
    share: shareOf(week),
    pages: {
      read: rows.pages.read,
      everSeen: rows.pages.ever_seen,
      new: isFirstWeek ? null : rows.pages.first_seen,
    },
    weeks: rows.weeks.map((row) => weekFigures(row, calendar)).toReversed(),
    days: rows.daily_views
      .filter(({ audience }) => audience === 'Human')
      .map(({ day, views }) => ({ day, human: views, ai: aiViews.get(day) ?? null })),
    weeksDrawn: Math.ceil((daysBetween(drawn?.day ?? period.first, period.last) + 1) / 7),
    averageDrawn: drawn?.average_drawn ?? false,
    ...pageListsOf(rows, week, isFirstWeek),
    agentWork: agentWorkOf(rows.agent_work),
    coverage,
  };
}

function figuresOf(week: Comparison, audience: Audience): AudienceFigures {
  const views = week.thisWeek[audience];
  return { views, change: changeSince(week, views, week.before?.[audience]), usual: usualOf(week, audience) };
}

function shareOf({ thisWeek, before, earlier }: Comparison): ShareFigures {
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

const weekFigures = (row: WeekRow, calendar: Calendar): WeekFigures => ({
  name: periodOf('week', row.week, calendar).name,
  first: row.week,
  last: addDays(row.week, 6),
  human: row.human,
  ai: row.ai,
  share: row.ai_share,
  daysLoaded: row.days_loaded,
});

function nothingLoaded(project: string, period: Period, history: HistoryRow): NothingLoadedError {
  const wanted = `Nothing is loaded for ${period.name} (${dayRange(period)}) of ${project}.`;
  if (history.first_week === null || history.last_week === null) {
    return new NothingLoadedError(`${wanted} Its history is empty: load it with readership export.`);
  }
  const weeks =
    history.weeks === 1
      ? 'The only week with loaded days is'
      : `${history.weeks} weeks have loaded days, from`;
  const which = history.weeks === 1 ? history.first_week : `${history.first_week} to ${history.last_week}`;
  return new NothingLoadedError(`${wanted} ${weeks} ${which}.`);
}
