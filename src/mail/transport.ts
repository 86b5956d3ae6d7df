import { join } from 'node:path';
import { SMTP_URL_VARIABLE } from '../config/load.js';
import { parseMailAddress, type Sender } from '../config/recipients.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { syncToDisk, writeWhole } from '../files.js';
import type { Delivery, DeliveryKey } from '../state/emails.js';
import type { Attempt } from '../state/sender.js';
import type { Email } from './compose.js';
import { fingerprintOf, type SendOutcome } from './delivery.js';
import { DEFAULT_TIMEOUTS, type SmtpEnd, speakSmtp } from './smtp.js';
import { parseSmtpUrl } from './smtp-server.js';

/** Sends emails. `send` never throws: every failure is an outcome. */
export interface MailTransport {
  readonly via: Delivery['via'];
  /** Why the server takes no more emails for now; undefined if it may. Asking for each of hundreds would take hours. */
  readonly pausedBy: () => string | undefined;
  /** How many emails to send at the same time: one slow recipient delays no others, and no server is flooded. */
  readonly atOnce: () => number;
  /**
   * Whether the server refused one of several emails at the same time: it may take fewer connections, so from then on, one
   * is sent after another, and what it refused is tried again.
   */
  readonly slowDown: () => boolean;
  readonly send: (message: Email, attempt: Attempt, interruption: AbortSignal) => Promise<SendOutcome>;
}

const MAX_AT_ONCE = 4;

/** Sends emails through the server in the URL. Throws a `ConfigurationError` if the URL is not valid. */
export function smtpTransport(url: string, timeouts = DEFAULT_TIMEOUTS): MailTransport {
  const server = parseSmtpUrl(url);
  let pausedBy: string | undefined;
  let [atOnce, underWay, isCrowded] = [MAX_AT_ONCE, 0, false];
  /** The server counts a connection until it is closed. */
  let closed: Promise<unknown> | undefined;
  return {
    via: 'smtp',
    pausedBy: () => pausedBy,
    atOnce: () => atOnce,
    slowDown: () => {
      if (!isCrowded || atOnce === 1) return false;
      atOnce = 1;
      pausedBy = undefined;
      return true;
    },
    send: async (message, _, interruption) => {
      if (atOnce === 1) await closed;
      const othersBefore = underWay++;
      const end = await speakSmtp(server, message, timeouts, interruption);
      underWay -= 1;
      closed = end.closed;
      if (endsTheRun(end)) {
        pausedBy ??= end.words;
        isCrowded ||= othersBefore + underWay > 0 && end.isSilent !== true && (end.replyCode ?? 0) < 500;
      }
      return { kind: classify(end.stage, end.replyCode), words: end.words };
    },
  };
}

/**
 * What an SMTP conversation says about the email, by the stage in which it ended and the code with
 * which the server refused, if it did.
 *
 * Before the recipient is named, every refusal concerns the server, the account or the sender, and every other email would
 * meet it too. Before the first byte of the email is sent, nothing can have arrived. After that, a refusal by
 * the server is believed, but no reply, a lost connection, or 421 (the server is shutting down)
 * leave it unknown.
 */
export function classify(stage: SmtpEnd['stage'], replyCode = 0): SendOutcome['kind'] {
  const isPermanent = replyCode >= 500 && replyCode < 600;
  switch (stage) {
    case 'done':
      return 'sent';
    case 'connect':
    case 'login':
    case 'sender':
      return 'not-now';
    // Temporary are greylisting, a full mailbox, or a busy server. 530 asks for a login.
    case 'recipient':
      if (replyCode === 530) return 'not-now';
      return isPermanent ? 'refused' : 'not-sent';
    case 'message':
      if (isPermanent) return 'refused';
      return isTemporary(replyCode) && replyCode !== 421 ? 'not-sent' : 'unknown';
  }
}

const isTemporary = (replyCode: number): boolean => replyCode >= 400 && replyCode < 500;

/**
 * Whether the server takes no more emails for now, as its other emails would show one by one. A recipient who is refused for
 * now may be the only one, but 421 says that the server itself stops, and every email has the same content.
 */
const endsTheRun = ({ stage, replyCode = 0, isSilent = false }: SmtpEnd): boolean =>
  isSilent ||
  replyCode === 421 ||
  classify(stage, replyCode) === 'not-now' ||
  (stage === 'message' && isTemporary(replyCode));

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

const TRIAL_TIMEOUTS = { connectMs: 5_000, greetingMs: 8_000, silenceMs: 10_000, totalMs: 20_000 };

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
  const { stage, isSilent = false, words } = await speakSmtp(server, { domain }, TRIAL_TIMEOUTS, signal);
  if (stage === 'done') return `${server.host}:${server.port} ${words}`;
  const patience = isSilent ? ' When sending, it may take longer: up to five minutes to greet.' : '';
  throw new Error(`${words}. Check READERSHIP_SMTP_URL, and whether the server runs.${patience}`);
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
  pausedBy: () => undefined,
  atOnce: () => MAX_AT_ONCE,
  slowDown: () => false,
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
