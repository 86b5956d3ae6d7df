import { type Audience, audienceName, audienceWord } from '../../format/audience.js';
import { shownPath } from '../../format/text.js';

/** A piece of a sentence. An audience is shown in its color, and a path as a link to its page. */
export interface Phrase {
  readonly text: string;
  readonly audience: Audience | null;
  readonly path: string | null;
}

/** Something true of a week, and the sentence that says it. */
export interface WeekFact {
  /** What it is about, whatever the numbers. What was also true of the week before is not news. */
  readonly key: string;
  /** The number of views it is about. */
  readonly stake: number;
  /** Whether both totals with their change say the same, but for the cause. */
  readonly isInTotals?: boolean;
  /** The cause as it is said; empty if it is unknown. */
  readonly cause?: Phrase[] | string;
  /** The audience and page that the sentence names as its cause. */
  readonly page?: string | undefined;
  readonly words: Phrase[];
}

export const textOf = (phrases: readonly Phrase[]): string => phrases.map(({ text }) => text).join('');

/** A sentence as phrases: text between audiences and paths is one phrase. */
export function say(
  texts: TemplateStringsArray,
  ...values: readonly (Phrase | Phrase[] | string)[]
): Phrase[] {
  const phrases: Phrase[] = [];
  for (const value of texts.flatMap((text, index) => [text, ...[values[index] ?? ''].flat()])) {
    const last = phrases.at(-1);
    if (typeof value === 'object') phrases.push(value);
    else if (last?.audience === null && last.path === null)
      phrases.splice(-1, 1, { ...last, text: last.text + value });
    else if (value !== '') phrases.push({ text: value, audience: null, path: null });
  }
  return phrases;
}

export const inColor = (audience: Audience, text: string): Phrase => ({ text, audience, path: null });

/** `Human views` at the start of a sentence; `AI views`. */
export const views = (audience: Audience) => inColor(audience, `${audienceName(audience)} views`);
export const viewsWithin = (audience: Audience) => inColor(audience, `${audienceWord(audience)} views`);

/** The most characters of a path in a sentence. */
const LONGEST_PATH = 48;

export const named = (path: string): Phrase => ({
  text: shownPath(path, LONGEST_PATH),
  audience: null,
  path,
});
