import { once } from 'node:events';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import { z } from 'zod';
import { codeOf, messageOf } from '../errors.js';
import { redactor } from '../redact.js';
import { timeLimit, untilAborted } from '../sleep.js';
import type { Email } from './compose.js';
import { shortened } from '../format/text.js';
import { MAX_WORDS } from './delivery.js';
import {
  type SmtpServer,
  type SmtpStage,
  type SmtpTimeouts,
  TIMEOUT_WORDS,
  whereItEnded,
  withRemedy,
} from './smtp-server.js';

/**
 * As long as the standard lets servers take (RFC 5321, 4.5.3.2): after a timeout while the email is being sent, its outcome is
 * unknown.
 */
export const DEFAULT_TIMEOUTS: SmtpTimeouts = {
  connectMs: 30_000,
  greetingMs: 300_000,
  silenceMs: 600_000,
  totalMs: 1_200_000,
};

/** How long a server may take to answer QUIT. The email is already accepted, so nothing depends on it. */
const GOODBYE_MS = 1_000;

/** How a conversation ended. */
export interface SmtpEnd {
  /** `done` if the server accepted everything. */
  readonly stage: SmtpStage | 'done';
  /** The code with which the server refused, if it did. */
  readonly replyCode?: number | undefined;
  /** Whether the server stopped answering. */
  readonly isSilent?: boolean;
  /** The server's words, without the password; if it did not accept, also where the conversation ended. */
  readonly words: string;
  /** When its connection is closed, if it is not yet. */
  readonly closed?: Promise<unknown>;
}

/** What a conversation is about: an email, or only the domain that it would come from. */
type SmtpTopic = Pick<Email, 'envelope' | 'bytes'> | { readonly domain: string | undefined };

/**
 * Sends one email over its own connection; without an email, it only connects and logs in.
 *
 * nodemailer's pooled transport resends an email when its connection closes, and the plain one does
 * not reveal whether sending had begun. Both matter here, so this uses the layer below them.
 */
export async function speakSmtp(
  server: SmtpServer,
  topic: SmtpTopic,
  timeouts: SmtpTimeouts,
  interruption: AbortSignal,
): Promise<SmtpEnd> {
  const { login } = server;
  const email = 'bytes' in topic ? topic : undefined;
  const domain = 'bytes' in topic ? topic.envelope.from.split('@').at(-1) : topic.domain;
  const redact = redactor(login === undefined ? [] : secretsOf(login));
  const shown = (words: string) => shortened(redact(words), MAX_WORDS);
  let stage: SmtpStage = 'connect';
  const connection = await openConnection(server, domain, timeouts);
  const signal = timeLimit(timeouts.totalMs, interruption);
  const step = stepsOf(connection, signal);
  try {
    await step((done) => {
      connection.connect(done);
      setTimeout(() => {
        if (connection.stage === 'init') done(new SilentError());
      }, timeouts.connectMs).unref();
    });
    const extensions = connection.lastServerResponse || '';
    if (login !== undefined && connection.allowsAuth) {
      stage = 'login';
      const { user, password: pass } = login;
      await step((done) => connection.login({ credentials: { user, pass } }, done));
    }
    // A server without AUTH was not asked.
    let reply = stage === 'login' ? 'answers and accepts the login' : 'answers';
    if (email !== undefined) {
      stage = 'sender';
      expectReadable(email.envelope.from, extensions);
      stage = 'recipient';
      expectReadable(email.envelope.to, extensions);
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
    const closed = once(connection, 'end');
    connection.quit();
    setTimeout(() => connection.close(), GOODBYE_MS).unref();
    return { stage: 'done', words: shown(reply), closed: closed.catch(() => undefined) };
  } catch (error) {
    connection.close();
    const { command, timeoutType = '', ...reply } = replySchema.parse(error);
    // A server that hangs up has said why before.
    const response = reply.response ?? lastRefusalOf(connection);
    const replyCode =
      reply.responseCode ?? (response === undefined ? undefined : Number(response.slice(0, 3)));
    // With PIPELINING, sender and recipient are sent together, and a server that hangs up says 421 to both.
    const hangsUp = reply.response === undefined && replyCode === 421;
    if (command === 'MAIL FROM' || (stage === 'recipient' && hangsUp)) stage = 'sender';
    const isSilent = codeOf(error) === 'ETIMEDOUT' || (signal.aborted && !interruption.aborted);
    const what = TIMEOUT_WORDS[timeoutType]?.(timeouts) ?? messageOf(error);
    const problem = response ?? withRemedy(what, server, stage, isSilent);
    const words = `${whereItEnded(server, stage, error, response !== undefined)}: ${problem}`;
    return { stage, replyCode, isSilent, words: shown(words) };
  }
}

/** The password, both plain and encoded with the user as for SMTP, because a server may echo either. */
const secretsOf = ({ user, password }: NonNullable<SmtpServer['login']>): string[] => [
  Buffer.from(`\0${user}\0${password}`).toString('base64'),
  password,
];

/** The server's last reply, if any, to which command, and what took too long: nodemailer adds it to its errors. */
const replySchema = z
  .object({ response: z.string(), responseCode: z.int(), command: z.string(), timeoutType: z.string() })
  .partial()
  .catch({});

const lastRefusalOf = ({ lastServerResponse: last }: SMTPConnection): string | undefined =>
  last !== false && /^[45]\d\d[ -]/.test(last) ? last : undefined;

/** The connection could not be established in time. */
class SilentError extends Error {
  readonly code = 'ETIMEDOUT';
  readonly timeoutType = 'CONNECT_TIMEOUT';
}

/** Throws an error if the server would misread an address: only with SMTPUTF8 may more than ASCII come before the @. */
function expectReadable(address: string, extensions: string): void {
  if (/^\p{ASCII}*$/u.test(address) || /\bSMTPUTF8\b/i.test(extensions)) return;
  const words = `it accepts only ASCII before the @ of an address (no SMTPUTF8), so not ${address}. Use another address`;
  throw Object.assign(new Error(words), { responseCode: 553 });
}

async function openConnection(
  server: SmtpServer,
  domain: string | undefined,
  { connectMs, greetingMs, silenceMs }: SmtpTimeouts,
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
    // Up to the greeting.
    connectionTimeout: connectMs + greetingMs,
    greetingTimeout: greetingMs,
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
