import { addDays, daysBetween, type Day, type DayRange } from '../../day.js';
import { changeOf, type Change } from '../../format/change.js';
import { agentWorkOf, type AgentWork } from '../jobs.js';
import { periodOf, type Calendar, type Period } from '../period.js';
import {
  compareWeeks,
  USUAL_WEEKS_LEAST,
  usualOf,
  type Audience,
  type Comparison,
  type UsualRange,
} from './comparison.js';
import { cautionsOf, coverageOf, nothingLoaded, type Coverage } from './coverage.js';
import { weeklyRows, type MostReadRow, type MovedRow, type WeekRow } from './rows.js';
import { detailOf, headlineOf, type Phrase } from './sentences.js';

/** The weekly report, before it is shown in any form. Counts are views, shares go from 0 to 1. */
export interface WeeklyModel {
  readonly headline: readonly Phrase[];
  readonly detail: string;
  readonly cautions: readonly string[];
  /** The week before, when this one can be compared with it. */
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
  /** Whether the bold line is the seven-day average; in a very short history it is the days themselves. */
  readonly averageDrawn: boolean;
  /** Null when there is no whole week before to compare with. */
  readonly moved: Moved | null;
  readonly mostRead: readonly MostRead[];
  /** The largest count in `mostRead`, human or AI: the common scale of its bars. */
  readonly longestBar: number;
  /** Pages that one audience reads and the other hardly does, by the one that reads them. */
  readonly oneSided: Readonly<Record<Audience, readonly PageViews[]>>;
  readonly newPages: readonly PageViews[];
  readonly agentWork: AgentWork | null;
  readonly coverage: Coverage;
}

interface AudienceFigures {
  readonly views: number;
  readonly change: Change;
  readonly usual: UsualRange | null;
}

interface ShareFigures {
  /** Null without any views. */
  readonly ai: number | null;
  /** Compared with the week before, as a difference of shares. */
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

interface Moved {
  /** What `expected` rests on; in a young history it is the week before. */
  readonly comparedWith: MovedRow['compared_with'];
  readonly pages: readonly (Omit<MovedRow, 'compared_with'> & { readonly direction: 'up' | 'down' })[];
}

interface PageViews {
  readonly path: string;
  readonly human: number;
  readonly ai: number;
}

interface MostRead {
  readonly path: string;
  readonly human: { readonly views: number; readonly change: Change };
  readonly ai: { readonly views: number; readonly change: Change };
}

/** Makes the model from the rows of the report's queries. Throws when no day of the week is loaded. */
export function weeklyModel(
  answers: object,
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
  const readBy = (audience: Audience): PageViews[] =>
    rows.one_sided
      .filter(({ reader }) => reader === audience)
      .map(({ path, human, ai }) => ({ path, human, ai }));
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
    moved: movedOf(rows.moved, week),
    mostRead: rows.most_read.map((page) => mostReadOf(page, week, isFirstWeek)),
    longestBar: Math.max(0, ...rows.most_read.flatMap(({ human, ai }) => [human, ai])),
    oneSided: { human: readBy('human'), ai: readBy('ai') },
    newPages: isFirstWeek ? [] : rows.pages.new_pages,
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

function movedOf(rows: readonly MovedRow[], { thisWeek, earlier, before }: Comparison): Moved | null {
  const comparedWith =
    rows[0]?.compared_with ??
    (earlier.length >= USUAL_WEEKS_LEAST ? 'earlier weeks' : before && 'the week before');
  if (thisWeek.days_loaded < 7 || comparedWith === null) return null;
  const pages = rows.map(({ audience, path, views, expected }) => ({
    ...{ audience, path, views, expected },
    direction: views > expected ? ('up' as const) : ('down' as const),
  }));
  return { comparedWith, pages };
}

/** The change from the week before; unknown when that cannot be compared with. */
const changeSince = ({ before }: Comparison, now: number, then: number | undefined): Change =>
  before === null || then === undefined ? { kind: 'unknown' } : changeOf(now, then);

function mostReadOf(page: MostReadRow, week: Comparison, isFirstWeek: boolean): MostRead {
  const change = (now: number, then: number): Change =>
    page.first_seen && !isFirstWeek ? { kind: 'new' } : changeSince(week, now, then);
  return {
    path: page.path,
    human: { views: page.human, change: change(page.human, page.human_before) },
    ai: { views: page.ai, change: change(page.ai, page.ai_before) },
  };
}
