import { once } from 'node:events';
import type { WriteStream } from 'node:tty';
import { escapeLines } from '../format/text.js';
import type * as screenOnly from './screen.js';
import { type Redact, redactor, unmistakable } from '../redact.js';

/** What only a terminal needs; loading it takes longer than many a command takes. */
type Screen = typeof screenOnly;

type Stream = NodeJS.WritableStream & Partial<Pick<WriteStream, 'isTTY' | 'columns'>>;
export type Colors = ReturnType<typeof colorsOf>;

/** Without a screen, no color of ours is in any text. */
const NEVER = /(?!)/;

const color =
  (mark: string | undefined, begin: number, end: number) =>
  (text: string): string =>
    mark === undefined ? text : `\u001b[${begin};${mark}m${text}\u001b[${end};${mark}m`;

/** Functions that color text which an `Output` writes; without a mark they leave it as it is. */
export const colorsOf = (mark?: string) => ({
  bold: color(mark, 1, 22),
  dim: color(mark, 2, 22),
  red: color(mark, 31, 39),
  green: color(mark, 32, 39),
  yellow: color(mark, 33, 39),
  cyan: color(mark, 36, 39),
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
  #isLog = false;
  readonly #live: ReturnType<Screen['createLogUpdate']> | undefined;

  /** Without a `screen`, even a terminal gets no colors, no progress drawn over itself and no broken lines. */
  constructor(
    private readonly out: Stream,
    private readonly err: Stream,
    isColorWanted: boolean,
    private readonly screen?: Screen,
  ) {
    const marked = ({ isTTY }: Stream) =>
      colorsOf(isColorWanted && isTTY === true ? screen?.MARK : undefined);
    this.colors = marked(out);
    this.noteColors = marked(err);
    if (err.isTTY === true) this.#live = screen?.createLogUpdate(err, { showCursor: true });
  }

  get isTerminal(): boolean {
    return this.out.isTTY === true;
  }

  /** Whether progress may be drawn over itself. */
  get isLive(): boolean {
    return this.#live !== undefined;
  }

  /** Columns of the terminal; 100 where there is none. */
  get width(): number {
    return this.out.columns ?? 100;
  }

  get noteWidth(): number {
    return this.err.columns ?? 100;
  }

  /** Removes these from everything written from now on: the last line of defense for secrets. */
  hide(secrets: readonly string[]): void {
    for (const secret of unmistakable(secrets)) this.#hidden.add(secret);
    this.#redact = redactor([...this.#hidden]);
  }

  /** From now on, standard output is a log: only what is given to `write` appears there. */
  logOnly(): void {
    this.#isLog = true;
  }

  data(text: string): void {
    if (!this.#isLog) this.write(`${text}\n`);
  }

  /** Data as JSON, its keys in camelCase, whatever columns they come from. */
  json(value: unknown): void {
    this.data(JSON.stringify(value, camelKeys, 2));
  }

  /** Text, wrapped at the width of the terminal; a pipe gets it unchanged. */
  words(text: string): void {
    if (this.#isLog) return;
    const shown = this.#shown(text, this.out);
    const { screen, isTerminal, width } = this;
    this.out.write(`${isTerminal && screen ? screen.wrapped(shown, width) : shown}\n`);
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
    this.#live?.(this.#shown(text, this.err));
  }

  clearLive(): void {
    this.#live?.clear();
  }

  #shown(text: string, { isTTY }: Stream): string {
    // Every second part is the beginning of a color of ours.
    return this.#redact(text)
      .split(this.screen?.MARKED ?? NEVER)
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
