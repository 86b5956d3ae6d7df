import { createLogUpdate } from 'log-update';
import picocolors from 'picocolors';
import { once } from 'node:events';
import type { WriteStream } from 'node:tty';
import { type Redact, redactor, unmistakable } from '../redact.js';
import { wrapped } from './wrapped.js';

export type Colors = ReturnType<typeof picocolors.createColors>;
type Stream = NodeJS.WritableStream & Partial<Pick<WriteStream, 'isTTY' | 'columns'>>;

/** Data goes to standard output; notes and progress go to standard error, so that a pipe gets data alone. */
export class Output {
  /** Colours for data; none into a pipe, or when `NO_COLOR` is set. */
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
    this.colors = picocolors.createColors(isColorWanted && out.isTTY === true);
    this.noteColors = picocolors.createColors(isColorWanted && err.isTTY === true);
    this.#live = createLogUpdate(err, { showCursor: true });
  }

  get isTerminal(): boolean {
    return this.out.isTTY === true;
  }

  /** Whether progress may be drawn over itself. */
  get isLive(): boolean {
    return this.err.isTTY === true;
  }

  /** Columns of the terminal; what a pipe is taken to have when there is none. */
  get width(): number {
    return this.out.columns ?? 100;
  }

  get noteWidth(): number {
    return this.err.columns ?? 100;
  }

  /** From now on, nothing that is written holds these either. Whoever meets a secret takes it out; this is the net below. */
  hide(secrets: readonly string[]): void {
    for (const secret of unmistakable(secrets)) this.#hidden.add(secret);
    this.#redact = redactor([...this.#hidden]);
  }

  data(text: string): void {
    this.write(`${text}\n`);
  }

  /** Data in words: no line is wider than the terminal, unless a single word is. A pipe gets it as it is. */
  words(text: string): void {
    this.data(this.isTerminal ? wrapped(text, this.width) : text);
  }

  /** Data as it comes, without a line feed; false when the reader cannot keep up. */
  readonly write = (text: string): boolean => this.out.write(this.#redact(text));

  readonly drained = (): Promise<unknown> => once(this.out, 'drain');

  note(text: string): void {
    if (this.isLive) this.#live.clear();
    this.err.write(this.#redact(`${text}\n`));
  }

  /** Draws over what was drawn before; on a terminal only. */
  live(text: string): void {
    if (this.isLive) this.#live(this.#redact(text));
  }

  clearLive(): void {
    if (this.isLive) this.#live.clear();
  }
}
