import { createHash } from 'node:crypto';
import { domainToASCII } from 'node:url';
import { domainOf, type MailAddress, type Sender } from '../config/recipients.js';
import type { DeliveryKey, Figures } from './delivery.js';

/** The content of an email. The HTML refers to images as `cid:<cid>`. */
export interface MailContent {
  readonly subject: string;
  readonly html: string;
  readonly text: string;
  readonly pictures: readonly { readonly cid: string; readonly png: Uint8Array }[];
  readonly attachments?: readonly { readonly filename: string; readonly csv: string }[];
  readonly figures?: Figures | null;
}

/** A notice to recipients, in every form in which they may get it. */
export interface Notice {
  readonly kind: 'report' | 'correction' | 'alert';
  readonly subject: string;
  /** A few lines of plain text, for a chat. */
  readonly brief: string;
  /** The address of the full report; null if it is not served. */
  readonly pageUrl: string | null;
  /** Its content, for programs. */
  readonly data: object;
  /** Its numbers, for a later correction; null if it is not about a period. */
  readonly figures: Figures | null;
  readonly email: () => Promise<MailContent>;
}

/** The sender of emails. */
export interface Letterhead {
  readonly from: Sender;
  /** The address for unsubscribing. */
  readonly unsubscribe?: MailAddress | undefined;
}

/** An email to one recipient, ready to be sent. */
export interface Email {
  readonly key: DeliveryKey;
  readonly id: string;
  readonly figures: Figures | null;
  /** Addresses for SMTP, with international domains in ASCII form. */
  readonly envelope: { readonly from: string; readonly to: string };
  readonly bytes: Buffer;
}

/** Always the same for the same report, project, period and recipient. */
export const fingerprintOf = ({ report, project, period, recipient }: DeliveryKey): string =>
  createHash('sha256')
    .update(JSON.stringify([report, project, period, recipient]))
    .digest('hex')
    .slice(0, 32);

/** An email that is sent again has the same id, so that email clients show it once. */
const messageIdOf = (key: DeliveryKey, from: Sender): string =>
  `<readership.${fingerprintOf(key)}@${asciiDomain(from)}>`;

/** Composes the email, with text and HTML as alternatives, and images related to the HTML. */
export async function compose(
  key: DeliveryKey,
  content: MailContent,
  { from, unsubscribe }: Letterhead,
  now: Date,
): Promise<Email> {
  const { default: MailComposer } = await import('nodemailer/lib/mail-composer');
  const id = messageIdOf(key, from);
  const composed = new MailComposer({
    from: { name: from.name, address: from.address },
    to: { name: '', address: key.recipient },
    subject: content.subject,
    date: now,
    messageId: id,
    text: content.text,
    html: content.html,
    attachments: [
      ...content.pictures.map(({ cid, png }) => ({
        cid,
        content: Buffer.from(png),
        contentType: 'image/png',
        contentDisposition: 'inline' as const,
        filename: `${cid.split('@')[0] ?? cid}.png`,
      })),
      ...(content.attachments ?? []).map(({ filename, csv }) => ({
        ...{ filename, content: Buffer.from(csv), contentType: 'text/csv; charset=utf-8' },
      })),
    ],
    headers: {
      'Auto-Submitted': 'auto-generated',
      'List-Id': `<${listOf(key)}.readership.${asciiDomain(from)}>`,
      'List-Unsubscribe': `<mailto:${unsubscribe ?? from.address}?subject=unsubscribe>`,
    },
    // Not random, so that composing twice produces the same bytes.
    baseBoundary: fingerprintOf(key),
    newline: 'windows',
    disableFileAccess: true,
    disableUrlAccess: true,
  }).compile();
  const { from: sender, to } = composed.getEnvelope();
  const [recipient] = to;
  if (sender === false || recipient === undefined)
    throw new RangeError(`not addresses to send from and to: ${from.address}, ${key.recipient}`);
  const envelope = { from: sender, to: recipient };
  return { key, id, figures: content.figures ?? null, envelope, bytes: await composed.build() };
}

/** Lets readers filter a report's emails: the same for every period and recipient. */
const listOf = ({ report, project }: DeliveryKey): string =>
  `${report}.${project}`.toLowerCase().replaceAll(/[^a-z0-9.-]/g, '-');

const asciiDomain = ({ address }: Sender): string => domainToASCII(domainOf(address)) || domainOf(address);
