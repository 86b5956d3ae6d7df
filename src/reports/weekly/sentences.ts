import { addDays } from '../../day.js';
import { AUDIENCES, type Audience, otherThan, viewsBy } from '../../format/audience.js';
import { inSequence, longDay, namedDay, shortDayRange, weekday } from '../../format/days.js';
import {
  changeOf,
  counted,
  fromLastWeek,
  inWords,
  percentOf,
  ratioWords,
  thousands,
  writeChange,
} from '../../format/numbers.js';
import { capitalised } from '../../format/text.js';
import type { AudienceWeek, Comparison } from './comparison.js';
import { type Cause, type Course, coursesOf, type Fact, factsOf, keyOf, type MovedPage } from './facts.js';
import { named, type Phrase, say, textOf, views, viewsWithin } from './phrases.js';
import type { WeekRow } from './rows.js';

/** Other news: pages that moved, furthest first, and pull requests to review. */
export interface OtherNews {
  readonly moved: readonly MovedPage[];
  readonly pullRequests: number;
}

export interface News {
  readonly headline: Phrase[];
  /** Both totals with their change, more news, and why the week is not compared. May be empty. */
  readonly detail: string;
  /** For a subject: the headline, and how much else there is. */
  readonly subject: string;
  /** Sentences by what they are about, the headline first. A correction compares them. */
  readonly statements: readonly Statement[];
  /** The views at stake in the headline. */
  readonly stake: number;
}

/** A sentence that is true of a week. Those that others leave no room for are not told. */
export interface Statement {
  readonly key: string;
  readonly text: string;
  readonly isTold: boolean;
}

const MOST_DETAILS = 2;

/**
 * What is new this week, the largest true thing first. Nothing that was also true of the week before
 * is news, and neither are numbers that the report shows every week.
 */
export function newsOf(week: Comparison, weekBefore: Comparison | null, other: OtherNews): News {
  const { thisWeek, before } = week;
  if (thisWeek.human + thisWeek.ai === 0)
    return plain('none', say`No views were recorded: tracking may have stopped.`);
  if (thisWeek.days_loaded < 7) return plain('partial', totalsOf(thisWeek), other.pullRequests);
  const old = new Set(weekBefore === null ? [] : factsOf(weekBefore, []).map(keyOf));
  const fresh = factsOf(week, other.moved).filter((fact) => isAgain(fact) || !old.has(keyOf(fact)));
  const [first, ...more] = fresh;
  const rest = first === undefined ? quiet(week, other) : { key: keyOf(first), phrases: wordsOf(first, old) };
  const others = more.map((fact) => ({ key: keyOf(fact), text: textOf(wordsOf(fact, old)) }));
  const told = [
    ...others.slice(0, MOST_DETAILS),
    ...AUDIENCES.map((audience) => ({
      key: `left out ${audience}`,
      text: leftOutOf(week[audience]).join(' '),
    })),
    { key: 'not compared', text: whyNotCompared(week) },
  ].filter(({ text }) => text !== '');
  const totals =
    rest.key === 'totals' && before === null ? '' : totalsWithChange(week, rest.key === 'totals');
  const paths = new Set(other.moved.map(({ path }) => path));
  for (const { path } of rest.phrases) if (path !== null) paths.delete(path);
  const isNamed = paths.size < other.moved.length;
  return {
    headline: rest.phrases,
    detail: [totals, ...told.map(({ text }) => text)].filter((text) => text !== '').join(' '),
    subject: subjectOf(rest.phrases, paths.size, isNamed, rest.key === 'review' ? 0 : other.pullRequests),
    statements: [
      { key: rest.key, text: textOf(rest.phrases), isTold: true },
      ...told.map((statement) => ({ ...statement, isTold: true })),
      ...[...others.slice(MOST_DETAILS), ...coursesOf(week).map(courseWords)].map(({ key, text }) => ({
        key,
        text,
        isTold: false,
      })),
    ],
    stake: first?.stake ?? 0,
  };
}

const isAgain = (fact: Fact): boolean => fact.kind === 'change' || fact.kind === 'page';

const plain = (key: string, headline: Phrase[], pullRequests = 0): News => ({
  headline,
  detail: '',
  subject: subjectOf(headline, 0, false, pullRequests),
  statements: [{ key, text: textOf(headline), isTold: true }],
  stake: 0,
});

function subjectOf(
  headline: readonly Phrase[],
  moved: number,
  isNamed: boolean,
  pullRequests: number,
): string {
  const more = [
    ...(moved === 0 ? [] : [`${counted(moved, isNamed ? 'more page' : 'page')} moved`]),
    ...(pullRequests === 0 ? [] : [`${counted(pullRequests, 'pull request')} to review`]),
  ];
  return [textOf(headline).replace(/\.$/, ''), ...(more.length === 0 ? [] : [more.join(', ')])].join('; ');
}

function wordsOf(fact: Fact, old: ReadonlySet<string>): Phrase[] {
  switch (fact.kind) {
    case 'change':
      return changeWords(fact, old.has(keyOf(fact)));
    case 'outside': {
      const { audience, place, views: count, record } = fact.of;
      const stays = old.has(`change ${audience} ${place === 'above' ? 'up' : 'down'}`);
      if (record !== null && !stays)
        return say`${views(audience)} hit ${weekHigh(record)}: ${thousands(count)}.`;
      return say`${views(audience)} ${stays ? 'stay' : 'are'} ${place} their usual range: ${thousands(count)}, where ${thousands(fact.low)} to ${thousands(fact.high)} is usual.`;
    }
    case 'burst': {
      const { audience, day, views: count } = fact.burst;
      const where = fact.path === undefined ? '' : say`, most of them to one page, ${named(fact.path)}`;
      return say`${viewsBy(audience, count)} came on one day, ${namedDay(day)}${where}.`;
    }
    case 'lead':
      return say`${views(fact.leads)} ${fact.isAgain ? 'again' : 'now'} exceed ${viewsWithin(otherThan(fact.leads))}: ${thousands(fact.now)} vs. ${thousands(fact.others)}.`;
    case 'only':
      return fact.share === 0
        ? say`No ${viewsWithin(otherThan(fact.audience))} were recorded this week.`
        : say`${views(otherThan(fact.audience))} are less than 1% of all views.`;
    case 'page':
      return pageWords(fact.page);
  }
}

/** `a 12-week high`, `an 18-week high`. */
const weekHigh = (weeks: number): string =>
  `${/^(?:8|11$|18$)/.test(String(weeks)) ? 'an' : 'a'} ${weeks}-week high`;

function changeWords(
  { of, now, ratio, cause }: Extract<Fact, { kind: 'change' }>,
  isAgain: boolean,
): Phrase[] {
  const { audience, leftOut, record } = of;
  const size = ratioWords(ratio);
  const again = isAgain ? ` again${size.endsWith('%') ? ' by' : ''}` : '';
  const verb = `${ratio > 0 ? 'rose' : 'fell'}${again}`;
  const where = leftOut.size === 0 ? '' : ` on the ${inWords(7 - leftOut.size)} days that can be compared`;
  const high = record === null ? '' : `, ${weekHigh(record)}`;
  if (ratio === Infinity)
    return say`${views(audience)} rose from none to ${thousands(now)}${where}${causeWords(cause, true)}.`;
  return say`${views(audience)} ${verb} ${size} to ${thousands(now)}${where}${high}${causeWords(cause, ratio > 0)}.`;
}

function causeWords(cause: Cause | undefined, isUp: boolean): Phrase[] | string {
  if (cause === undefined) return '';
  const { path, day, share } = cause;
  const change = isUp ? 'rise' : 'fall';
  const size = percentOf(share);
  const part =
    share > 1 ? `more than the whole ${change}` : `${size === '100%' ? 'all' : size} of the ${change}`;
  const on = day === undefined ? '' : ` on ${namedDay(day)}`;
  return path === undefined
    ? `, ${part}${on}`
    : say`, ${part} on one page, ${named(path)}${on === '' ? '' : `,${on}`}`;
}

const NOTHING_EXPECTED = 0.5;

function pageWords(page: MovedPage): Phrase[] {
  const { audience, path } = page;
  const expected = page[`${audience}_expected`] ?? 0;
  const count = viewsBy(audience, page[audience]);
  if (expected < NOTHING_EXPECTED) return say`${named(path)} had ${count}, and none were expected.`;
  const ratio = page[audience] / expected - 1;
  return say`${named(path)} had ${count}, ${ratioWords(ratio)} ${ratio > 0 ? 'more' : 'fewer'} than expected.`;
}

/** A week without news: a steady course over the quarter, or that everything is as usual. */
function quiet(week: Comparison, { pullRequests }: OtherNews): { key: string; phrases: Phrase[] } {
  if (pullRequests > 0)
    return {
      key: 'review',
      phrases: say`${capitalised(inWords(pullRequests))} pull ${pullRequests === 1 ? 'request is' : 'requests are'} waiting for your review.`,
    };
  const [course] = coursesOf(week);
  if (course !== undefined) return courseWords(course);
  if (AUDIENCES.every((audience) => week[audience].place === 'inside'))
    return {
      key: 'calm',
      phrases: say`A calm week: ${viewsWithin('human')} and ${viewsWithin('ai')} are as usual.`,
    };
  return { key: 'totals', phrases: totalsOf(week.thisWeek) };
}

function courseWords({ audience, ratio, weeks, from, to }: Course) {
  const phrases = say`${views(audience)} have ${ratio > 0 ? 'grown' : 'fallen'} ${ratioWords(ratio)} in ${inWords(weeks)} weeks, from about ${thousands(from)} to ${thousands(to)} a week.`;
  return { key: `course ${audience}`, phrases, text: textOf(phrases) };
}

/** Both totals, of the loaded days. */
function totalsOf({ human, ai, days_loaded: days }: WeekRow): Phrase[] {
  const when = days === 7 ? 'this week' : `on ${inWords(days)} of seven days`;
  const part = (audience: Audience, count: number): Phrase => ({
    text: viewsBy(audience, count),
    audience,
    path: null,
  });
  return say`${part('human', human)} and ${part('ai', ai)} ${when}.`;
}

/** The totals of people and AI with their changes; only the changes if the headline has the totals. */
function totalsWithChange(week: Comparison, isTold: boolean): string {
  const both = AUDIENCES.map((audience) => {
    const { views: count, same, leftOut } = week[audience];
    const isKnown = same !== null && leftOut.size === 0;
    const change = isKnown ? changeOf(same.now, same.before) : null;
    return { audience, count, change };
  });
  const written = both.map(({ change }) => change && writeChange(change));
  const [human, ai] = written;
  if (isTold) return human && ai ? `Compared with last week: human ${human} and AI ${ai}.` : '';
  const isBoth =
    Boolean(human && ai) && both.every(({ change }) => change && fromLastWeek(change) === 'from last week');
  const parts = both.map(({ audience, count, change }) => {
    const than = change === null || isBoth ? '' : ` ${fromLastWeek(change)}`;
    return viewsBy(audience, count) + (change === null ? '' : ` (${writeChange(change)}${than})`);
  });
  return `${inSequence(parts)}${isBoth ? ' compared with last week' : ' this week'}.`;
}

/** That the day of a burst is left out of the comparison, and what is left. */
function leftOutOf({ audience, firstDay, burst, burstBefore, same, leftOut }: AudienceWeek): string[] {
  if (same === null || (burst === null && burstBefore === null)) return [];
  const weekdays = inSequence([...leftOut].sort().map((at) => weekday(addDays(firstDay, at))));
  const change = changeOf(same.now, same.before);
  return [
    ...(burstBefore === null
      ? []
      : [`Last week, ${viewsBy(audience, burstBefore.views)} came on ${namedDay(burstBefore.day)}.`]),
    `Without ${weekdays}, the other ${inWords(same.days)} days had ${viewsBy(audience, same.now)} (${writeChange(change)} ${fromLastWeek(change)}).`,
  ];
}

/** Why a full week is not compared with the one before; empty if it is. */
function whyNotCompared({ thisWeek, weekBefore, before, isFirst, hasOlder, broken }: Comparison): string {
  if (before !== null) return '';
  if (broken !== null) return `Not compared: counting changed on ${longDay(broken.day)}.`;
  if (isFirst)
    return hasOlder
      ? 'Earlier weeks are not loaded yet, so there is nothing to compare it with.'
      : 'This is the first week in the history, so there is nothing to compare it with yet.';
  const first = addDays(thisWeek.week, -7);
  const days = shortDayRange({ first, last: addDays(first, 6) });
  return weekBefore === null
    ? `The week before, ${days}, is not loaded, so no change is shown.`
    : `Only ${inWords(weekBefore.days_loaded)} of the seven days of the week before, ${days}, ${weekBefore.days_loaded === 1 ? 'is' : 'are'} loaded, so no change is shown.`;
}
