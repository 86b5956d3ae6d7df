import type { Outcome } from './delivery.js';
import type { SmtpStage } from './smtp.js';

/** The replies that a row matches: one code, all codes with a first digit, or any reply, including none. */
type Reply = number | '4xx' | '5xx' | 'any';

interface Row {
  readonly stage: SmtpStage;
  readonly reply: Reply;
  readonly kind: Exclude<Outcome['kind'], 'sent'>;
}

/**
 * What a failed SMTP conversation says about the email. The first matching row decides; without a
 * match, it is unknown whether the email arrived.
 *
 * Before the first byte of the email is sent, nothing can have arrived. After that, a refusal by
 * the server is believed, but no reply, a lost connection, or 421 (the server is shutting down)
 * leave it unknown.
 */
export const CLASSIFICATION: readonly Row[] = [
  // No connection, greeting or encryption, or a wrong password: the server or the account, not the recipient.
  { stage: 'connect', reply: 'any', kind: 'later' },
  { stage: 'login', reply: 'any', kind: 'later' },
  // "Authentication required" concerns the account too.
  { stage: 'envelope', reply: 530, kind: 'later' },
  { stage: 'envelope', reply: '5xx', kind: 'refused' },
  // Greylisting, a full mailbox, or a busy or unreachable server.
  { stage: 'envelope', reply: 'any', kind: 'later' },
  { stage: 'message', reply: 421, kind: 'unknown' },
  { stage: 'message', reply: '4xx', kind: 'later' },
  { stage: 'message', reply: '5xx', kind: 'refused' },
];

/** What a conversation that ended at `stage` means; `replyCode` is the server's last reply, if any. */
export function classify(stage: SmtpStage, replyCode: number | undefined): Row['kind'] {
  const row = CLASSIFICATION.find((row) => row.stage === stage && fits(row.reply, replyCode));
  return row?.kind ?? 'unknown';
}

function fits(reply: Reply, code: number | undefined): boolean {
  if (reply === 'any') return true;
  if (code === undefined) return false;
  return typeof reply === 'number' ? reply === code : reply === `${Math.floor(code / 100)}xx`;
}
