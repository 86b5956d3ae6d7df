import { mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf } from '../errors.js';
import { redactor } from '../redact.js';
import type { Departure } from '../effects/journal.js';
import type { Email } from './compose.js';
import { type Delivery, type DeliveryKey, fingerprintOf, MAX_WORDS, type Outcome } from './delivery.js';
import {
  DEFAULT_TIMEOUTS,
  parseSmtpUrl,
  type SmtpFailure,
  type SmtpServer,
  type SmtpStage,
  speakSmtp,
} from './smtp.js';

/** Sends emails. `send` never throws: every failure is an outcome. */
export interface MailTransport {
  readonly via: Delivery['via'];
  readonly send: (message: Email, departure: Departure, interruption: AbortSignal) => Promise<Outcome>;
}

const DOING: Readonly<Record<SmtpStage, string>> = {
  connect: 'connecting',
  login: 'logging in',
  envelope: 'naming sender and recipient',
  message: 'sending the email',
};

/** Emails as `.eml` files in a folder. */
export const outboxTransport = (directory: string): MailTransport => ({
  via: 'outbox',
  send: (message) => putIntoOutbox(directory, message),
});

/** Sends emails through the server in the URL. Throws a `ConfigurationError` if the URL is not valid. */
export function smtpTransport(url: string, timeouts = DEFAULT_TIMEOUTS): MailTransport {
  const server = parseSmtpUrl(url);
  const redact = redactor(secretsOf(server));
  return {
    via: 'smtp',
    send: async (message, _, interruption) => {
      const result = await speakSmtp(server, message, timeouts, interruption);
      if ('reply' in result) return { kind: 'sent', words: redact(result.reply).slice(0, MAX_WORDS) };
      const words = redact(wordsOf(server, result)).slice(0, MAX_WORDS);
      return { kind: classify(result.stage, replyOf(result.error).responseCode), words };
    },
  };
}

/**
 * What a failed SMTP conversation says about the email, by the server's last reply code, if any.
 * The first matching row decides; without a match, it is unknown whether the email arrived.
 *
 * Before the first byte of the email is sent, nothing can have arrived. After that, a refusal by
 * the server is believed, but no reply, a lost connection, or 421 (the server is shutting down)
 * leave it unknown.
 */
export const CLASSIFICATION: readonly {
  readonly stage: SmtpStage;
  readonly reply: RegExp;
  readonly kind: Exclude<Outcome['kind'], 'sent'>;
}[] = [
  // No connection, greeting or encryption, or a wrong password: the server or the account, not the recipient.
  { stage: 'connect', reply: /^/, kind: 'not-sent' },
  { stage: 'login', reply: /^/, kind: 'not-sent' },
  // "Authentication required" concerns the account too.
  { stage: 'envelope', reply: /^530$/, kind: 'not-sent' },
  { stage: 'envelope', reply: /^5\d\d$/, kind: 'refused' },
  // Greylisting, a full mailbox, or a busy or unreachable server.
  { stage: 'envelope', reply: /^/, kind: 'not-sent' },
  { stage: 'message', reply: /^421$/, kind: 'unknown' },
  { stage: 'message', reply: /^4\d\d$/, kind: 'not-sent' },
  { stage: 'message', reply: /^5\d\d$/, kind: 'refused' },
];

/** What a conversation that ended at `stage` means; `replyCode` is the server's last reply, if any. */
export function classify(stage: SmtpStage, replyCode: number | undefined): Outcome['kind'] {
  const code = String(replyCode ?? '');
  return CLASSIFICATION.find((row) => row.stage === stage && row.reply.test(code))?.kind ?? 'unknown';
}

const TRIAL_TIMEOUTS = { connectMs: 5_000, silenceMs: 5_000, totalMs: 10_000 };

/** Connects and logs in to the mail server in the URL. Throws an error without secrets if that fails. */
export async function tryMailServer(url: string, signal: AbortSignal): Promise<string> {
  const server = parseSmtpUrl(url);
  const { host, port } = server;
  const result = await speakSmtp(server, undefined, TRIAL_TIMEOUTS, signal);
  if ('reply' in result)
    return `${host}:${port} ${server.login === undefined ? 'answers' : 'accepts the login'}`;
  const { error: cause } = result;
  const words = redactor(secretsOf(server))(replyOf(cause).response ?? messageOf(cause));
  const during = result.stage === 'connect' ? `can't connect to` : `was refused by`;
  const said = `${during} the mail server ${host}:${port}: ${words.slice(0, MAX_WORDS)}`;
  throw new Error(`${said}. Check READERSHIP_SMTP_URL, and whether the server runs.`, { cause });
}

/** The password, both plain and encoded with the user as for SMTP, because a server may echo either. */
const secretsOf = ({ login }: SmtpServer): string[] =>
  login === undefined
    ? []
    : [Buffer.from(`\0${login.user}\0${login.password}`).toString('base64'), login.password];

function wordsOf({ host, port }: SmtpServer, { stage, error }: SmtpFailure): string {
  const { response } = replyOf(error);
  if (stage === 'connect' && response === undefined)
    return `can't connect to the mail server ${host}:${port} (${messageOf(error)})`;
  const during = `${host}:${port}, while ${DOING[stage]}`;
  return response === undefined ? `${during}: ${messageOf(error)}` : `${during}, said: ${response}`;
}

const replySchema = z.object({ response: z.string(), responseCode: z.int() }).partial().catch({});

/** The server's last reply, if any: nodemailer adds it to its errors. */
const replyOf = (error: unknown) => replySchema.parse(error);

const MAX_RECIPIENT_LENGTH = 80;

/**
 * The name of an email's file: readable, with a fingerprint that makes it unique whatever the
 * project and recipient.
 */
function outboxFileName(key: DeliveryKey): string {
  const plain = (text: string) => text.replaceAll(/[^A-Za-z0-9@._+-]/g, '_');
  const recipient = plain(key.recipient).slice(0, MAX_RECIPIENT_LENGTH);
  return `${plain(key.report)}-${plain(key.period)}-${recipient}-${fingerprintOf(key).slice(0, 16)}.eml`;
}

/** Writes an email to the outbox atomically. The words of the outcome are the path of the file. */
async function putIntoOutbox(directory: string, message: Email): Promise<Outcome> {
  const path = join(directory, outboxFileName(message.key));
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const file = await open(`${path}.unfinished`, 'w', 0o600);
    try {
      await file.writeFile(message.bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${path}.unfinished`, path);
    return { kind: 'sent', words: path };
  } catch (error) {
    return { kind: 'not-sent', words: `cannot write ${path}: ${messageOf(error)}` };
  }
}
