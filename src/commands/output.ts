import { createLogUpdate } from 'log-update';
import picocolors from 'picocolors';
import type { WriteStream } from 'node:tty';

export type Colors = ReturnType<typeof picocolors.createColors>;
type Stream = NodeJS.WritableStream & Partial<Pick<WriteStream, 'isTTY' | 'columns'>>;

/** Control characters: a page's path must not be able to steer the terminal. Line feeds are ours. */
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Untrusted text as it may stand on a terminal. */
export const plainText = (text: string): string => text.replaceAll(CONTROL, '�');

/** Data goes to standard output; notes and progress go to standard error, so that a pipe gets data alone. */
export class Output {
  /** Colours for data; none into a pipe, or when `NO_COLOR` is set. */
  readonly colors: Colors;
  readonly noteColors: Colors;
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

  data(text: string): void {
    this.out.write(`${text}\n`);
  }

  note(text: string): void {
    if (this.isLive) this.#live.clear();
    this.err.write(`${text}\n`);
  }

  /** Draws over what was drawn before; on a terminal only. */
  live(text: string): void {
    if (this.isLive) this.#live(text);
  }

  clearLive(): void {
    if (this.isLive) this.#live.clear();
  }
}
