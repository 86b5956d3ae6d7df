/**
 * Characters that a terminal may obey or that nobody sees: control characters (C0, C1, DEL), format
 * characters such as bidirectional overrides, line separators, and halves of surrogate pairs.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
const EACH_UNSAFE = new RegExp(UNSAFE, 'gu');

export const isSafe = (text: string): boolean => !UNSAFE.test(text);

export const replaceUnsafe = (text: string, replacement: (character: string) => string): string =>
  text.replace(EACH_UNSAFE, replacement);

/** Text with its unsafe characters as JSON escapes them: `\u001b`. */
export const escapeUnsafe = (text: string): string =>
  replaceUnsafe(text, (character) =>
    character
      .split('')
      .map((unit) => String.raw`\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );

/** As `escapeUnsafe`, but lines stay lines. */
export const escapeLines = (text: string): string => text.split('\n').map(escapeUnsafe).join('\n');
