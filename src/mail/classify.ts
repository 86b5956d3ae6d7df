import type { Outcome } from './delivery.js';
import type { SmtpStage } from './smtp.js';

/** The replies a row is about: one code, all that begin with a digit, or any, silence included. */
type Reply = number | '4xx' | '5xx' | 'any';

interface Row {
  readonly stage: SmtpStage;
  readonly reply: Reply;
  readonly kind: Exclude<Outcome['kind'], 'sent'>;
}

/**
 * The one table of what a failed conversation says about the email. The first row that fits decides; where none does, it
 * is unknown whether the email arrived.
 *
 * Until the first byte of the email leaves, nothing can have arrived. After that the server's refusal is believed; but
 * silence, a lost connection, or 421, with which a server says that it is shutting down, leave it unknown.
 */
export const CLASSIFICATION: readonly Row[] = [
  // No connection, no greeting, no encryption, a wrong password: about the server or the account, not the recipient.
  { stage: 'connect', reply: 'any', kind: 'later' },
  { stage: 'login', reply: 'any', kind: 'later' },
  // "Authentication required": about the account as well.
  { stage: 'envelope', reply: 530, kind: 'later' },
  { stage: 'envelope', reply: '5xx', kind: 'refused' },
  // Greylisting, a full mailbox, a busy or vanished server.
  { stage: 'envelope', reply: 'any', kind: 'later' },
  { stage: 'message', reply: 421, kind: 'unknown' },
  { stage: 'message', reply: '4xx', kind: 'later' },
  { stage: 'message', reply: '5xx', kind: 'refused' },
];

/** What a conversation that ended at `stage` means; `replyCode` is the server's last word, if it had one. */
export function classify(stage: SmtpStage, replyCode: number | undefined): Row['kind'] {
  const row = CLASSIFICATION.find((row) => row.stage === stage && fits(row.reply, replyCode));
  return row?.kind ?? 'unknown';
}

function fits(reply: Reply, code: number | undefined): boolean {
  if (reply === 'any') return true;
  if (code === undefined) return false;
  return typeof reply === 'number' ? reply === code : reply === `${Math.floor(code / 100)}xx`;
}
