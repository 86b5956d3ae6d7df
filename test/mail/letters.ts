import { parseMailAddress, parseSender, type MailAddress, type Sender } from '../../src/config/recipients.js';
import type { Delivery, DeliveryKey } from '../../src/state/emails.js';
import { compose, type Email, type MailContent } from '../../src/mail/compose.js';

export function address(text: string): MailAddress {
  const parsed = parseMailAddress(text);
  if (parsed === undefined) throw new Error(`not an address: ${text}`);
  return parsed;
}

export function sender(text: string): Sender {
  const parsed = parseSender(text);
  if (parsed === undefined) throw new Error(`not a sender: ${text}`);
  return parsed;
}

/** The smallest PNG: one pixel. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

export const content: MailContent = {
  subject: 'Acme Docs, Nov 9 – 15, 2026: 18,931 human views',
  html: '<h1>People read — a lot</h1><img src="cid:weekly.daily_views@readership" width="552" alt="Views">',
  text: 'People read — a lot.\n.\nA line that is a single dot stands above.',
  pictures: [{ cid: 'weekly.daily_views@readership', png: PNG }],
};

/** The weekly report of `period` for a recipient. */
export const letter = (recipient: string, period = '2026-W46'): Promise<Email> =>
  compose(
    { report: 'weekly', project: 'prj_1', period, recipient },
    content,
    { from: sender('Readership <readership@example.com>') },
    new Date('2026-11-16T03:00:00Z'),
  );

/** A delivery as it is stored after one attempt at `triedAt`. */
export const delivery = (key: DeliveryKey, state: Delivery['state'], triedAt: Date): Delivery => ({
  ...key,
  state,
  via: 'smtp',
  message_id: `<${key.recipient}${key.period}@example.com>`,
  attempt: 1,
  attempts: 1,
  tried_at: triedAt,
  settled_at: null,
  next_attempt_at: null,
  note: null,
  days_covered: null,
  human: null,
  ai: null,
});
