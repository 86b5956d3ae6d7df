import { type Uniform, uniformFrom } from '../../src/sandbox/traffic/random.js';

/** Choices that are the same for the same seed, as long as they are made in the same order. */
export class Choice {
  readonly #uniform: Uniform;

  constructor(seed: number) {
    this.#uniform = uniformFrom(seed);
  }

  readonly chance = (share: number): boolean => this.#uniform() < share;

  readonly between = (low: number, high: number): number => low + this.#uniform() * (high - low);

  readonly whole = (low: number, high: number): number => Math.floor(this.between(low, high + 1));

  pick<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[Math.floor(this.#uniform() * items.length)] ?? items[0];
  }

  /** One of the items, with probabilities by weight. */
  weighted<const Item>(...items: readonly [readonly [number, Item], ...(readonly [number, Item])[]]): Item {
    let left = this.#uniform() * items.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, item] of items) if ((left -= weight) < 0) return item;
    return items[0][1];
  }
}
