import { addDays, daysBetween } from '../../day.js';
import { AUDIENCES, otherThan, viewsBy } from '../../format/audience.js';
import { inSequence, namedDay } from '../../format/days.js';
import { inWords, percentOf, ratioWords, thousands } from '../../format/numbers.js';
import { type AudienceWeek, type WeekComparison, sum } from './comparison.js';
import { BEYOND_CHANCE, leadOf, LEAST_VIEWS, NOTABLE_RATIO, onlyOf } from './leads.js';
import { type WeekFact, named, type Phrase, say, views } from './phrases.js';
import type { MovedRow } from './rows.js';

export type MovedPage = Omit<MovedRow, 'weeks'>;

const NOTABLE_RECORD = 0.05;
/** The least change that is told while it is not known what is usual. */
const NOTABLE_BY_ITSELF = 0.25;
/** As shares of the site's views: a change of all views, and of one page. */
const LEAST_STAKE = 0.02;
const LEAST_STAKE_OF_PAGE = 0.01;

/** Everything worth telling about a full week, the most views first. `old` has the keys of the week before. */
export function factsOf(
  week: WeekComparison,
  moved: readonly MovedPage[],
  old: ReadonlySet<string> = new Set(),
): WeekFact[] {
  const all = week.thisWeek.human + week.thisWeek.ai;
  const found = [
    ...AUDIENCES.flatMap((audience) => [
      burstIn(week[audience]),
      changeIn(week[audience], week[otherThan(audience)], old),
    ]),
    leadOf(week) ?? onlyOf(week),
  ].filter((fact) => fact !== undefined);
  const told = new Set(found.map(({ page }) => page));
  const pages = moved.flatMap((page) => factOf(page, told) ?? []);
  const isAtStake = (fact: WeekFact, least: number): boolean =>
    fact.stake >= Math.max(LEAST_VIEWS, least * all);
  return [
    ...found.filter((fact) => isAtStake(fact, LEAST_STAKE)),
    ...pages.slice(0, 1).filter((fact) => isAtStake(fact, LEAST_STAKE_OF_PAGE)),
  ].sort((one, two) => two.stake - one.stake);
}

/** A page that moved, with its audiences that are not told as a cause, the one that moved further first. */
function factOf(page: MovedPage, told: ReadonlySet<string | undefined>): WeekFact | undefined {
  const { audience, path, changed } = page;
  const moves = [audience, otherThan(audience)].flatMap((of) => {
    const { [of]: count, [`${of}_expected` as const]: expected } = page;
    if (expected === null || !changed.includes(of) || told.has(`${of} ${path}`)) return [];
    const ratio = count / expected - 1;
    const size =
      expected === 0
        ? 'where none were expected'
        : `${ratioWords(ratio)} ${ratio > 0 ? 'more' : 'fewer'} than expected`;
    return { stake: Math.abs(count - expected), words: `${viewsBy(of, count)}, ${size}` };
  });
  if (moves.length === 0) return undefined;
  return {
    key: `page ${path}`,
    stake: sum(moves.map(({ stake }) => stake)),
    words: say`${named(path)} had ${moves.map(({ words }) => words).join(', and ')}.`,
  };
}

/** The cause of a burst or change: at least half of it. */
const MOST = 0.5;

/** One or two days with many times their usual views. */
function burstIn({ audience, bursts, causes, firstDay }: AudienceWeek): WeekFact | undefined {
  const [first] = bursts;
  if (first === undefined) return undefined;
  const excess = sum(bursts.map(({ views, usual }) => views - usual));
  const places = bursts.map(({ day }) => daysBetween(firstDay, day));
  const page = causes.find(
    ({ days }) => sum(places.map((at) => (days[at + 7] ?? 0) - (days[at] ?? 0))) >= MOST * excess,
  );
  const where = page === undefined ? '' : say`, most of them to ${one(page)}, ${named(page.path)}`;
  const when = `${inWords(bursts.length)} ${bursts.length === 1 ? 'day' : 'days'}, ${inSequence(bursts.map(({ day }) => namedDay(day)))}`;
  return {
    key: `burst ${audience} ${first.day}`,
    stake: excess,
    page: page && `${audience} ${page.path}`,
    words: say`${viewsBy(audience, sum(bursts.map(({ views }) => views)))} came on ${when}${where}.`,
  };
}

/** A change beyond the usual range, or beyond chance while no range is known. */
function changeIn(of: AudienceWeek, others: AudienceWeek, old: ReadonlySet<string>): WeekFact | undefined {
  const { audience, views: count, same, place, leftOut, record } = of;
  // That there are no views at all is a fact of its own.
  if (same === null || count === 0) return undefined;
  const { now, before } = same;
  const difference = now - before;
  const ratio = before === 0 ? Infinity * Math.sign(now) : now / before - 1;
  const isUp = difference > 0;
  const isBeyond =
    Math.abs(difference) > BEYOND_CHANCE * Math.sqrt(now + before) &&
    (place === 'unknown'
      ? Math.abs(ratio) >= NOTABLE_BY_ITSELF
      : Math.abs(ratio) >= NOTABLE_RATIO && place === (isUp ? 'above' : 'below'));
  if (!isBeyond) return outsideOf(of, old) ?? backIn(of, old);
  const key = `change ${audience} ${isUp ? 'up' : 'down'}`;
  const { page, words: causedBy } = causeOf(of, others, difference);
  const where = leftOut.size === 0 ? '' : ` on the ${inWords(7 - leftOut.size)} days that can be compared`;
  const high = record === null || ratio === Infinity ? '' : `, ${weekHigh(record)}`;
  const size = ratio === Infinity ? 'from none' : ratioWords(ratio);
  const again = old.has(key) ? ` again${size.endsWith('%') ? ' by' : ''}` : '';
  return {
    key,
    stake: Math.abs(difference),
    isInTotals: where === '' && high === '',
    cause: causedBy,
    page,
    words: say`${views(audience)} ${isUp ? 'rose' : 'fell'}${again} ${size} to ${thousands(now)}${where}${high}${causedBy}.`,
  };
}

/** A week outside its usual range that did not change enough from the week before. */
function outsideOf(
  { audience, usual, bursts, expected, place, views: count, record }: AudienceWeek,
  old: ReadonlySet<string>,
): WeekFact | undefined {
  if (usual === null || bursts.length > 0 || expected === null) return undefined;
  if (place !== 'above' && place !== 'below') return undefined;
  const distance = Math.abs(count / Math.max(1, expected) - 1);
  if (distance < (record === null ? NOTABLE_RATIO : NOTABLE_RECORD)) return undefined;
  const change = `change ${audience} ${place === 'above' ? 'up' : 'down'}`;
  return {
    key: `outside ${audience} ${place}`,
    stake: Math.abs(count - expected),
    words:
      record !== null && !old.has(change)
        ? say`${views(audience)} hit ${weekHigh(record)}: ${thousands(count)}.`
        : say`${views(audience)} ${old.has(change) ? 'stay' : 'are'} ${place} their usual range: ${thousands(count)} (usually ${thousands(usual.low)} to ${thousands(usual.high)}).`,
  };
}

/** A week back in its usual range, after one outside that was told. */
function backIn({ audience, same, place }: AudienceWeek, old: ReadonlySet<string>): WeekFact | undefined {
  const wasOutside = [...old].some((key) => /^(?:change|outside) (\w+) /.exec(key)?.[1] === audience);
  if (!wasOutside || same?.days !== 7 || place !== 'inside') return undefined;
  const { now, before } = same;
  if (Math.abs(now / before - 1) < NOTABLE_RATIO) return undefined;
  return {
    key: `back ${audience}`,
    stake: Math.abs(now - before),
    words: say`${views(audience)} are back in their usual range: ${thousands(now)}, after ${thousands(before)} the week before.`,
  };
}

/** `a 12-week high`, `an 18-week high`. */
const weekHigh = (weeks: number): string =>
  `${/^(?:8|11$|18$)/.test(String(weeks)) ? 'an' : 'a'} ${weeks}-week high`;

/** What makes up most of a change, in words: days without views, or the page, the day, or the day of the page. */
function causeOf(
  { audience, causes, days, leftOut, firstDay }: AudienceWeek,
  others: AudienceWeek,
  difference: number,
): { page?: string; words: Phrase[] | string } {
  const shares = sharesOf(days, leftOut, difference);
  const lower = difference > 0 ? -7 : 0;
  const empty = shares.flatMap((share, at) => (share > 0 && days[at + 7 + lower] === 0 ? at : []));
  if (empty.length < 7 && sum(empty.map((at) => shares[at] ?? 0)) >= MOST) {
    const when = inSequence(empty.map((at) => namedDay(addDays(firstDay, at + lower))));
    const none = empty.every((at) => others.days[at + 7 + lower] === 0) ? 'no views at all' : 'none';
    return { words: `, ${difference > 0 ? 'after' : 'with'} ${none} on ${when}` };
  }
  const [page] = causes
    .map((cause) => ({ ...cause, byDay: sharesOf(cause.days, leftOut, difference) }))
    .sort((one, two) => sum(two.byDay) - sum(one.byDay));
  const isPage = page !== undefined && sum(page.byDay) >= MOST;
  const byDay = isPage ? page.byDay : shares;
  const ofDay = Math.max(...byDay);
  const on = ofDay < MOST ? '' : ` on ${namedDay(addDays(firstDay, byDay.indexOf(ofDay)))}`;
  if (isPage) {
    const part = partWords(on === '' ? sum(byDay) : ofDay, difference);
    const words = say`, ${part} on ${one(page)}, ${named(page.path)}${on === '' ? '' : `,${on}`}`;
    return { page: `${audience} ${page.path}`, words };
  }
  return { words: on === '' ? '' : `, ${partWords(ofDay, difference)}${on}` };
}

const one = ({ is_page }: { readonly is_page: boolean }): string =>
  is_page ? 'one page' : 'one address that is not a page';

/** A share of a change: more than all of it if others fell. */
function partWords(share: number, difference: number): string {
  const change = difference > 0 ? 'rise' : 'fall';
  if (share > 1) return `more than the whole ${change}`;
  const size = percentOf(share);
  return `${size === '100%' ? 'all' : size} of the ${change}`;
}

/** The share of each weekday in a difference. */
const sharesOf = (days: readonly number[], leftOut: ReadonlySet<number>, difference: number): number[] =>
  Array.from({ length: 7 }, (_, at) =>
    leftOut.has(at) ? 0 : ((days[at + 7] ?? 0) - (days[at] ?? 0)) / difference,
  );
