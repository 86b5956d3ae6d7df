/**
 * Characters that are invisible or that a terminal may interpret: control characters (C0, C1, DEL),
 * format characters such as bidirectional overrides, line separators, and halves of surrogate
 * pairs.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
const EACH_UNSAFE = new RegExp(UNSAFE, 'gu');

export const isSafe = (text: string): boolean => !UNSAFE.test(text);

export const replaceUnsafe = (text: string, replacement: (character: string) => string): string =>
  text.replace(EACH_UNSAFE, replacement);

/** Text with its unsafe characters escaped as in JSON: `\u001b`. */
export const escapeUnsafe = (text: string): string =>
  replaceUnsafe(text, (character) =>
    character
      .split('')
      .map((unit) => String.raw`\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );

/** As `escapeUnsafe`, but keeps line feeds. */
export const escapeLines = (text: string): string => text.split('\n').map(escapeUnsafe).join('\n');

/** Text between the tags of XML or HTML. */
export const escapeMarkup = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Lines below another one, without those that do not apply. */
export const indented = (lines: readonly (string | false | undefined)[]): string[] =>
  lines.filter((line) => typeof line === 'string').map((line) => `  ${line}`.trimEnd());

/** Lines below a title, after a blank one; none without lines. */
export const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : ['', title, ...indented(lines)];

/** A name in code as a heading: `Busy days` for `busy_days` or `busy-days`. */
export const inTitle = (name: string): string => capitalised(name.replaceAll(/[_-]/g, ' ').trim());

/** `Apples`, from `apples`. */
export const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** A value as text; nested values as JSON, NULL as an empty string. */
export const valueText = (value: string | number | boolean | object | null): string =>
  value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);

/** What a formula begins with; some spreadsheets accept signs of other widths. */
const SIGN = '[=+@＝＋－＠\ufe62\ufe63\ufe66\u2212-]';
/** Quotes and blanks that may come before it. */
const BLANKS = '" \f\v\u00a0\u2007\u200b\u202f\u2060\u3000\ufeff';
const FIRST_FORMULA = new RegExp(`^(?:[${BLANKS}\t\r\n]*${SIGN}|[\t\r])`, 'u');
/** After what separates cells or rows for a reader that does not split at commas. */
const NEXT_FORMULA = new RegExp(`([;\t\r\n])(?=[${BLANKS}]*${SIGN})`, 'gu');

/**
 * Text with an apostrophe wherever a spreadsheet would run it as a formula, because a path is
 * whatever a visitor typed.
 */
const unformulated = (text: string): string =>
  text.replace(NEXT_FORMULA, "$1'").replace(FIRST_FORMULA, "'$&");

/** At the beginning of a CSV file, from which spreadsheets learn that it is UTF-8. */
export const BYTE_ORDER_MARK = '\uFEFF';

/** A CSV cell (RFC 4180). */
export function csvCell(text: string, { isNumeric }: { readonly isNumeric: boolean }): string {
  const guarded = isNumeric ? text : unformulated(text);
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}

// Anyone can request any path, so a path is untrusted text, and links only to the site itself.

/**
 * A path as valid UTF-8, such that different paths stay different: half a surrogate pair becomes a
 * literal `\ud800`, and the backslash of a literal `\ud800` becomes `\u005c`.
 */
export function storablePath(path: string): string {
  // Almost every path is storable as it is, which is quick to see.
  if (path.isWellFormed() && !path.includes('\\')) return path;
  return path.replace(/\p{Cs}|\\(?=u(?:d[89a-f][0-9a-f]{2}|005c))/gu, (character) =>
    character === '\\' ? String.raw`\u005c` : escapeUnsafe(character),
  );
}

const LONGEST_SHOWN = 88;
const TAIL = 24;

/** A path with its unsafe characters percent-encoded. */
export const wholePath = (path: string): string =>
  // The buffer replaces halves of surrogate pairs, which have no encoding.
  replaceUnsafe(path, (character) => encodeURIComponent(Buffer.from(character).toString()));

/** As `wholePath`, but a very long path is cut in the middle, never inside a character. */
export function shownPath(path: string, longest = LONGEST_SHOWN): string {
  const characters = Array.from(wholePath(path));
  if (characters.length <= longest) return characters.join('');
  const head = characters.slice(0, longest - TAIL - 1);
  return `${head.join('')}…${characters.slice(-TAIL).join('')}`;
}

/** Text of at most so many characters, as `lengthOf` counts them, cut after a word if there is one. */
export function shortened(text: string, longest: number, lengthOf = (text: string) => text.length): string {
  if (lengthOf(text) <= longest) return text;
  const characters = Array.from(text);
  let end = Math.min(characters.length, longest);
  const start = () => characters.slice(0, end).join('');
  while (end > 0 && lengthOf(`${start()}…`) > longest) end -= 1;
  return `${start().replace(/(?<=\S)\s+\S{0,40}$/u, '')}…`;
}

/**
 * The URL of a page of the site; undefined if no site is configured or the path does not start with
 * a single slash (browsers read `//host` and `/\host` as another site).
 */
export function siteLink(siteUrl: string | null, path: string): string | undefined {
  if (siteUrl === null || !/^\/(?![/\\])/.test(path)) return undefined;
  const site = webAddress(siteUrl);
  const page = webAddress(siteUrl.replace(/\/+$/, '') + path);
  return page?.origin === site?.origin ? page?.href : undefined;
}

/** Untrusted text as one line without unsafe characters. */
export const shownText = (text: string): string => replaceUnsafe(text.replace(/\s+/g, ' ').trim(), () => '');

/** `text` as an http or https URL; undefined for anything else, such as `javascript:`. */
export function webLink(text: string | null): string | undefined {
  return text === null ? undefined : webAddress(text)?.href;
}

function webAddress(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url : undefined;
}

/** With more projects than this, those with nothing special are counted together instead of named. */
export const MOST_NAMED = 10;
