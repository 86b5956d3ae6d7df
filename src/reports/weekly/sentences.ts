import { addDays } from '../../day.js';
import { shortDayRange } from '../../format/days.js';
import { changeOf, counted, inWords, signedPercent } from '../../format/numbers.js';
import { capitalised, shownPath } from '../../format/text.js';
import {
  type Audience,
  AUDIENCES,
  type Comparison,
  leader,
  type MovedRow,
  other,
  placeOf,
  recordOf,
  type WeekRow,
} from './comparison.js';

/** A piece of a sentence; one that names an audience is shown in its color. */
interface Phrase {
  readonly text: string;
  readonly audience: Audience | null;
}

/** A week outside its usual range is news if it changed by at least this much. */
const NOTABLE_RATIO = 0.1;

/** Something true of a week. */
interface Fact {
  /** Identifies the fact regardless of its numbers; a fact that was also true last week is not news. */
  readonly key: string;
  readonly phrases: Phrase[];
  /** How to say it the second time. */
  readonly again?: Phrase[];
}

/** Most important first. */
const factsOf = (week: Comparison): Fact[] =>
  [crossing(week), ...growth(week), ...record(week), oneAudience(week), level(week), staysAhead(week)].filter(
    (fact) => fact !== undefined,
  );

/** Other candidates for the headline: pages that moved, furthest first, and pull requests to review. */
export interface OtherNews {
  readonly moved: readonly Pick<MovedRow, 'path' | 'audience' | 'views' | 'expected'>[];
  readonly pullRequests: number;
}

export interface News {
  readonly headline: Phrase[];
  /** More news as sentences, or why the week is not compared with another. May be empty. */
  readonly detail: string;
  /** For a subject: the headline, and how much else there is. */
  readonly subject: string;
}

/**
 * What is new this week, compared with what was true of the week before. Numbers that the report
 * shows every week are not news.
 */
export function newsOf(week: Comparison, weekBefore: Comparison | null, other: OtherNews): News {
  const { thisWeek } = week;
  const views = thisWeek.human + thisWeek.ai;
  const only = thisWeek.days_loaded < 7 ? incomplete(thisWeek) : views === 0 ? NO_VIEWS : undefined;
  if (only !== undefined)
    return { headline: only, detail: '', subject: subjectOf(only, false, other.pullRequests) };
  const old = new Set(weekBefore === null ? [] : factsOf(weekBefore).map(({ key }) => key));
  const facts = factsOf(week);
  const fresh = facts.filter(({ key }) => !old.has(key)).map(({ phrases }) => phrases);
  const [moved] = other.moved;
  // A page may have moved for both audiences.
  const movedPages = new Set(other.moved.map(({ path }) => path)).size;
  const notCompared = whyNotCompared(week);
  const [headline, ...rest] =
    fresh.length > 0
      ? fresh
      : moved !== undefined
        ? [movedSentence(moved)]
        : other.pullRequests > 0 && notCompared === ''
          ? [waiting(other.pullRequests)]
          : [quiet(week, weekBefore, facts)];
  const isAbout = (news: Phrase[]) => fresh.length === 0 && textOf(headline ?? []) === textOf(news);
  return {
    headline: headline ?? [],
    detail: [...rest.slice(0, 2).map(textOf), notCompared].filter((sentence) => sentence !== '').join(' '),
    subject: subjectOf(
      headline ?? [],
      moved !== undefined && isAbout(movedSentence(moved))
        ? movedPages > 1 && counted(movedPages - 1, 'more page')
        : movedPages > 0 && counted(movedPages, 'page'),
      isAbout(waiting(other.pullRequests)) ? 0 : other.pullRequests,
    ),
  };
}

const textOf = (phrases: readonly Phrase[]): string => phrases.map(({ text }) => text).join('');

function subjectOf(headline: readonly Phrase[], moved: string | false, pullRequests: number): string {
  const more = [
    ...(moved === false ? [] : [`${moved} moved`]),
    ...(pullRequests === 0 ? [] : [`${counted(pullRequests, 'pull request')} to review`]),
  ];
  return [textOf(headline).replace(/\.$/, ''), ...(more.length === 0 ? [] : [more.join(', ')])].join('; ');
}

const named = (audience: Audience): Phrase => ({ text: audience === 'ai' ? 'AI' : 'people', audience });
const atStart = (audience: Audience): Phrase => ({ text: capitalised(named(audience).text), audience });
const reads = (audience: Audience): string => (audience === 'ai' ? 'reads' : 'read');
/** What the other audience does, after “more than AI” or “more than people”. */
const does = (leads: Audience): string => (leads === 'ai' ? 'do' : 'does');

/** A sentence as phrases: text between named audiences is one phrase. */
function say(texts: TemplateStringsArray, ...values: readonly (Phrase | string)[]): Phrase[] {
  const phrases: Phrase[] = [];
  for (const value of texts.flatMap((text, index) => [text, values[index] ?? ''])) {
    const last = phrases.at(-1);
    if (typeof value === 'object') phrases.push(value);
    else if (last?.audience === null) phrases.splice(-1, 1, { text: last.text + value, audience: null });
    else if (value !== '') phrases.push({ text: value, audience: null });
  }
  return phrases;
}

/** Weekdays differ in views, so part of a week says nothing about the whole. */
const incomplete = ({ days_loaded: days }: WeekRow): Phrase[] =>
  say`The week is incomplete: ${inWords(days)} of its seven days ${days === 1 ? 'is' : 'are'} loaded.`;

const NO_VIEWS = say`No views were recorded this week: tracking may have stopped.`;

/** An audience below this share hardly reads the docs. */
const HARDLY = 0.01;

function oneAudience({ thisWeek }: Comparison): Fact | undefined {
  const most = leader(thisWeek);
  if (most === undefined) return undefined;
  const few = other(most);
  if (thisWeek[few] === 0)
    return {
      key: `only-${most}`,
      phrases: say`Only ${named(most)} read your docs: no views by ${named(few)}.`,
      again: say`Still only ${named(most)} ${reads(most)} your docs.`,
    };
  if (thisWeek[few] / (thisWeek.human + thisWeek.ai) >= HARDLY) return undefined;
  return {
    key: `hardly-${few}`,
    phrases: say`${atStart(few)} hardly ${reads(few)} your docs.`,
    again: say`${atStart(few)} still hardly ${reads(few)} your docs.`,
  };
}

function level({ thisWeek }: Comparison): Fact | undefined {
  if (leader(thisWeek) !== undefined) return undefined;
  const phrases = say`${atStart('human')} and ${named('ai')} read your docs equally.`;
  return { key: 'level', phrases, again: phrases };
}

function crossing({ thisWeek, before, unbroken }: Comparison): Fact | undefined {
  const leads = leader(thisWeek);
  if (leads === undefined || before === null || leader(before) !== other(leads)) return undefined;
  const since = unbroken.some((week) => leader(week) === leads) ? 'again' : 'now';
  const phrases = say`${atStart(leads)} ${since} ${reads(leads)} your docs more than ${named(other(leads))} ${does(leads)}.`;
  return { key: `crossing-${leads}`, phrases };
}

/** The week after one audience overtook the other. */
function staysAhead({ thisWeek, before, unbroken }: Comparison): Fact | undefined {
  const leads = leader(thisWeek);
  const [, earlier] = unbroken;
  if (leads === undefined || before === null || leader(before) !== leads) return undefined;
  if (earlier === undefined || leader(earlier) !== other(leads)) return undefined;
  const phrases = say`${atStart(leads)} ${leads === 'ai' ? 'stays' : 'stay'} ahead of ${named(other(leads))} for a second week.`;
  return { key: `ahead-${leads}`, phrases };
}

/** Notable changes, larger first. */
function growth(week: Comparison): Fact[] {
  return AUDIENCES.map((audience) => ({ audience, ratio: notableChange(week, audience) }))
    .filter(({ ratio }) => ratio !== 0)
    .sort((one, two) => Math.abs(two.ratio) - Math.abs(one.ratio))
    .map(({ audience, ratio }) => {
      const change = `${signedPercent(Math.abs(ratio)).slice(1)} ${ratio > 0 ? 'more' : 'less'}`;
      return {
        key: `growth-${audience}-${ratio > 0}`,
        phrases: say`${atStart(audience)} read your docs ${change} than last week.`,
        again: say`Again, ${named(audience)} read your docs ${change} than last week.`,
      };
    });
}

/** The change of an audience, or 0 if it is small or the week is within its usual range. */
function notableChange(week: Comparison, audience: Audience): number {
  if (week.before === null) return 0;
  const change = changeOf(week.thisWeek[audience], week.before[audience]);
  if (change.kind !== 'ratio' || Math.abs(change.ratio) < NOTABLE_RATIO) return 0;
  return placeOf(week, audience) === 'inside' ? 0 : change.ratio;
}

const record = (week: Comparison): Fact[] =>
  AUDIENCES.flatMap((audience) => {
    const weeks = recordOf(week, audience);
    if (weeks === undefined) return [];
    return {
      key: `record-${audience}`,
      phrases: say`${atStart(audience)} ${reads(audience)} your docs more than ever: the most in ${inWords(weeks)} weeks.`,
      again: say`Another record: ${named(audience)} ${reads(audience)} your docs more than ever.`,
    };
  });

const NOTHING_EXPECTED = 0.5;
const PATH_LENGTH = 48;

function movedSentence({ path, audience, views, expected }: OtherNews['moved'][number]): Phrase[] {
  const characters = Array.from(shownPath(path));
  const name =
    characters.length <= PATH_LENGTH
      ? characters.join('')
      : `${characters.slice(0, 20).join('')}…${characters.slice(-(PATH_LENGTH - 21)).join('')}`;
  if (expected < NOTHING_EXPECTED)
    return say`${atStart(audience)} found ${name}: ${counted(views, 'view')} where none were expected.`;
  const ratio = views / expected - 1;
  return say`${atStart(audience)} read ${name} ${signedPercent(Math.abs(ratio)).slice(1)} ${ratio > 0 ? 'more' : 'less'} than expected.`;
}

const waiting = (pullRequests: number): Phrase[] =>
  say`${capitalised(inWords(pullRequests))} pull ${pullRequests === 1 ? 'request awaits' : 'requests await'} your review.`;

/** A week without news: the continuing situation, or that everything is as usual. */
function quiet(week: Comparison, weekBefore: Comparison | null, facts: readonly Fact[]): Phrase[] {
  const goesOn = facts.find(({ again }) => again !== undefined)?.again;
  if (goesOn !== undefined) return goesOn;
  if (isCalm(week))
    return say`${weekBefore !== null && isCalm(weekBefore) ? 'Another' : 'A'} calm week: views by ${named('human')} and ${named('ai')} are as usual.`;
  const leads = leader(week.thisWeek) ?? 'ai';
  return say`${atStart(leads)} ${week.before === null ? '' : 'still '}${reads(leads)} your docs more than ${named(other(leads))} ${does(leads)}.`;
}

const isCalm = (week: Comparison): boolean =>
  AUDIENCES.every((audience) => placeOf(week, audience) === 'inside');

/** Why a full week is not compared with the one before; empty if it is. */
function whyNotCompared({ thisWeek, weekBefore, before, isFirst }: Comparison): string {
  if (before !== null) return '';
  if (isFirst) return 'This is the first week in the history, so there is nothing to compare it with yet.';
  const monday = addDays(thisWeek.week, -7);
  const days = shortDayRange({ first: monday, last: addDays(monday, 6) });
  return weekBefore === null
    ? `The week before, ${days}, is not loaded, so no change is shown.`
    : `Only ${inWords(weekBefore.days_loaded)} of the seven days of the week before, ${days}, ${weekBefore.days_loaded === 1 ? 'is' : 'are'} loaded, so no change is shown.`;
}
