/*
 * Several layers keep secrets out of what Readership stores and shows:
 * - The API client removes its key from the data and from the errors that it returns. What mail
 *   servers and channels answer is treated in the same way.
 * - `Output` removes every known secret from the terminal and the log, as a last line of defense.
 * - Settings that contain the value of a secret are refused (`refuseUnfitSecrets`), because
 *   messages, logs and reports quote them.
 * - Queries of `sql` and of assistants run in processes whose environment has no secrets, nor the login of a proxy. The web
 *   app takes no SQL.
 */

/** Replaces every occurrence of the given secrets in a text. */
export type Redact = (text: string) => string;

/**
 * A `Redact` for these values. It works by value, so it also catches a secret that a server echoes,
 * whether plain, URL-encoded or JSON-escaped, wholly or in part.
 */
export function redactor(secrets: readonly string[]): Redact {
  const present = secrets.filter((secret) => secret !== '');
  if (present.length === 0) return (text) => text;
  // Longest first, because a shorter secret may be part of a longer one.
  const longestFirst = present.toSorted((left, right) => right.length - left.length);
  const pattern = new RegExp(longestFirst.map(patternOf).join('|'), 'gi');
  return (text) => text.replaceAll(pattern, '[redacted]');
}

/**
 * Secrets that can be searched for in any text. One of fewer than 12 characters, such as `test`, may
 * be an ordinary word, and replacing that would change data. Keys that a platform generates are longer.
 */
export const unmistakable = (secrets: readonly string[]): string[] =>
  secrets.filter((secret) => secret.length >= 12);

const patternOf = (secret: string): string => Array.from(secret, (one) => `(?:${waysToWrite(one)})`).join('');

/** `/` may be written as `/`, `\/`, `\u002f` or `%2F`, and a space also as `+`. */
function waysToWrite(character: string): string {
  const units = character.split('').map((unit) => String.raw`\u${hex(unit.charCodeAt(0), 4)}`);
  const escapes = units.map((unit) => String.raw`\\${unit.slice(1)}`);
  const bytes = Array.from(Buffer.from(character), (byte) => `%${hex(byte, 2)}`);
  const itself = String.raw`\\?${units.join('')}`;
  return [itself, escapes.join(''), bytes.join(''), ...(character === ' ' ? [String.raw`\+`] : [])].join('|');
}

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');
