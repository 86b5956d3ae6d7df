import { AUDIENCES, otherThan, viewsBy } from '../../format/audience.js';
import { inSequence, namedDay } from '../../format/days.js';
import { inWords, ratioWords, thousands } from '../../format/numbers.js';
import { type AudienceWeek, type WeekComparison, sum } from './comparison.js';
import { type WeekFact, named, say, views, viewsWithin } from './phrases.js';
import type { MovedRow } from './rows.js';

export type MovedPage = Omit<MovedRow, 'weeks'>;

/** Smaller changes are not told. */
const NOTABLE_RATIO = 0.1;
const LEAST_VIEWS = 20;
/** In standard deviations of chance alone. */
const BEYOND_CHANCE = 3;
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
    ...AUDIENCES.flatMap((audience) => [burstIn(week[audience]), changeIn(week[audience], old)]),
    leadOf(week),
  ].filter((fact) => fact !== undefined);
  const pages = moved.map(factOf);
  const isAtStake = (fact: WeekFact, least: number): boolean =>
    fact.stake >= Math.max(LEAST_VIEWS, least * all);
  return [
    ...found.filter((fact) => isAtStake(fact, LEAST_STAKE)),
    ...pages.slice(0, 1).filter((fact) => isAtStake(fact, LEAST_STAKE_OF_PAGE)),
  ].sort((one, two) => two.stake - one.stake);
}

/** A page that moved, with the audiences that changed, the one that moved further first. */
function factOf(page: MovedPage): WeekFact {
  const { audience, path, changed } = page;
  const moves = [audience, otherThan(audience)].flatMap((of) => {
    const { [of]: count, [`${of}_expected` as const]: expected } = page;
    if (expected === null || !changed.includes(of)) return [];
    const ratio = count / expected - 1;
    const size =
      expected === 0
        ? 'where none were expected'
        : `${ratioWords(ratio)} ${ratio > 0 ? 'more' : 'fewer'} than expected`;
    return { stake: Math.abs(count - expected), words: `${viewsBy(of, count)}, ${size}` };
  });
  return {
    key: `page ${path}`,
    stake: sum(moves.map(({ stake }) => stake)),
    words: say`${named(path)} had ${moves.map(({ words }) => words).join(', and ')}.`,
  };
}

/** One or two days with many times their usual views. */
function burstIn({ audience, bursts }: AudienceWeek): WeekFact | undefined {
  const [first] = bursts;
  if (first === undefined) return undefined;
  const when = `${inWords(bursts.length)} ${bursts.length === 1 ? 'day' : 'days'}, ${inSequence(bursts.map(({ day }) => namedDay(day)))}`;
  return {
    key: `burst ${audience} ${first.day}`,
    stake: sum(bursts.map(({ views, usual }) => views - usual)),
    words: say`${viewsBy(audience, sum(bursts.map(({ views }) => views)))} came on ${when}.`,
  };
}

/** One audience has clearly more views, where the other had more in most of the weeks before. */
function leadOf({ leader, thisWeek, before, earlier }: WeekComparison): WeekFact | undefined {
  if (leader === null || before === null) return undefined;
  const other = otherThan(leader);
  const wasBehind = 2 * earlier.filter((week) => week[leader] < week[other]).length > earlier.length;
  const [now, others] = [thisWeek[leader], thisWeek[other]];
  // With a burst, the numbers of the whole week may say otherwise.
  if (!wasBehind || now <= others) return undefined;
  return {
    key: `lead ${leader}`,
    stake: Math.abs(now - others - (before[leader] - before[other])),
    words: say`${views(leader)} now exceed ${viewsWithin(other)}: ${thousands(now)} vs. ${thousands(others)}.`,
  };
}

/** A change beyond the usual range, or beyond chance while no range is known. */
function changeIn(of: AudienceWeek, old: ReadonlySet<string>): WeekFact | undefined {
  const { audience, same, place, leftOut, record } = of;
  if (same === null) return undefined;
  const { now, before } = same;
  const difference = now - before;
  const ratio = before === 0 ? Infinity * Math.sign(now) : now / before - 1;
  const isUp = difference > 0;
  const isBeyond =
    Math.abs(difference) > BEYOND_CHANCE * Math.sqrt(now + before) &&
    (place === 'unknown'
      ? Math.abs(ratio) >= NOTABLE_BY_ITSELF
      : Math.abs(ratio) >= NOTABLE_RATIO && place === (isUp ? 'above' : 'below'));
  if (!isBeyond) return outsideOf(of, old);
  const key = `change ${audience} ${isUp ? 'up' : 'down'}`;
  const where = leftOut.size === 0 ? '' : ` on the ${inWords(7 - leftOut.size)} days that can be compared`;
  const size = ratio === Infinity ? 'from none' : ratioWords(ratio);
  const again = old.has(key) ? ` again${size.endsWith('%') ? ' by' : ''}` : '';
  const high = record === null ? '' : `, ${weekHigh(record)}`;
  return {
    key,
    stake: Math.abs(difference),
    words: say`${views(audience)} ${isUp ? 'rose' : 'fell'}${again} ${size} to ${thousands(now)}${where}${high}.`,
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
        ? say`${views(audience)} are ${weekHigh(record)}: ${thousands(count)}.`
        : say`${views(audience)} ${old.has(change) ? 'stay' : 'are'} ${place} their usual range: ${thousands(count)} (usually ${thousands(usual.low)} to ${thousands(usual.high)}).`,
  };
}

const weekHigh = (weeks: number): string => `the most in ${weeks} weeks`;
