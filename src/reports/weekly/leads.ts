import { AUDIENCES, type Audience, otherThan } from '../../format/audience.js';
import { inWords, ratioWords, thousands } from '../../format/numbers.js';
import { type WeekComparison, median } from './comparison.js';
import { type WeekFact, say, views, viewsWithin } from './phrases.js';

/** Smaller changes are not told. */
export const NOTABLE_RATIO = 0.1;
/** In standard deviations of chance alone. */
export const BEYOND_CHANCE = 3;
export const LEAST_VIEWS = 20;
/** An audience with a smaller share does not count. */
const LEAST_SHARE = 0.01;

/** A lead smaller than this many standard deviations of it is a coin flip. */
const CLEAR_LEAD = 3;
const LEAST_LEAD = Math.log(1.05);
const CHANGES_LEAST = 3;

/** The standard deviation of a week: a step between two weeks varies by the root of two more. */
function spreadOf(weeks: readonly number[]): number {
  const steps = weeks.slice(1).map((value, index) => Math.abs(value - (weeks[index] ?? value)));
  return (1.4826 * median(steps)) / Math.SQRT2;
}

/** Who leads clearly in each of some weeks, newest first. */
function leadersOf(weeks: WeekComparison['typical']): (Audience | undefined)[] {
  const ratios = weeks.map(({ human, ai }) => Math.log((ai + 0.5) / (human + 0.5)));
  const spread = ratios.length <= CHANGES_LEAST ? Infinity : spreadOf(ratios);
  return weeks.map(({ human, ai }, index) => {
    const chance = Math.sqrt(1 / Math.max(1, human) + 1 / Math.max(1, ai));
    const ratio = ratios[index] ?? 0;
    if (Math.abs(ratio) <= Math.max(CLEAR_LEAD * Math.max(spread, chance), LEAST_LEAD)) return undefined;
    return ratio > 0 ? 'ai' : 'human';
  });
}

/** By how much the difference between the audiences changed. */
const shiftOf = (week: Counts, before: Counts): number =>
  Math.abs(week.ai - week.human - (before.ai - before.human));
type Counts = Readonly<Record<Audience, number>>;

/** One audience overtook the other, by more than the difference usually varies. */
export function leadOf({ typical, before, thisWeek }: WeekComparison): WeekFact | undefined {
  const [leads, ...earlier] = leadersOf(typical);
  const known = earlier.filter((leader) => leader !== undefined);
  if (leads === undefined || before === null || known[0] !== otherThan(leads)) return undefined;
  const other = otherThan(leads);
  const [now, others] = [thisWeek[leads], thisWeek[other]];
  // A burst may hide who leads on other days, and then the numbers would say otherwise. That there
  // are no other views at all is a fact of its own.
  if (now <= others || others === 0) return undefined;
  const when = known.includes(leads) ? 'again' : 'now';
  return {
    key: `lead ${leads}`,
    stake: shiftOf(thisWeek, before),
    words: say`${views(leads)} ${when} exceed ${viewsWithin(other)}: ${thousands(now)} vs. ${thousands(others)}.`,
  };
}

/** Only one audience views the site, or nearly, on more than the days of a burst. */
export function onlyOf({ thisWeek, before, typical }: WeekComparison): WeekFact | undefined {
  const { human, ai } = typical[0] ?? thisWeek;
  const audience = human > ai ? 'human' : 'ai';
  const other = otherThan(audience);
  const share = Math.min(human, ai) / (human + ai);
  if (share >= LEAST_SHARE) return undefined;
  return {
    key: `only ${audience}`,
    stake: before === null || share === 0 ? human + ai : shiftOf(thisWeek, before),
    words:
      share === 0
        ? say`No ${viewsWithin(other)} were recorded.`
        : say`${views(other)} are less than 1% of all views.`,
  };
}

const WEEKS_OF_COURSE = 9;
const ENDS = 3;
/** The share of a course that has been covered halfway. */
const LEAST_AT_HALF = 0.15;

/** The steady changes of people and AI over the quarter, the larger one first. */
export const coursesOf = (week: WeekComparison): WeekFact[] =>
  AUDIENCES.flatMap((audience) => courseOf(week, audience) ?? []).sort((one, two) => two.stake - one.stake);

/** A steady change, from the median of the first three weeks to that of the last. */
function courseOf(week: WeekComparison, audience: Audience): WeekFact | undefined {
  const weeks = week.typical.map((one) => one[audience]);
  if (weeks.length < WEEKS_OF_COURSE) return undefined;
  const noise = spreadOf(weeks.map((one) => Math.log(one + 0.5)));
  const [to, from] = [median(weeks.slice(0, ENDS)), median(weeks.slice(-ENDS))];
  const change = Math.log((to + 0.5) / (from + 0.5));
  // A step is news in its week, and not a course in those after it.
  const middle = median(weeks.slice(ENDS, -ENDS));
  const half = Math.log((middle + 0.5) / (from + 0.5)) / change;
  if (half < LEAST_AT_HALF || half > 1 - LEAST_AT_HALF) return undefined;
  if (Math.abs(change) < Math.max(Math.log(1 + NOTABLE_RATIO), BEYOND_CHANCE * noise)) return undefined;
  const stake = Math.abs(to - from);
  if (stake < LEAST_VIEWS || from < LEAST_VIEWS) return undefined;
  // A week far on the other side of its usual range contradicts it.
  const { place } = week[audience];
  if (place === (to > from ? 'below' : 'above')) return undefined;
  const verb = to > from ? 'grown' : 'fallen';
  return {
    key: `course ${audience}`,
    stake,
    words: say`${views(audience)} have ${verb} ${ratioWords(to / from - 1)} in ${inWords(weeks.length)} weeks, from about ${thousands(from)} to ${thousands(to)} a week.`,
  };
}
