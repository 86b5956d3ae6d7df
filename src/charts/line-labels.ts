import { thousands } from '../format/numbers.js';
import type { DrawnLines } from './chart.js';
import type { Layout } from './layout.js';
import { round, textAt, widthOfText } from './svg.js';

/** The names of the lines, each in the color of its line. */
export const namesOf = ({ names }: Layout): string[] =>
  names.map(({ x, y, words, color }) => textAt(x, y, words, { color, isBold: true }));

/** In pixels: letters nearer to each other become one label. */
const LETTERS_APART = 30;

/** A vertical line where something happened, with its letter. A solid one says that counting changed. */
export function lettersOf({ marks, points }: DrawnLines, { plot, xs }: Layout): string[] {
  const placed = marks.flatMap(({ day, letter, isBreak }) => {
    const x = xs[points.findIndex(({ first, last }) => first <= day && day <= last)];
    return x === undefined ? [] : { x, letter, isBreak };
  });
  const drawn = placed.map(({ x, isBreak }) => {
    const look = isBreak ? 'stroke="var(--ink)"' : 'stroke="var(--muted)" stroke-dasharray="2 3"';
    return `<path class="mark" d="M${round(x)} ${plot.top}V${plot.bottom}" ${look}/>`;
  });
  const groups: (typeof placed)[] = [];
  for (const mark of placed) {
    const last = groups.at(-1);
    if (last !== undefined && mark.x - (last.at(-1)?.x ?? 0) < LETTERS_APART) last.push(mark);
    else groups.push([mark]);
  }
  const labels = groups.map((group) => {
    const [first, last] = [group[0], group.at(-1)];
    const words = first === last ? first?.letter : `${first?.letter ?? ''}–${last?.letter ?? ''}`;
    const middle = ((first?.x ?? 0) + (last?.x ?? 0)) / 2;
    return textAt(middle, plot.top - 6, words ?? '', { anchor: 'middle' });
  });
  return [...new Set(drawn), ...labels];
}

/** In pixels: how far the triangles of one day are apart, and where their numbers begin. */
const TRIANGLES_APART = 5;
const BESIDE = 9;

/** Triangles for the values above the scale, with the numbers that have room. */
export function trianglesOf({ lines }: DrawnLines, { xs, highest, plot }: Layout): string[] {
  const above = lines
    .flatMap(({ color, values }, line) =>
      values.flatMap((value, index) => {
        const x = (xs[index] ?? 0) + TRIANGLES_APART * (line - (lines.length - 1) / 2);
        return value === null || value <= highest ? [] : { color, value, x };
      }),
    )
    .sort((one, two) => two.value - one.value);
  const numbered: number[] = [];
  return above.map(({ color, value, x }) => {
    const triangle = `<path d="M${round(x - 5)} ${plot.top + 3}h10l-5 -8z" fill="var(--${color})"/>`;
    const reach = BESIDE + widthOfText(thousands(value));
    // Of days near each other, the highest has its number, beside all of their triangles.
    if (numbered.some((other) => Math.abs(other - x) < 2 * reach)) return triangle;
    numbered.push(x);
    const near = above.map((other) => other.x).filter((other) => Math.abs(other - x) < reach);
    const [first, last] = [Math.min(...near), Math.max(...near)];
    const isBefore = first - reach > plot.left;
    const at = isBefore ? first - BESIDE : last + BESIDE;
    return triangle + textAt(at, plot.top + 4, thousands(value), { anchor: isBefore ? 'end' : 'start' });
  });
}
