import { SMTP_URL_VARIABLE } from '../config/load.js';
import { isLoopback } from '../config/values.js';
import { codeOf, ConfigurationError, tlsWords } from '../errors.js';

/** The mail server that emails are sent through. */
export type SmtpServer = ReturnType<typeof parseSmtpUrl>;

/**
 * Reads `smtp://user:password@host:587` or `smtps://host`. A password is only sent encrypted,
 * except to this machine itself. Throws a `ConfigurationError` that does not repeat the address,
 * because it may contain a password.
 */
export function parseSmtpUrl(text: string) {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isUsable =
    url !== undefined &&
    /^smtps?:$/.test(url.protocol) &&
    url.hostname !== '' &&
    /^\/?$/.test(url.pathname) &&
    url.search + url.hash === '';
  if (!isUsable)
    throw invalid('is not of the form smtp://user:password@host:587 or smtps://user:password@host:465');
  const user = decode(url.username);
  const password = decode(url.password);
  if ((user === '') !== (password === ''))
    throw invalid('has a user name without a password, or a password without a user name');
  const host = url.hostname.replaceAll(/[[\]]/g, '');
  const secure = url.protocol === 'smtps:';
  return {
    host,
    port: url.port === '' ? (secure ? 465 : 587) : Number(url.port),
    /** TLS from the first byte; otherwise STARTTLS if offered. */
    secure,
    /** Fail without STARTTLS. */
    requireTls: !secure && user !== '' && !isLoopback(host),
    /** Postfix creates a certificate of its own, and on this machine nobody listens in. A password needs a trusted one. */
    anyCertificate: user === '' && isLoopback(host),
    login: user === '' ? undefined : { user, password },
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw invalid('has a % in its user name or password that is not encoded as %25');
  }
}

const invalid = (what: string): ConfigurationError =>
  new ConfigurationError(
    `${SMTP_URL_VARIABLE} ${what}. Encode characters such as @ : / % in a password as %40 %3A %2F %25.`,
  );

/** For connecting, for the greeting, for a server that says nothing, and for the whole conversation. */
export type SmtpTimeouts = Readonly<Record<'connectMs' | 'greetingMs' | 'silenceMs' | 'totalMs', number>>;

/** The stages of a conversation: `message` begins with the first byte of the email itself. */
const DOING = {
  connect: 'connecting',
  login: 'logging in',
  sender: 'naming the sender',
  recipient: 'naming the recipient',
  message: 'sending the email',
};

export type SmtpStage = keyof typeof DOING;

/** Where a conversation ended. */
export function whereItEnded(
  { host, port }: SmtpServer,
  stage: SmtpStage,
  error: unknown,
  hasReplied: boolean,
): string {
  if (stage === 'connect' && !hasReplied) return `can't connect to the mail server ${host}:${port}`;
  const doing = codeOf(error) === 'ETLS' ? 'starting TLS' : DOING[stage];
  return `${host}:${port}, while ${doing}${hasReplied ? ', said' : ''}`;
}

/** What went wrong, with what to do about it where the words of TLS do not say. */
export function withRemedy(
  words: string,
  { secure, port, host }: SmtpServer,
  stage: SmtpStage,
  isSilent: boolean,
): string {
  if (/wrong version number|packet length too long/i.test(words))
    return `it does not begin with TLS: write smtp:// instead of smtps:// in ${SMTP_URL_VARIABLE}`;
  const ofTls = tlsWords(words);
  if (ofTls !== undefined) return ofTls;
  // A server that expects TLS waits for the client to begin.
  if (!secure && stage === 'connect' && (isSilent || port === 465))
    return `${words}. If it expects TLS from the start, as on port 465, write smtps:// instead of smtp:// in ${SMTP_URL_VARIABLE}`;
  if (/certificate has expired/i.test(words)) return `${words}: it must be renewed on ${host}`;
  if (/altnames/i.test(words)) return `${words}. Use the name in the certificate in ${SMTP_URL_VARIABLE}`;
  if (/certificate/i.test(words))
    return `${words}. If it is your own, trust its authority: NODE_EXTRA_CA_CERTS=/path/to/ca.pem`;
  return words;
}

const within = (ms: number): string => `within ${Math.round(ms / 1_000)} s`;

/** What took too long, by the name that nodemailer has for it. */
export const TIMEOUT_WORDS: Readonly<Record<string, (timeouts: SmtpTimeouts) => string>> = {
  CONNECT_TIMEOUT: ({ connectMs }) => `it did not answer ${within(connectMs)}`,
  GREETING_TIMEOUT: ({ greetingMs }) =>
    `it accepted the connection, but sent no greeting ${within(greetingMs)}`,
  SOCKET_TIMEOUT: ({ silenceMs }) => `it did not reply ${within(silenceMs)}`,
};
