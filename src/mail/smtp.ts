import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import { z } from 'zod';
import { SMTP_URL_VARIABLE } from '../config/load.js';
import { isLoopback } from '../config/values.js';
import { codeOf, ConfigurationError, messageOf } from '../errors.js';
import { redactor } from '../redact.js';
import { timeLimit, untilAborted } from '../sleep.js';
import type { Email } from './compose.js';
import { shortened } from '../format/text.js';
import { MAX_WORDS } from './delivery.js';

/** The mail server that emails are sent through. */
type SmtpServer = ReturnType<typeof parseSmtpUrl>;

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

/**
 * For connecting, for a server that says nothing, and for the whole conversation. Long, because after
 * a timeout while the email is being sent, its outcome is unknown.
 */
export const DEFAULT_TIMEOUTS = { connectMs: 30_000, silenceMs: 120_000, totalMs: 300_000 };

/** How long a server may take to answer QUIT. The email is already accepted, so nothing depends on it. */
const GOODBYE_MS = 1_000;

/** The stages of a conversation: `message` begins with the first byte of the email itself. */
const DOING = {
  connect: 'connecting',
  login: 'logging in',
  envelope: 'naming sender and recipient',
  message: 'sending the email',
};

/** How a conversation ended. */
export interface SmtpEnd {
  /** `done` if the server accepted everything. */
  readonly stage: keyof typeof DOING | 'done';
  /** The code with which the server refused, if it did. */
  readonly replyCode?: number | undefined;
  /** Whether the server stopped answering. */
  readonly isSilent?: boolean;
  /** The server's words, without the password; if it did not accept, also where the conversation ended. */
  readonly words: string;
}

/** What a conversation is about: an email, or only the domain that it would come from. */
export type SmtpTopic = Pick<Email, 'envelope' | 'bytes'> | { readonly domain: string | undefined };

/**
 * Sends one email over its own connection; without an email, it only connects and logs in.
 *
 * nodemailer's pooled transport resends an email when its connection closes, and the plain one does
 * not reveal whether sending had begun. Both matter here, so this uses the layer below them.
 */
export async function speakSmtp(
  server: SmtpServer,
  topic: SmtpTopic,
  timeouts: typeof DEFAULT_TIMEOUTS,
  interruption: AbortSignal,
): Promise<SmtpEnd> {
  const { login } = server;
  const email = 'bytes' in topic ? topic : undefined;
  const domain = 'bytes' in topic ? topic.envelope.from.split('@').at(-1) : topic.domain;
  const redact = redactor(login === undefined ? [] : secretsOf(login));
  const shown = (words: string) => shortened(redact(words), MAX_WORDS);
  let stage: keyof typeof DOING = 'connect';
  const connection = await openConnection(server, domain, timeouts);
  const signal = timeLimit(timeouts.totalMs, interruption);
  const step = stepsOf(connection, signal);
  try {
    await step((done) => connection.connect(done));
    if (login !== undefined && connection.allowsAuth) {
      stage = 'login';
      const { user, password: pass } = login;
      await step((done) => connection.login({ credentials: { user, pass } }, done));
    }
    // A server without AUTH was not asked.
    let reply = stage === 'login' ? 'answers and accepts the login' : 'answers';
    if (email !== undefined) {
      stage = 'envelope';
      // The body is read only when the server has requested it.
      const body = Readable.from(
        (function* () {
          stage = 'message';
          yield email.bytes;
        })(),
      );
      const envelope = { ...email.envelope, size: email.bytes.length };
      const sent = await step((done) => connection.send(envelope, body, done));
      reply = replySchema.parse(sent).response ?? '';
    }
    connection.quit();
    setTimeout(() => connection.close(), GOODBYE_MS).unref();
    return { stage: 'done', words: shown(reply) };
  } catch (error) {
    connection.close();
    const { response, responseCode: replyCode } = replySchema.parse(error);
    const isSilent = codeOf(error) === 'ETIMEDOUT' || (signal.aborted && !interruption.aborted);
    const problem = response ?? withRemedy(messageOf(error), server, stage, isSilent);
    const words = `${whereItEnded(server, stage, error, response !== undefined)}: ${problem}`;
    return { stage, replyCode, isSilent, words: shown(words) };
  }
}

function whereItEnded(
  { host, port }: SmtpServer,
  stage: keyof typeof DOING,
  error: unknown,
  hasReplied: boolean,
): string {
  if (stage === 'connect' && !hasReplied) return `can't connect to the mail server ${host}:${port}`;
  const doing = codeOf(error) === 'ETLS' ? 'starting TLS' : DOING[stage];
  return `${host}:${port}, while ${doing}${hasReplied ? ', said' : ''}`;
}

/** What went wrong, with what to do about it where the words of TLS do not say. */
function withRemedy(
  words: string,
  { secure, port, host }: SmtpServer,
  stage: keyof typeof DOING,
  isSilent: boolean,
): string {
  if (/wrong version number|packet length too long/i.test(words))
    return `it does not begin with TLS: write smtp:// instead of smtps:// in ${SMTP_URL_VARIABLE}`;
  // A server that expects TLS waits for the client to begin.
  if (!secure && stage === 'connect' && (isSilent || port === 465))
    return `${words}. If it expects TLS from the start, as on port 465, write smtps:// instead of smtp:// in ${SMTP_URL_VARIABLE}`;
  if (/certificate has expired/i.test(words)) return `${words}: it must be renewed on ${host}`;
  if (/altnames/i.test(words)) return `${words}. Use the name in the certificate in ${SMTP_URL_VARIABLE}`;
  if (/certificate/i.test(words))
    return `${words}. If it is your own, trust its authority: NODE_EXTRA_CA_CERTS=/path/to/ca.pem`;
  return words;
}

/** The password, both plain and encoded with the user as for SMTP, because a server may echo either. */
const secretsOf = ({ user, password }: NonNullable<SmtpServer['login']>): string[] => [
  Buffer.from(`\0${user}\0${password}`).toString('base64'),
  password,
];

/** The server's last reply, if any: nodemailer returns it, and adds it to its errors. */
const replySchema = z.object({ response: z.string(), responseCode: z.int() }).partial().catch({});

async function openConnection(
  server: SmtpServer,
  domain: string | undefined,
  { connectMs, silenceMs }: typeof DEFAULT_TIMEOUTS,
): Promise<SMTPConnection> {
  const { default: Connection } = await import('nodemailer/lib/smtp-connection');
  return new Connection({
    host: server.host,
    port: server.port,
    // Strict relays refuse the name of a container, which has no dot.
    ...(domain === undefined ? {} : { name: domain }),
    secure: server.secure,
    requireTLS: server.requireTls,
    ignoreTLS: false,
    opportunisticTLS: false,
    tls: { rejectUnauthorized: !server.anyCertificate, minVersion: 'TLSv1.2' },
    dnsTimeout: connectMs,
    connectionTimeout: connectMs,
    greetingTimeout: connectMs,
    socketTimeout: silenceMs,
    socketCloseTimeout: GOODBYE_MS,
    logger: false,
  });
}

/**
 * Turns a connection's calls into promises that are also rejected if the connection ends or the
 * signal aborts.
 */
function stepsOf(connection: SMTPConnection, signal: AbortSignal) {
  const lost = new Promise<never>((_, reject) => {
    connection.on('error', reject);
    connection.once('end', () => {
      // The server's last reply, if any, arrives right after this.
      setImmediate(reject, new Error('the connection ended'));
    });
    void untilAborted(signal).then(() => {
      reject(new Error('stopped before the server had answered', { cause: signal.reason }));
    });
  });
  // After the last step, nothing awaits this promise.
  lost.catch(() => undefined);
  return (begin: (done: (error?: Error | null, value?: unknown) => void) => void): Promise<unknown> =>
    Promise.race([lost, promisify<unknown>(begin)()]);
}
