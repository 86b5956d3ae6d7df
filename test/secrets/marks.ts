/** Characters that addresses, JSON and regular expressions escape. */
const OTHERWISE = String.raw`/+&"'<>=%#@:\$(.*`;

const TRACES = [
  'Kq7markXw3A',
  'Kz9markVy5B',
  'Pw4markRt8C',
  'Pn6markJs2D',
  'Ui8markLb6E',
  'Hk5markTq4F',
] as const;
const [KEY_BEGIN, KEY_END, PASSWORD_BEGIN, PASSWORD_END, PING_TRACE, HOOK_TRACE] = TRACES;

/** The marked secrets. However the rest is encoded, the mark in each stays unchanged. */
export const KEY = `${KEY_BEGIN}${OTHERWISE}${KEY_END}`;
export const PASSWORD = `${PASSWORD_BEGIN} é𝄞${OTHERWISE}${PASSWORD_END}`;
export const PING_ID = `${PING_TRACE}-4c1e-9d2b`;
/** The last part of the address of a channel. */
export const HOOK_ID = `${HOOK_TRACE}-8a7b`;

export const USER = 'docs@example.com';

/** A `.env` as a user writes it; of the quotation marks, only the backtick is not part of a secret. */
export const dotEnv = (smtp: string, hooks = 'http://127.0.0.1:1'): string =>
  `READERSHIP_API_KEY=\`${KEY}\`\nREADERSHIP_SMTP_URL=${smtp}\nREADERSHIP_CHANNEL_CHAT=${hooks}/services/T0/${HOOK_ID}\n`;

export const smtpUrl = (port: number, scheme = 'smtp'): string =>
  `${scheme}://${encodeURIComponent(USER)}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}`;

/** A secret as servers echo it. */
export const WRITINGS: Readonly<Record<string, (secret: string) => string>> = {
  itself: (secret) => secret,
  'an address': encodeURIComponent,
  'a form': (secret) => new URLSearchParams({ secret }).toString(),
  JSON: (secret) => JSON.stringify(secret),
  'JSON with escaped slashes': (secret) => JSON.stringify(secret).replaceAll('/', '\\/'),
};

export const inEveryWriting = (secret: string): string =>
  Object.values(WRITINGS)
    .map((write) => write(secret))
    .join(' ');

const FORMS = TRACES.flatMap((trace) => [
  trace,
  Array.from(trace, (letter) => `%${letter.charCodeAt(0).toString(16)}`).join(''),
  Array.from(trace, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`).join(''),
]).map((form) => form.toLowerCase());

/** The traces of secrets in a text, with their surroundings. */
export function tracesIn(content: string | Buffer): string[] {
  const text = typeof content === 'string' ? content : content.toString('latin1');
  const lower = text.toLowerCase();
  return FORMS.flatMap((form) => {
    const at = lower.indexOf(form);
    return at === -1 ? [] : [text.slice(Math.max(0, at - 60), at + form.length + 20)];
  });
}
