import { createHash } from 'node:crypto';

/** What makes pages similar: their views in the last full weeks, oldest first. */
export interface PairCandidate {
  readonly path: string;
  readonly weeks: readonly { readonly human: number; readonly ai: number }[];
}

/** Two similar pages. Chance gave one its job now; the other is held out. */
export interface Pair {
  readonly treated: string;
  readonly heldOut: string;
}

/**
 * Pairs candidates, given in the order of the ranking, and draws one of each pair. Each page in turn gets the most similar
 * page left as its twin, until there are `count` pairs or fewer than two pages left.
 */
export function drawPairs(candidates: readonly PairCandidate[], count: number, seed: string): Pair[] {
  const left = candidates.map((page) => ({ path: page.path, place: placeOf(page) }));
  const pairs: Pair[] = [];
  while (pairs.length < count) {
    const first = left.shift();
    if (first === undefined) break;
    const distances = left.map(({ place }) => distance(first.place, place));
    const [twin] = left.splice(distances.indexOf(Math.min(...distances)), 1);
    if (twin === undefined) break;
    pairs.push(draw(first.path, twin.path, seed));
  }
  return pairs;
}

/**
 * A coin toss that depends only on the seed and the two paths, so anyone can repeat a recorded draw. Paths contain no
 * line breaks.
 */
function draw(one: string, other: string, seed: string): Pair {
  const [first, second] = one < other ? [one, other] : [other, one];
  const [byte = 0] = createHash('sha256').update(`${seed}\n${first}\n${second}`).digest();
  return byte % 2 === 0 ? { treated: first, heldOut: second } : { treated: second, heldOut: first };
}

/** Coordinates of a page on a log scale: level and course of each audience. */
function placeOf({ weeks }: PairCandidate): number[] {
  const half = Math.floor(weeks.length / 2);
  return (['human', 'ai'] as const).flatMap((audience) => {
    const views = (from: number, to?: number) =>
      weeks.slice(from, to).reduce((sum, week) => sum + week[audience], 0);
    const level = Math.log(views(0) + 1);
    const course = Math.log((views(weeks.length - half) + 1) / (views(0, half) + 1));
    return [level, course];
  });
}

const distance = (one: readonly number[], other: readonly number[]): number =>
  Math.hypot(...one.map((value, index) => value - (other[index] ?? 0)));
