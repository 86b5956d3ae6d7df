import { SMTP_URL_VARIABLE } from '../config/load.js';
import { codeOf, tlsWords } from '../errors.js';
import type { SmtpServer } from './smtp-url.js';

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
