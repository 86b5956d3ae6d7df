import MailComposer from 'nodemailer/lib/mail-composer';
import { createHash } from 'node:crypto';
import { domainToASCII } from 'node:url';
import { domainOf, type MailAddress, type Sender } from '../config/mail-address.js';
import type { DeliveryKey } from './delivery.js';

/** What a mail says. The HTML refers to the pictures as `cid:<cid>`. */
export interface MailContent {
  readonly subject: string;
  readonly html: string;
  readonly text: string;
  readonly pictures: readonly { readonly cid: string; readonly png: Uint8Array }[];
}

/** On whose behalf mails are sent. */
export interface Letterhead {
  readonly from: Sender;
  /** Where a mail asks its reader to write to for no more of them. */
  readonly unsubscribe?: MailAddress | undefined;
}

/** A mail to one recipient, ready to be handed over byte by byte. */
export interface Message {
  readonly key: DeliveryKey;
  readonly id: string;
  /** Addresses for SMTP, international domains in their ASCII form. */
  readonly envelope: { readonly from: string; readonly to: string };
  readonly bytes: Buffer;
}

/** The same for the same report, project, period and recipient, in every process and for ever. */
export const fingerprintOf = ({ report, project, period, recipient }: DeliveryKey): string =>
  createHash('sha256')
    .update(JSON.stringify([report, project, period, recipient]))
    .digest('hex')
    .slice(0, 32);

/** A mail that was sent again has the id of the first, so that mail readers show the two as one. */
const messageIdOf = (key: DeliveryKey, from: Sender): string =>
  `<readership.${fingerprintOf(key)}@${asciiDomain(from)}>`;

/** Composes the mail: text and HTML as alternatives, the pictures related to the HTML. */
export async function compose(
  key: DeliveryKey,
  content: MailContent,
  { from, unsubscribe }: Letterhead,
  now: Date,
): Promise<Message> {
  const id = messageIdOf(key, from);
  const composed = new MailComposer({
    from: { name: from.name, address: from.address },
    to: { name: '', address: key.recipient },
    subject: content.subject,
    date: now,
    messageId: id,
    text: content.text,
    html: content.html,
    attachments: content.pictures.map(({ cid, png }) => ({
      cid,
      content: Buffer.from(png),
      contentType: 'image/png',
      contentDisposition: 'inline',
      filename: `${cid.split('@')[0] ?? cid}.png`,
    })),
    headers: {
      'Auto-Submitted': 'auto-generated',
      'List-Id': `<${listOf(key)}.readership.${asciiDomain(from)}>`,
      ...(unsubscribe === undefined
        ? {}
        : { 'List-Unsubscribe': `<mailto:${unsubscribe}?subject=unsubscribe>` }),
    },
    // Not random, so that composing twice gives the same bytes.
    baseBoundary: fingerprintOf(key),
    newline: 'windows',
    disableFileAccess: true,
    disableUrlAccess: true,
  }).compile();
  const { from: sender, to } = composed.getEnvelope();
  const [recipient] = to;
  if (sender === false || recipient === undefined)
    throw new RangeError(`not addresses to send from and to: ${from.address}, ${key.recipient}`);
  return { key, id, envelope: { from: sender, to: recipient }, bytes: await composed.build() };
}

/** By which readers can file a report's emails: the same for every period and recipient. */
const listOf = ({ report, project }: DeliveryKey): string =>
  `${report}.${project}`.toLowerCase().replaceAll(/[^a-z0-9.-]/g, '-');

const asciiDomain = ({ address }: Sender): string => domainToASCII(domainOf(address)) || domainOf(address);
