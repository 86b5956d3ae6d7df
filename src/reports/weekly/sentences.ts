import { addDays, type Day } from '../../day.js';
import { AUDIENCES, viewsBy } from '../../format/audience.js';
import { dayList, inSequence, longDay, weekday } from '../../format/days.js';
import { changeOf, counted, fromWeekBefore, inWords, writeChange } from '../../format/numbers.js';
import { waitingForReview } from '../jobs.js';
import type { WeekComparison } from './comparison.js';
import { factsOf, type MovedPage } from './facts.js';
import { type WeekFact, inColor, type Phrase, say, textOf, viewsWithin } from './phrases.js';
import type { WeekRow } from './rows.js';

/** What else the news are about: pages that moved, furthest first, and pull requests to review. */
export interface OtherNews {
  readonly moved: readonly MovedPage[];
  readonly pullRequests: number;
  /** Whether one of them is new. */
  readonly isReviewNews: boolean;
}

const MOST_DETAILS = 2;

/**
 * What is new in a week, the largest true thing first. Nothing that was also true of the week before
 * is news, and neither are numbers that the report shows every week.
 */
export function newsOf(week: WeekComparison, weekBefore: WeekComparison | null, other: OtherNews) {
  const { thisWeek } = week;
  // Some sites have no views on weekdays.
  if (thisWeek.days_loaded < 7) return plain(totalsOf(thisWeek), toReview(other), 0);
  if (viewsIn(week) === 0) return plain(say`No views were recorded.`, [], viewsIn(weekBefore));
  const old = new Set(weekBefore === null ? [] : factsOf(weekBefore, []).map(({ key }) => key));
  /** A change that goes on is news again. */
  const isChange = ({ key }: WeekFact): boolean => key.startsWith('change ');
  const [first, ...more] = factsOf(week, other.moved, old).filter(
    (fact) => isChange(fact) || !old.has(fact.key),
  );
  // The totals say the other changes.
  const details = more.filter((fact) => !isChange(fact)).slice(0, MOST_DETAILS);
  const review = { key: 'review', words: say`${waitingForReview(other.pullRequests)}.` };
  const { key, words: headline } = first ?? (other.isReviewNews ? review : quiet(week));
  const lead = [
    totalsWithChange(week, key === 'totals'),
    ...details.map(({ words }) => textOf(words)),
    whyNotCompared(week),
  ];
  const unnamed = other.moved.filter((page) => headline.every(({ path }) => path !== page.path));
  const moreMoved = counted(unnamed.length, unnamed.length < other.moved.length ? 'more page' : 'page');
  return {
    headline,
    /** For the subject: the headline, and how much other news there is. */
    news: subjectOf(headline, [
      ...(unnamed.length === 0 ? [] : [`${moreMoved} moved`]),
      ...(key === 'review' ? [] : toReview(other)),
    ]),
    /** Both totals with their change, more news, and why the week is not compared. May be empty. */
    detail: lead.filter((text) => text !== '').join(' '),
    /** The views at stake in the headline. */
    stake: first?.stake ?? 0,
  };
}

const viewsIn = (week: WeekComparison | null): number =>
  week === null ? 0 : week.thisWeek.human + week.thisWeek.ai;

/** Nothing but a headline. */
const plain = (headline: Phrase[], more: readonly string[], stake: number) => ({
  headline,
  news: subjectOf(headline, more),
  detail: '',
  stake,
});

const subjectOf = (headline: readonly Phrase[], more: readonly string[]): string =>
  textOf(headline).replace(/\.$/, '') + (more.length === 0 ? '' : `; ${more.join(', ')}`);

const toReview = ({ pullRequests }: OtherNews): string[] =>
  pullRequests === 0 ? [] : [`${counted(pullRequests, 'pull request')} to review`];

/** A week without news: that everything is as usual, if that is known. */
function quiet(week: WeekComparison): Pick<WeekFact, 'key' | 'words'> {
  if (AUDIENCES.every((audience) => week[audience].place === 'inside'))
    return {
      key: 'calm',
      words: say`A calm week: ${viewsWithin('human')} and ${viewsWithin('ai')} are as usual.`,
    };
  return { key: 'totals', words: totalsOf(week.thisWeek) };
}

/** Both totals, of the loaded days. */
function totalsOf({ human, ai, days_loaded: days }: WeekRow): Phrase[] {
  const when = days === 7 ? '' : ` on ${inWords(days)} of seven days`;
  return say`${inColor('human', viewsBy('human', human))} and ${inColor('ai', viewsBy('ai', ai))}${when}.`;
}

/** The totals of people and AI with their changes; only the changes if the headline has the totals. */
function totalsWithChange(week: WeekComparison, isHeadline: boolean): string {
  const both = AUDIENCES.map((audience) => {
    const { views: count, same, leftOut, firstDay } = week[audience];
    const total = viewsBy(audience, count);
    if (same === null) return { total, change: null, than: null };
    const change = changeOf(same.now, same.before);
    const without = leftOut.size === 0 ? '' : `, not counting ${weekdaysOf(leftOut, firstDay)}`;
    return { total, change: writeChange(change), than: fromWeekBefore(change) + without };
  });
  const [human, ai] = both.map(({ change }) => change?.replace('from 0', 'up from 0'));
  if (isHeadline) return human && ai ? `Compared with the week before: human ${human} and AI ${ai}.` : '';
  const isBoth = both.every(({ than }) => than === 'from the week before');
  const parts = both.map(({ total, change, than }) =>
    change === null ? total : `${total} (${change}${isBoth ? '' : ` ${than}`})`,
  );
  return `${inSequence(parts)}${isBoth ? ' compared with the week before' : ''}.`;
}

/** The weekdays that a comparison leaves out, by their place in the week; empty if it leaves out none. */
export const weekdaysOf = (leftOut: ReadonlySet<number>, firstDay: Day): string =>
  inSequence([...leftOut].sort().map((at) => weekday(addDays(firstDay, at))));

/** Why a full week is not compared with the one before, or its pages are not judged; empty if they are. */
function whyNotCompared({ thisWeek, weekBefore, before, broken }: WeekComparison): string {
  if (thisWeek.outages.length > 0)
    return `No views were counted on ${dayList(thisWeek.outages)}, so the pages that moved are not listed.`;
  if (before !== null) return '';
  if (broken !== null) return `Not compared: counting changed on ${longDay(broken.day)}.`;
  return weekBefore !== null && weekBefore.outages.length > 0
    ? `Not compared: the week before had no views on ${dayList(weekBefore.outages)}.`
    : 'Not compared: the week before is not fully loaded.';
}
