import { randomInt } from 'node:crypto';
import wrapAnsi from 'wrap-ansi';

export { createLogUpdate } from 'log-update';

/** Marks our own colors. Untrusted text cannot contain the mark, because it is random. */
export const MARK = Array.from({ length: 4 }, () => randomInt(1000, 10_000)).join(';');
export const MARKED = new RegExp(String.raw`(\u001b\[\d+);${MARK}m`);

/** The width before a line's last column, up to the first gap of two spaces, or its indentation. */
const BEFORE_TEXT = /^ *(?:\S+(?: \S+)* {2,})?/;

/** Wraps lines at `width` between words, with continuation lines aligned to the start of the text. */
export const wrapped = (text: string, width: number): string =>
  text
    .split('\n')
    .map((line) => wrappedLine(line, width))
    .join('\n');

function wrappedLine(line: string, width: number): string {
  const before = BEFORE_TEXT.exec(line)?.[0] ?? '';
  const indent = ' '.repeat(before.length);
  const room = width - before.length;
  if (room < width / 2) return line;
  return before + wrapAnsi(line.slice(before.length), room, { hard: false }).replaceAll('\n', `\n${indent}`);
}
