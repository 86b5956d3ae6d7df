import { createLogUpdate } from 'log-update';
import wrapAnsi from 'wrap-ansi';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import type { WriteStream } from 'node:tty';
import { escapeLines } from '../format/text.js';
import { type Redact, redactor, unmistakable } from '../redact.js';

type Stream = NodeJS.WritableStream & Partial<Pick<WriteStream, 'isTTY' | 'columns'>>;
export type Colors = ReturnType<typeof colorsOf>;

/** Marks our own colors, so that a sequence in the text of a stranger, who cannot guess it, is none. */
const MARK = Array.from({ length: 4 }, () => randomInt(1000, 10_000)).join(';');
const MARKED = new RegExp(String.raw`(\u001b\[\d+);${MARK}m`);

const color =
  (isWanted: boolean, begin: number, end: number) =>
  (text: string): string =>
    isWanted ? `\u001b[${begin};${MARK}m${text}\u001b[${end};${MARK}m` : text;

/** Functions that color text which an `Output` writes, or leave it as it is. */
export const colorsOf = (isWanted: boolean) => ({
  bold: color(isWanted, 1, 22),
  dim: color(isWanted, 2, 22),
  red: color(isWanted, 31, 39),
  green: color(isWanted, 32, 39),
  yellow: color(isWanted, 33, 39),
  cyan: color(isWanted, 36, 39),
});

/**
 * Data goes to standard output; notes and progress go to standard error, so that a pipe gets data
 * alone. A terminal shows unsafe characters escaped, wherever they come from; a pipe gets them as they are.
 */
export class Output {
  /** Colors for data; none into a pipe, or when `NO_COLOR` is set. */
  readonly colors: Colors;
  readonly noteColors: Colors;
  readonly #hidden = new Set<string>();
  #redact: Redact = (text) => text;
  readonly #live: ((text: string) => void) & { clear: () => void };

  constructor(
    private readonly out: Stream,
    private readonly err: Stream,
    isColorWanted: boolean,
  ) {
    this.colors = colorsOf(isColorWanted && out.isTTY === true);
    this.noteColors = colorsOf(isColorWanted && err.isTTY === true);
    this.#live = createLogUpdate(err, { showCursor: true });
  }

  get isTerminal(): boolean {
    return this.out.isTTY === true;
  }

  /** Whether progress may be drawn over itself. */
  get isLive(): boolean {
    return this.err.isTTY === true;
  }

  /** Columns of the terminal; 100 where there is none. */
  get width(): number {
    return this.out.columns ?? 100;
  }

  get noteWidth(): number {
    return this.err.columns ?? 100;
  }

  /** From now on, nothing that is written holds these: the last net below those who remove secrets themselves. */
  hide(secrets: readonly string[]): void {
    for (const secret of unmistakable(secrets)) this.#hidden.add(secret);
    this.#redact = redactor([...this.#hidden]);
  }

  data(text: string): void {
    this.write(`${text}\n`);
  }

  /** Data in words: no line is wider than the terminal, unless a single word is. A pipe gets it as it is. */
  words(text: string): void {
    const shown = this.#shown(text, this.out);
    this.out.write(`${this.isTerminal ? wrapped(shown, this.width) : shown}\n`);
  }

  /** Data as it comes, without a line feed; false when the reader cannot keep up. */
  readonly write = (text: string): boolean => this.out.write(this.#shown(text, this.out));

  readonly drained = (): Promise<unknown> => once(this.out, 'drain');

  note(text: string): void {
    this.clearLive();
    this.err.write(this.#shown(`${text}\n`, this.err));
  }

  /** Draws over what was drawn before; on a terminal only. */
  live(text: string): void {
    if (this.isLive) this.#live(this.#shown(text, this.err));
  }

  clearLive(): void {
    if (this.isLive) this.#live.clear();
  }

  #shown(text: string, { isTTY }: Stream): string {
    // Every second part is the beginning of a color of ours.
    return this.#redact(text)
      .split(MARKED)
      .map((part, index) => (index % 2 === 1 ? `${part}m` : isTTY === true ? escapeLines(part) : part))
      .join('');
  }
}

/** The space before a line's last column: what is left of the first gap of two spaces, or the indentation. */
const BEFORE_TEXT = /^ *(?:\S+(?: \S+)* {2,})?/;

/** Breaks lines wider than `width` between words; what follows is aligned with the start of the text. */
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
