/** Replaces every occurrence of the given secrets in a text. */
export type Redact = (text: string) => string;

/**
 * A `Redact` for these values. Works by value, so a secret that a server echoes is caught as well, also where characters
 * of it are written as in an address, in JSON or in HTML, or all of it in Base64.
 */
export function redactor(secrets: readonly string[]): Redact {
  const present = secrets.filter((secret) => secret !== '');
  if (present.length === 0) return (text) => text;
  const forms = present.flatMap((secret) => [inAnyCharacters(secret), inBase64(secret)]);
  const pattern = new RegExp(forms.join('|'), 'gi');
  return (text) => text.replaceAll(pattern, '[redacted]');
}

/** For texts that must not be spoilt, such as paths: a shorter secret may be an ordinary word in them. */
export const unmistakable = (secrets: readonly string[]): string[] =>
  secrets.filter((secret) => secret.length >= 12);

/** Each character in any of its ways: `/`, `\/`, `\u002f`, `%2F`, `&#47;` or `&#x2F;`. */
function inAnyCharacters(secret: string): string {
  const units = Array.from({ length: secret.length }, (_, index) => secret.charCodeAt(index));
  return units
    .map((unit) => {
      const hex = unit.toString(16);
      const [two, four] = [hex.padStart(2, '0'), hex.padStart(4, '0')];
      return String.raw`(?:\\?\u${four}|\\u${four}|%${two}|&#0*${unit};|&#x0*${hex};)`;
    })
    .join('');
}

const inBase64 = (secret: string): string =>
  Buffer.from(secret).toString('base64url').replaceAll('-', '[+-]').replaceAll('_', '[/_]');
