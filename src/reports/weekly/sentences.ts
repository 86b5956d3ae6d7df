import { changeOf } from '../../format/change.js';
import { capitalised, counted, inWords, signedPercent, thousands } from '../../format/numbers.js';
import { isRecord, leader, other, placeIn, usualOf, type Audience, type Comparison } from './comparison.js';

/** A piece of a sentence; one that names an audience is shown in its colour. */
export interface Phrase {
  readonly text: string;
  readonly audience: Audience | null;
}

/** From this change on, a week outside its usual range makes the headline. */
const NOTABLE_RATIO = 0.1;

type Rule = (week: Comparison) => Phrase[] | undefined;

/** The first rule that has something to say makes the headline. The last one has, whatever the week. */
const rules: readonly Rule[] = [noViews, oneAudience, level, crossing, growth, record, calm, whoReadsMore];

/** The week in a sentence. */
export const headlineOf = (week: Comparison): Phrase[] =>
  rules.map((rule) => rule(week)).find((phrases) => phrases !== undefined) ?? [];

const say = (text: string): Phrase => ({ text, audience: null });
const named = (audience: Audience): Phrase => ({ text: audience === 'ai' ? 'AI' : 'people', audience });
const atStart = (audience: Audience): Phrase => ({ text: capitalised(named(audience).text), audience });

function noViews({ thisWeek }: Comparison): Phrase[] | undefined {
  if (thisWeek.human + thisWeek.ai > 0) return undefined;
  const when = thisWeek.days_loaded === 7 ? 'this week' : 'on the days loaded';
  return [
    say(`Nobody read your docs ${when}: no views by `),
    named('human'),
    say(', none by '),
    named('ai'),
    say('.'),
  ];
}

function oneAudience({ thisWeek }: Comparison): Phrase[] | undefined {
  if (thisWeek.human > 0 && thisWeek.ai > 0) return undefined;
  const only = thisWeek.ai > 0 ? 'ai' : 'human';
  const views = counted(thisWeek[only], 'view');
  return [
    say('Only '),
    named(only),
    say(` read your docs: ${views}, and none by `),
    named(other(only)),
    say('.'),
  ];
}

function level({ thisWeek }: Comparison): Phrase[] | undefined {
  if (leader(thisWeek) !== undefined) return undefined;
  const views = counted(thisWeek.ai, 'view');
  return [atStart('human'), say(' and '), named('ai'), say(` read your docs equally: ${views} each.`)];
}

function crossing({ thisWeek, before, unbroken }: Comparison): Phrase[] | undefined {
  const leads = leader(thisWeek);
  if (leads === undefined || before === null || leader(before) !== other(leads)) return undefined;
  const since = unbroken.some((week) => leader(week) === leads) ? 'again' : 'now';
  return [atStart(leads), ...readsMore(leads, since, ':', thisWeek)];
}

function growth(week: Comparison): Phrase[] | undefined {
  const [human, ai] = [notableChange(week, 'human'), notableChange(week, 'ai')];
  const audience = Math.abs(ai) >= Math.abs(human) ? 'ai' : 'human';
  const ratio = audience === 'ai' ? ai : human;
  if (ratio === 0) return undefined;
  const share = signedPercent(Math.abs(ratio)).slice(1);
  const views = counted(week.thisWeek[audience], 'view');
  return [
    atStart(audience),
    say(` read your docs ${share} ${ratio > 0 ? 'more' : 'less'} than last week: `),
    say(`${views}, beside ${thousands(week.thisWeek[other(audience)])} by `),
    named(other(audience)),
    say('.'),
  ];
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
  const margin = (of: Audience): number => week.thisWeek[of] / Math.max(1, week.records[of] ?? 0);
  const [audience] = (['human', 'ai'] as const)
    .filter((of) => isRecord(week, of))
    .sort((one, two) => margin(two) - margin(one));
  if (audience === undefined) return undefined;
  const views = counted(week.thisWeek[audience], 'view');
  return [
    atStart(audience),
    say(` ${audience === 'ai' ? 'reads' : 'read'} your docs more than ever: ${views}, the most of `),
    say(`${inWords(week.records.weeks + 1)} weeks. `),
    atStart(other(audience)),
    say(` ${other(audience) === 'ai' ? 'comes' : 'come'} to ${thousands(week.thisWeek[other(audience)])}.`),
  ];
}

function calm(week: Comparison): Phrase[] | undefined {
  const leads = leader(week.thisWeek);
  const isUsual = (audience: Audience): boolean =>
    placeIn(usualOf(week, audience), week.thisWeek[audience]) === 'inside';
  if (leads === undefined || !isUsual('human') || !isUsual('ai')) return undefined;
  return [say('A calm week: '), named(leads), ...readsMore(leads, undefined, ',', week.thisWeek)];
}

function whoReadsMore({ thisWeek }: Comparison): Phrase[] | undefined {
  const leads = leader(thisWeek);
  return leads && [atStart(leads), ...readsMore(leads, undefined, ':', thisWeek)];
}

/** What follows the name of the larger audience. */
function readsMore(
  leads: Audience,
  since: 'now' | 'again' | undefined,
  mark: ':' | ',',
  week: Readonly<Record<Audience, number>>,
): Phrase[] {
  const verb = leads === 'ai' ? 'reads' : 'read';
  const counterpart = leads === 'ai' ? 'do' : 'does';
  const numbers = `${counted(week[leads], 'view')} against ${thousands(week[other(leads)])}`;
  return [
    say(` ${since === undefined ? '' : `${since} `}${verb} your docs more than `),
    named(other(leads)),
    say(` ${counterpart}${mark} ${numbers}.`),
  ];
}
