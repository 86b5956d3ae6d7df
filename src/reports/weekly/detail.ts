import { addDays } from '../../day.js';
import { changeOf } from '../../format/change.js';
import { shortDayRange } from '../../format/days.js';
import { inWords, signedPercent, thousands } from '../../format/numbers.js';
import { isRecord, leader, other, placeIn, usualOf, type Audience, type Comparison } from './comparison.js';

/**
 * The sentences below the headline: how each audience changed, the larger one first; or why that cannot be said.
 * Empty when days of the week are missing, which the cautions tell.
 */
export function detailOf(week: Comparison, isFirstWeek: boolean): string {
  const { thisWeek, weekBefore, before } = week;
  if (thisWeek.days_loaded < 7) return '';
  if (before !== null) {
    const first = leader(thisWeek) ?? 'ai';
    const streak = streakOf(week, first);
    const running =
      streak === undefined
        ? ''
        : ` and ${has(first)} been the larger audience for ${inWords(streak)} weeks running`;
    return `${changeSentence(week, first, ' on last week', running)} ${changeSentence(week, other(first), '', '')}`;
  }
  if (isFirstWeek)
    return 'This is the first week in the history, so there is nothing to compare it with yet.';
  const monday = addDays(thisWeek.week, -7);
  const days = shortDayRange({ first: monday, last: addDays(monday, 6) });
  return weekBefore === null
    ? `The week before, ${days}, is not loaded, so no change is shown.`
    : `Only ${inWords(weekBefore.days_loaded)} of the seven days of the week before, ${days}, ${weekBefore.days_loaded === 1 ? 'is' : 'are'} loaded, so no change is shown.`;
}

const has = (audience: Audience): string => (audience === 'ai' ? 'has' : 'have');

function changeSentence(week: Comparison, audience: Audience, onWhat: string, ending: string): string {
  const name = audience === 'ai' ? 'AI' : 'People';
  const now = week.thisWeek[audience];
  const change = changeOf(now, week.before?.[audience] ?? 0);
  if (change.kind !== 'ratio') return `${name} went from no views to ${thousands(now)}${ending}.`;
  if (now === 0 && change.ratio === 0) return `${name} had no views, as last week.`;
  const size = signedPercent(change.ratio);
  const moved =
    size === '0%'
      ? `held level${onWhat && ' with last week'}`
      : `${change.ratio > 0 ? 'grew' : 'fell'} ${size.slice(1)}${onWhat}`;
  const usual = usualWords(week, audience, size === '0%');
  // The clause on what is usual stands between commas when the sentence goes on after it.
  return `${name} ${moved}${usual}${usual && ending && ','}${ending}.`;
}

function usualWords(week: Comparison, audience: Audience, isLevel: boolean): string {
  const usual = usualOf(week, audience);
  const place = placeIn(usual, week.thisWeek[audience]);
  if (usual === null || place === 'unknown') return '';
  if (place === 'inside' || isLevel) return ', about as usual';
  const whose = audience === 'ai' ? 'its' : 'their';
  if (isRecord(week, audience)) return `, to ${whose} most on record`;
  return `, to ${whose} ${place === 'above' ? 'most' : 'least'} in ${inWords(usual.weeks + 1)} weeks`;
}

/** For how many weeks `first` has led, this one included; undefined for one, or when it has led as long as is known. */
function streakOf({ unbroken }: Comparison, first: Audience): number | undefined {
  const broken = unbroken.findIndex((week) => leader(week) !== first);
  return broken < 1 ? undefined : broken + 1;
}
