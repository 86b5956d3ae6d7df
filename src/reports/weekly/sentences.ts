import { addDays } from '../../day.js';
import { capitalised, changeOf, inWords, signedPercent, thousands } from '../../format/numbers.js';
import { shortDayRange } from '../../format/days.js';
import { leader, other, placeIn, recordOf, usualOf, type Audience, type Comparison } from './comparison.js';

/** A piece of a sentence; one that names an audience is shown in its color. */
export interface Phrase {
  readonly text: string;
  readonly audience: Audience | null;
}

/** From this change on, a week outside its usual range makes the headline. */
const NOTABLE_RATIO = 0.1;

type Rule = (week: Comparison) => Phrase[] | undefined;

/** The first rule with something to say makes the headline. The last one always has. */
const rules: readonly Rule[] = [
  incomplete,
  noViews,
  oneAudience,
  level,
  crossing,
  growth,
  record,
  calm,
  whoReadsMore,
];

/** The week in a sentence. */
export const headlineOf = (week: Comparison): Phrase[] =>
  rules.map((rule) => rule(week)).find((phrases) => phrases !== undefined) ?? [];

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

/** Some weekdays have more views than others, so a part of a week says nothing about the whole. */
function incomplete({ thisWeek }: Comparison): Phrase[] | undefined {
  if (thisWeek.days_loaded === 7) return undefined;
  return say`The week is incomplete: ${inWords(thisWeek.days_loaded)} of its seven days ${thisWeek.days_loaded === 1 ? 'is' : 'are'} loaded.`;
}

function noViews({ thisWeek }: Comparison): Phrase[] | undefined {
  if (thisWeek.human + thisWeek.ai > 0) return undefined;
  return say`No views were recorded this week: counting may have stopped.`;
}

function oneAudience({ thisWeek }: Comparison): Phrase[] | undefined {
  if (thisWeek.human > 0 && thisWeek.ai > 0) return undefined;
  const only = thisWeek.ai > 0 ? 'ai' : 'human';
  return say`Only ${named(only)} read your docs: no views by ${named(other(only))}.`;
}

function level({ thisWeek }: Comparison): Phrase[] | undefined {
  if (leader(thisWeek) !== undefined) return undefined;
  return say`${atStart('human')} and ${named('ai')} read your docs equally.`;
}

function crossing(week: Comparison): Phrase[] | undefined {
  const { thisWeek, before, unbroken } = week;
  const leads = leader(thisWeek);
  if (leads === undefined || before === null || leader(before) !== other(leads)) return undefined;
  const since = unbroken.some((week) => leader(week) === leads) ? 'again' : 'now';
  return say`${atStart(leads)} ${since} ${reads(leads)} your docs more than ${named(other(leads))} ${does(leads)}.`;
}

function growth(week: Comparison): Phrase[] | undefined {
  const [human, ai] = [notableChange(week, 'human'), notableChange(week, 'ai')];
  const audience = Math.abs(ai) >= Math.abs(human) ? 'ai' : 'human';
  const ratio = audience === 'ai' ? ai : human;
  if (ratio === 0) return undefined;
  const change = `${signedPercent(Math.abs(ratio)).slice(1)} ${ratio > 0 ? 'more' : 'less'}`;
  return say`${atStart(audience)} read your docs ${change} than last week.`;
}

/** The change of an audience, or 0 when it is small or leads to a usual week. */
function notableChange(week: Comparison, audience: Audience): number {
  if (week.before === null) return 0;
  const views = week.thisWeek[audience];
  const change = changeOf(views, week.before[audience]);
  if (change.kind !== 'ratio' || Math.abs(change.ratio) < NOTABLE_RATIO) return 0;
  return placeIn(usualOf(week, audience), views) === 'inside' ? 0 : change.ratio;
}

function record(week: Comparison): Phrase[] | undefined {
  const audience = (['ai', 'human'] as const).find((of) => recordOf(week, of) !== undefined);
  if (audience === undefined) return undefined;
  const most = `the most in ${inWords(recordOf(week, audience) ?? 0)} weeks`;
  return say`${atStart(audience)} ${reads(audience)} your docs more than ever: ${most}.`;
}

function calm(week: Comparison): Phrase[] | undefined {
  const leads = leader(week.thisWeek);
  const isUsual = (audience: Audience): boolean =>
    placeIn(usualOf(week, audience), week.thisWeek[audience]) === 'inside';
  if (leads === undefined || !isUsual('human') || !isUsual('ai')) return undefined;
  return say`A calm week: ${named(leads)} ${reads(leads)} your docs more than ${named(other(leads))} ${does(leads)}.`;
}

function whoReadsMore(week: Comparison): Phrase[] | undefined {
  const leads = leader(week.thisWeek);
  if (leads === undefined) return undefined;
  return say`${atStart(leads)} ${reads(leads)} your docs more than ${named(other(leads))} ${does(leads)}.`;
}

/**
 * The sentences below the headline: how each audience changed, the larger one first; or why that
 * cannot be said. Empty when days of the week are missing, which the cautions say.
 */
export function detailOf(week: Comparison, isFirstWeek: boolean): string {
  const { thisWeek, weekBefore, before } = week;
  if (thisWeek.days_loaded < 7) return '';
  if (before !== null) {
    const first = leader(thisWeek) ?? 'ai';
    const changes = [changeSentence(week, first, ' from last week'), changeSentence(week, other(first), '')];
    return [...changes, ...streakSentence(week, first)].join(' ');
  }
  if (isFirstWeek)
    return 'This is the first week in the history, so there is nothing to compare it with yet.';
  const monday = addDays(thisWeek.week, -7);
  const days = shortDayRange({ first: monday, last: addDays(monday, 6) });
  return weekBefore === null
    ? `The week before, ${days}, is not loaded, so no change is shown.`
    : `Only ${inWords(weekBefore.days_loaded)} of the seven days of the week before, ${days}, ${weekBefore.days_loaded === 1 ? 'is' : 'are'} loaded, so no change is shown.`;
}

function changeSentence(week: Comparison, audience: Audience, since: string): string {
  const name = audience === 'ai' ? 'AI views' : 'Human views';
  const now = week.thisWeek[audience];
  const change = changeOf(now, week.before?.[audience] ?? 0);
  if (change.kind !== 'ratio') return `${name} went from none to ${thousands(now)}.`;
  if (now === 0 && change.ratio === 0) return `${name} stayed at zero.`;
  const size = signedPercent(change.ratio);
  const isLevel = size === '0%';
  const moved = isLevel ? 'held steady' : `${change.ratio > 0 ? 'rose' : 'fell'} ${size.slice(1)}${since}`;
  return `${name} ${moved}${usualWords(week, audience, isLevel)}.`;
}

function usualWords(week: Comparison, audience: Audience, isLevel: boolean): string {
  const place = placeIn(usualOf(week, audience), week.thisWeek[audience]);
  if (place === 'unknown') return '';
  if (place === 'inside' || isLevel) return ', about as usual';
  if (recordOf(week, audience) !== undefined) return ', to a record high';
  return place === 'above' ? ', more than usual' : ', less than usual';
}

/** For how long `first` has led; nothing for a single week, or when it has led for as long as is known. */
function streakSentence({ unbroken }: Comparison, first: Audience): string[] {
  const broken = unbroken.findIndex((week) => leader(week) !== first);
  if (broken < 1) return [];
  const { text } = atStart(first);
  const have = first === 'ai' ? 'has' : 'have';
  return [`${text} ${have} been the larger audience for ${inWords(broken + 1)} weeks running.`];
}
