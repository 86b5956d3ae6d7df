import { addDays, type Day } from '../../day.js';
import { AUDIENCES, viewsBy } from '../../format/audience.js';
import { dayList, inSequence, longDay, namedDay, shortDayRange, weekday } from '../../format/days.js';
import { changeOf, counted, fromWeekBefore, inWords, writeChange } from '../../format/numbers.js';
import type { Coverage } from '../coverage.js';
import { waitingForReview } from '../jobs.js';
import { type WeekComparison, sum } from './comparison.js';
import { factsOf, type MovedPage } from './facts.js';
import { coursesOf } from './leads.js';
import { type WeekFact, inColor, type Phrase, say, textOf, viewsWithin } from './phrases.js';
import type { WeekRow } from './rows.js';

/** What else the news are about: pages that moved, furthest first, pull requests to review, and the history. */
export interface OtherNews {
  readonly moved: readonly MovedPage[];
  readonly pullRequests: number;
  /** Whether one of them is new. */
  readonly isReviewNews: boolean;
  readonly coverage: Pick<Coverage, 'historySince' | 'hasOlder'>;
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
  if (thisWeek.human + thisWeek.ai === 0) return plain(say`No views were recorded.`, [], viewsIn(weekBefore));
  if (week.weekBefore?.days_loaded === 7 && week.broken === null && viewsIn(weekBefore) === 0)
    return {
      ...plain(totalsOf(thisWeek, ', after none the week before'), toReview(other), viewsIn(week)),
      detail: whyNothingUsual(week),
    };
  const old = new Set(weekBefore === null ? [] : factsOf(weekBefore, []).map(({ key }) => key));
  /** A change that goes on is news again. */
  const isNews = ({ key }: WeekFact): boolean => !old.has(key) || key.startsWith('change ');
  const facts = factsOf(week, other.moved, old).filter(isNews);
  const [first, ...more] = facts;
  /** Whether the totals say the same, and an earlier sentence its cause, if any. */
  const isTold = (fact: WeekFact): boolean =>
    fact.isInTotals === true &&
    (fact.cause === '' || facts.find(({ cause }) => cause === fact.cause) !== fact);
  const details = more.filter((fact) => !isTold(fact)).slice(0, MOST_DETAILS);
  const review = { key: 'review', words: say`${waitingForReview(other.pullRequests)}.` };
  const { key, words: headline } = first ?? (other.isReviewNews ? review : quiet(week));
  const lead = [
    totalsWithChange(week, key === 'totals'),
    ...details.map(({ words }) => textOf(words)),
    leftOutOf(week),
    whyNotCompared(week, other),
    whyNothingUsual(week),
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

type News = Pick<WeekFact, 'key' | 'words'>;

/** A week without news: a steady course over the quarter, or that everything is as usual. */
function quiet(week: WeekComparison): News {
  const [course] = coursesOf(week);
  if (course !== undefined) return course;
  if (AUDIENCES.every((audience) => week[audience].place === 'inside'))
    return {
      key: 'calm',
      words: say`A calm week: ${viewsWithin('human')} and ${viewsWithin('ai')} are as usual.`,
    };
  return { key: 'totals', words: totalsOf(week.thisWeek) };
}

/** Both totals, of the loaded days. */
function totalsOf({ human, ai, days_loaded: days }: WeekRow, more = ''): Phrase[] {
  const when = days === 7 ? '' : ` on ${inWords(days)} of seven days`;
  return say`${inColor('human', viewsBy('human', human))} and ${inColor('ai', viewsBy('ai', ai))}${when}${more}.`;
}

/** The totals of people and AI with their changes; only the changes if the headline has the totals. */
function totalsWithChange(week: WeekComparison, isHeadline: boolean): string {
  const both = AUDIENCES.map((audience) => {
    const { views: count, same, leftOut } = week[audience];
    const total = viewsBy(audience, count);
    if (same === null || leftOut.size > 0) return { total, change: null, than: null };
    const change = changeOf(same.now, same.before);
    return { total, change: writeChange(change), than: fromWeekBefore(change) };
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

/**
 * That the days of bursts are left out of the comparison, and what is left, in one sentence for people
 * and AI if their days are the same; empty without a burst.
 */
function leftOutOf(week: WeekComparison): string {
  const sentences = new Map<string, string[]>();
  const add = (about: string, views: string) =>
    sentences.set(about, [...(sentences.get(about) ?? []), views]);
  for (const audience of AUDIENCES) {
    const { firstDay, burstsBefore, same, leftOut } = week[audience];
    if (same === null || leftOut.size === 0) continue;
    const change = changeOf(same.now, same.before);
    const days = inSequence(burstsBefore.map(({ day }) => namedDay(day)));
    if (days !== '')
      add(
        `In the week before, … came on ${days}.`,
        viewsBy(audience, sum(burstsBefore.map(({ views }) => views))),
      );
    add(
      `Without ${weekdaysOf(leftOut, firstDay)}, the other ${inWords(same.days)} days had ….`,
      `${viewsBy(audience, same.now)} (${writeChange(change)} ${fromWeekBefore(change)})`,
    );
  }
  return [...sentences].map(([about, views]) => about.replace('…', inSequence(views))).join(' ');
}

/** Why a full week is not compared with the one before; empty if it is. */
function whyNotCompared(
  { thisWeek, weekBefore, before, broken }: WeekComparison,
  { coverage: { historySince, hasOlder } }: OtherNews,
): string {
  if (before !== null) return '';
  if (broken !== null) return `Not compared: counting changed on ${longDay(broken.day)}.`;
  const first = addDays(thisWeek.week, -7);
  if (historySince > first) {
    if (hasOlder) return 'Earlier weeks are not loaded yet, so there is nothing to compare it with.';
    return historySince >= thisWeek.week
      ? 'This is the first week in the history, so there is nothing to compare it with yet.'
      : `The history starts on ${longDay(historySince)}, so there is no full week to compare it with yet.`;
  }
  const days = shortDayRange({ first, last: addDays(first, 6) });
  if (weekBefore !== null && weekBefore.outages.length > 0)
    return `The week before had no views on ${dayList(weekBefore.outages)}, so no change is shown.`;
  return weekBefore === null
    ? `The week before, ${days}, is not loaded, so no change is shown.`
    : `Only ${inWords(weekBefore.days_loaded)} of the seven days of the week before, ${days}, ${weekBefore.days_loaded === 1 ? 'is' : 'are'} loaded, so no change is shown.`;
}

/** Which days without any view keep pages or weeks from being judged, and which weeks not loaded; empty if none do. */
function whyNothingUsual({ thisWeek: { outages }, tooFewWeeks }: WeekComparison): string {
  const sentences = [];
  if (outages.length > 0)
    sentences.push(`No views were counted on ${dayList(outages)}, so the pages that moved are not listed.`);
  if (tooFewWeeks !== null) {
    const { left, withOutage, notLoaded } = tooFewWeeks;
    const lost = [
      ...(withOutage > 0 ? [`${inWords(withOutage)} had days without any view`] : []),
      ...(notLoaded > 0 ? [`${inWords(notLoaded)} ${notLoaded === 1 ? 'is' : 'are'} not fully loaded`] : []),
    ];
    sentences.push(
      `Of the weeks before, ${inSequence(lost)}: ${left === 0 ? 'none is' : `${inWords(left)} ${left === 1 ? 'is' : 'are'}`} left, too few to say what is usual.`,
    );
  }
  return sentences.join(' ');
}
