import { join } from 'node:path';
import { SMTP_URL_VARIABLE } from '../config/load.js';
import { parseMailAddress, type Sender } from '../config/recipients.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { syncToDisk, writeWhole } from '../files.js';
import type { Delivery, DeliveryKey } from '../state/emails.js';
import type { Attempt } from '../state/sender.js';
import type { Email } from './compose.js';
import { fingerprintOf, type SendOutcome } from './delivery.js';
import { DEFAULT_TIMEOUTS, parseSmtpUrl, type SmtpEnd, speakSmtp } from './smtp.js';

/** Sends emails. `send` never throws: every failure is an outcome. */
export interface MailTransport {
  readonly via: Delivery['via'];
  /** Whether the server stopped answering: every other email would wait as long. */
  readonly isSilent: () => boolean;
  readonly send: (message: Email, attempt: Attempt, interruption: AbortSignal) => Promise<SendOutcome>;
}

/** Sends emails through the server in the URL. Throws a `ConfigurationError` if the URL is not valid. */
export function smtpTransport(url: string, timeouts = DEFAULT_TIMEOUTS): MailTransport {
  const server = parseSmtpUrl(url);
  let hasFallenSilent = false;
  return {
    via: 'smtp',
    isSilent: () => hasFallenSilent,
    send: async (message, _, interruption) => {
      const { stage, replyCode, isSilent, words } = await speakSmtp(server, message, timeouts, interruption);
      hasFallenSilent ||= isSilent === true;
      return { kind: classify(stage, replyCode), words };
    },
  };
}

/**
 * What an SMTP conversation says about the email, by the stage in which it ended and the code with
 * which the server refused, if it did.
 *
 * Before the first byte of the email is sent, nothing can have arrived. After that, a refusal by
 * the server is believed, but no reply, a lost connection, or 421 (the server is shutting down)
 * leave it unknown.
 */
export function classify(stage: SmtpEnd['stage'], replyCode = 0): SendOutcome['kind'] {
  const isTemporary = replyCode >= 400 && replyCode < 500;
  const isPermanent = replyCode >= 500 && replyCode < 600;
  switch (stage) {
    case 'done':
      return 'sent';
    // No connection, greeting or encryption, or a wrong password: the server or the account, not the recipient.
    case 'connect':
    case 'login':
      return 'not-sent';
    // "Authentication required" (530) concerns the account too. Otherwise it is greylisting, a full mailbox, or a
    // busy or unreachable server.
    case 'envelope':
      return isPermanent && replyCode !== 530 ? 'refused' : 'not-sent';
    case 'message':
      if (isPermanent) return 'refused';
      return isTemporary && replyCode !== 421 ? 'not-sent' : 'unknown';
  }
}

/**
 * Throws a `ConfigurationError` if the sender would be a guess: mail servers refuse senders that are not theirs, and
 * nobody would read the replies.
 */
export function expectSender(url: string, sender: Sender | undefined): void {
  const user = parseSmtpUrl(url).login?.user;
  if (sender?.isDerived !== true || user === undefined || parseMailAddress(user) !== undefined) return;
  throw new ConfigurationError(
    `Emails need a sender, because the user in ${SMTP_URL_VARIABLE} is not an email address. ` +
      "Add one that the mail server accepts to readership.yaml: mail: { from: 'Readership <docs@example.com>' }",
  );
}

const TRIAL_TIMEOUTS = { connectMs: 5_000, silenceMs: 5_000, totalMs: 10_000 };

/**
 * Connects and logs in to the mail server in the URL, as a sender of `domain`. Throws an error without secrets if that
 * fails.
 */
export async function tryMailServer(
  url: string,
  domain: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  const server = parseSmtpUrl(url);
  const { stage, words } = await speakSmtp(server, { domain }, TRIAL_TIMEOUTS, signal);
  if (stage === 'done') return `${server.host}:${server.port} ${words}`;
  throw new Error(`${words}. Check READERSHIP_SMTP_URL, and whether the server runs.`);
}

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

/** Emails as `.eml` files in a folder, which reach nobody. The words of an outcome are the path of the file. */
export const outboxTransport = (directory: string): MailTransport => ({
  via: 'outbox',
  isSilent: () => false,
  send: async ({ key, bytes }) => {
    const path = join(directory, outboxFileName(key));
    try {
      writeWhole(path, bytes.toString());
      await syncToDisk(path);
      return { kind: 'written', words: path };
    } catch (error) {
      return { kind: 'not-sent', words: `cannot write ${path}: ${messageOf(error)}` };
    }
  },
});
