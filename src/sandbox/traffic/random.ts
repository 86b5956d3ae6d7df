/**
 * Randomness as a function of keys: the same keys give the same numbers in every process, so
 * traffic needs no storage and can be generated in any order.
 */

/** A source of numbers in [0, 1). */
export type Uniform = () => number;

/** Mixes integers into one unsigned 32-bit integer (the finalizer of MurmurHash3 after each key). */
export function hash(...keys: number[]): number {
  let state = 0x9e3779b9;
  for (const key of keys) {
    state = Math.imul(state ^ key, 0x85ebca6b);
    state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
    state ^= state >>> 16;
  }
  return state >>> 0;
}

/** A text as a key for `hash` (FNV-1a). */
export function hashText(text: string): number {
  let state = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    state = Math.imul(state ^ text.charCodeAt(index), 0x01000193);
  }
  return state >>> 0;
}

/** One number in [0, 1) from the keys. */
export const fraction = (...keys: number[]): number => hash(...keys) / 2 ** 32;

/** A stream of numbers in [0, 1) that starts at the keys (mulberry32). */
export function uniformFrom(...keys: number[]): Uniform {
  let state = hash(...keys);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A standard normal number (Box-Muller; the second of the pair is not kept). */
function normal(uniform: Uniform): number {
  return Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** A factor around 1 (its mean) whose logarithm is normal with standard deviation `sigma`. */
export const wobble = (sigma: number, uniform: Uniform): number =>
  Math.exp(sigma * normal(uniform) - (sigma * sigma) / 2);

/** Above this mean, a normal distribution approximates the Poisson distribution in constant time. */
const NORMAL_FROM = 30;

/** A random count of independent events with the given mean. */
export function poisson(mean: number, uniform: Uniform): number {
  if (mean > NORMAL_FROM) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal(uniform)));
  const end = Math.exp(-mean);
  let count = 0;
  for (let product = uniform(); product > end; product *= uniform()) count += 1;
  return count;
}

/** The items in an order that depends only on the keys: adding items does not reorder the others. */
export function shuffled(items: readonly string[], ...keys: number[]): string[] {
  return items
    .map((item) => ({ item, place: hash(...keys, hashText(item)) }))
    .sort((a, b) => a.place - b.place || (a.item < b.item ? -1 : 1))
    .map(({ item }) => item);
}
