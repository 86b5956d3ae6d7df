import { counted } from '../format/numbers.js';

/** With more projects than this, those with nothing special are counted together instead of named. */
export const MOST_NAMED = 10;

/** What is to be said about a project. */
interface OfProject {
  readonly name: string;
  readonly words: string;
}

/** One line per project; of many, those of which the same is to be said share one. */
export function linesOf(all: readonly OfProject[]): string[] {
  if (all.length <= MOST_NAMED) return all.map(({ name, words }) => `${name}: ${words}`);
  const names = new Map<string, string[]>();
  for (const { name, words } of all) names.set(words, [...(names.get(words) ?? []), name]);
  return [...names].map(([words, [first, ...others]]) =>
    others.length === 0 ? `${first}: ${words}` : `${counted(others.length + 1, 'project')}, each: ${words}`,
  );
}
