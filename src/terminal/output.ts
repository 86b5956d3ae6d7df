import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import type { WriteStream } from 'node:tty';
import { asInvoked, type Invocation } from '../format/advice.js';
import { escapeLines } from '../format/text.js';
import { type Redact, redactor, unmistakable } from '../redact.js';

type Screen = Awaited<ReturnType<typeof loadScreen>>;

/** Loads what only a terminal needs. Loading it takes longer than many commands take to run. */
export async function loadScreen() {
  const { createLogUpdate } = await import('log-update');
  const { default: wrapAnsi } = await import('wrap-ansi');
  return { createLogUpdate, wrapAnsi };
}

type Stream = NodeJS.WritableStream & Partial<Pick<WriteStream, 'isTTY' | 'columns'>>;
export type Colors = ReturnType<typeof colorsOf>;

/** Marks our own colors. Untrusted text cannot contain the mark, because it is random. */
const MARK = Array.from({ length: 4 }, () => randomInt(1000, 10_000)).join(';');
const MARKED = new RegExp(String.raw`(\u001b\[\d+);${MARK}m`);

const color =
  (isOn: boolean, begin: number, end: number) =>
  (text: string): string =>
    isOn ? `\u001b[${begin};${MARK}m${text}\u001b[${end};${MARK}m` : text;

/** Some terminals, such as those of `script`, say that they have none. */
const columnsOf = ({ columns = 0 }: Stream): number => (columns > 0 ? columns : 100);

/** Functions that color text for an `Output`, or leave it unchanged. */
export const colorsOf = (isOn = false) => ({
  bold: color(isOn, 1, 22),
  dim: color(isOn, 2, 22),
  red: color(isOn, 31, 39),
  green: color(isOn, 32, 39),
  yellow: color(isOn, 33, 39),
  cyan: color(isOn, 36, 39),
});

/**
 * Data goes to standard output, and notes and progress go to standard error, so that a pipe gets
 * only data. On a terminal, unsafe characters are escaped; a pipe gets them unchanged.
 */
export class Output {
  /** Colors for data; none in a pipe or if `NO_COLOR` is set. */
  readonly colors: Colors;
  readonly noteColors: Colors;
  /** Whether the command goes on when nobody reads standard output anymore: services do, and what makes changes. */
  goesOnUnread = false;
  readonly #hidden = new Set<string>();
  #redact: Redact = (text) => text;
  #isLog = false;
  #invocation: Invocation = {};
  readonly #live: ReturnType<Screen['createLogUpdate']> | undefined;

  /** Without a `screen`, even a terminal gets no redrawn progress and no wrapped lines. */
  constructor(
    private readonly out: Stream,
    private readonly err: Stream,
    isColorWanted: boolean,
    private readonly screen?: Screen,
  ) {
    this.colors = colorsOf(isColorWanted && out.isTTY);
    this.noteColors = colorsOf(isColorWanted && err.isTTY);
    if (err.isTTY === true) this.#live = screen?.createLogUpdate(err, { showCursor: true });
  }

  get isTerminal(): boolean {
    return this.out.isTTY === true;
  }

  /** Whether progress may be redrawn in place. */
  get isLive(): boolean {
    return this.#live !== undefined;
  }

  /** Columns of the terminal; 100 if there is none. */
  get width(): number {
    return columnsOf(this.out);
  }

  get noteWidth(): number {
    return columnsOf(this.err);
  }

  /** Redacts these secrets in everything written from now on, as a last line of defense. */
  hide(secrets: readonly string[]): void {
    for (const secret of unmistakable(secrets)) this.#hidden.add(secret);
    this.#redact = redactor([...this.#hidden]);
  }

  /** The commands in messages repeat these options from now on. */
  repeatOptions(invocation: Invocation): void {
    this.#invocation = invocation;
  }

  /** Words whose advice repeats those options. */
  readonly asInvoked = (words: string): string => asInvoked(words, this.#invocation);

  /** Turns standard output into a log: from now on, only `write` writes there. */
  logOnly(): void {
    this.#isLog = true;
  }

  data(text: string): void {
    if (!this.#isLog) this.write(`${this.asInvoked(text)}\n`);
  }

  /** Data as JSON, with keys in camelCase. */
  json(value: unknown): void {
    if (!this.#isLog) this.write(`${JSON.stringify(value, camelKeys, 2)}\n`);
  }

  /** Text, wrapped at the terminal's width; a pipe gets it unchanged. */
  words(text: string): void {
    if (this.#isLog) return;
    const shown = this.#shown(this.asInvoked(text), this.out);
    const { screen, isTerminal, width } = this;
    this.out.write(`${isTerminal && screen ? wrapped(shown, width, screen) : shown}\n`);
  }

  /** Data as is, without a line feed; returns false if the reader cannot keep up. */
  readonly write = (text: string): boolean => this.out.write(this.#shown(text, this.out));

  readonly drained = (): Promise<unknown> => once(this.out, 'drain');

  readonly note = (text: string): void => {
    this.clearLive();
    this.err.write(this.#shown(`${this.asInvoked(text)}\n`, this.err));
  };

  /** Redraws progress in place; only on a terminal. */
  live(text: string): void {
    this.#live?.(this.#shown(text, this.err));
  }

  clearLive(): void {
    this.#live?.clear();
  }

  #shown(text: string, { isTTY }: Stream): string {
    // Every second part starts one of our colors.
    return this.#redact(text)
      .split(MARKED)
      .map((part, index) => (index % 2 === 1 ? `${part}m` : isTTY === true ? escapeLines(part) : part))
      .join('');
  }
}

const camelKeys = (_: string, value: unknown): unknown =>
  typeof value !== 'object' || value === null || Array.isArray(value)
    ? value
    : Object.fromEntries(
        Object.entries(value).map(([key, inner]) => [
          key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
          inner as unknown,
        ]),
      );

/** The width before a line's last column, up to the first gap of two spaces, or its indentation. */
const BEFORE_TEXT = /^ *(?:\S+(?: \S+)* {2,})?/;

/**
 * Wraps lines at `width` between words, with continuation lines aligned to the start of the text.
 */
export const wrapped = (text: string, width: number, { wrapAnsi }: Pick<Screen, 'wrapAnsi'>): string =>
  text
    .split('\n')
    .map((line) => {
      const before = BEFORE_TEXT.exec(line)?.[0] ?? '';
      const indent = ' '.repeat(before.length);
      const room = width - before.length;
      if (room < width / 2) return line;
      const lines = wrapAnsi(line.slice(before.length), room, { hard: false });
      return before + lines.replaceAll('\n', `\n${indent}`);
    })
    .join('\n');
