/** Replaces every occurrence of the given secrets in a text. */
export type Redact = (text: string) => string;

/**
 * A `Redact` for these values. Works by value, so a secret that a server echoes is caught as well, also where characters
 * of it are written as in an address, in JSON or in HTML, or all of it in Base64, alone or within more.
 */
export function redactor(secrets: readonly string[]): Redact {
  const present = secrets.filter((secret) => secret !== '');
  if (present.length === 0) return (text) => text;
  const forms = present.flatMap((secret) => [
    inWays(secret, waysToWrite),
    ...inBase64(secret).map((code) => inWays(code, waysInBase64)),
  ]);
  const pattern = new RegExp(forms.join('|'), 'gi');
  return (text) => text.replaceAll(pattern, '[redacted]');
}

/** For texts that must not be spoilt, such as paths: a shorter secret may be an ordinary word in them. */
export const unmistakable = (secrets: readonly string[]): string[] =>
  secrets.filter((secret) => secret.length >= 12);

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** A pattern for a text, each of whose characters may be written in any of its ways. */
const inWays = (text: string, waysOf: (character: string) => readonly string[]): string =>
  Array.from(text, (character) => `(?:${waysOf(character).join('|')})`).join('');

/** `/` as `/`, `\/`, `\u002f`, `%2F`, `&#47;` or `&#x2F;`, and `&` as `&amp;`, too. */
function waysToWrite(character: string): string[] {
  const code = character.codePointAt(0) ?? 0;
  const units = Array.from({ length: character.length }, (_, at) => hex(character.charCodeAt(at), 4));
  const bytes = Array.from(Buffer.from(character), (byte) => `%${hex(byte, 2)}`);
  const entity = ENTITIES[character];
  return [
    // JSON within JSON has three backslashes before a quotation mark. More of them would make this slow.
    String.raw`\\{0,3}${units.map((unit) => String.raw`\u${unit}`).join('')}`,
    units.map((unit) => String.raw`\\{1,2}u${unit}`).join(''),
    bytes.join(''),
    `&#0*${code};`,
    `&#x0*${code.toString(16)};`,
    ...(entity === undefined ? [] : [entity]),
    ...(character === ' ' ? [String.raw`\+`] : []),
  ];
}

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');

/** Three bytes are four characters, so what comes before decides how a secret looks: the characters that are its own. */
const inBase64 = (secret: string): string[] =>
  [0, 1, 2]
    .map((before) => {
      const code = Buffer.from('\0'.repeat(before) + secret).toString('base64');
      const bits = 8 * (before + Buffer.byteLength(secret));
      return code.slice(Math.ceil((8 * before) / 6), Math.floor(bits / 6));
    })
    .filter((code) => code.length >= 6);

/** Letters and digits stay themselves wherever Base64 is put. */
function waysInBase64(character: string): string[] {
  if (character === '+') return [...waysToWrite(character), '-'];
  if (character === '/') return [...waysToWrite(character), '_'];
  return [character];
}
