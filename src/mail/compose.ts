import { domainToASCII } from 'node:url';
import pMap from 'p-map';
import { domainOf, isAddress, localPartOf, type Recipient, type Sender } from '../config/recipients.js';
import type { Settings } from '../config/schema.js';
import { ConfigurationError } from '../errors.js';
import type { DeliveryKey } from '../state/emails.js';
import type { Channel, Post } from './channel.js';
import { type ChannelContent, composePost } from './channel-post.js';
import { type Figures, fingerprintOf } from './delivery.js';

/** The content of an email. The HTML refers to images as `cid:<cid>`, which composing makes unique. */
export interface MailContent {
  readonly subject: string;
  readonly html: string;
  readonly text: string;
  readonly pictures: readonly { readonly cid: string; readonly png: Uint8Array }[];
}

/** A notice to recipients, in every form in which they may get it. */
export interface Notice extends ChannelContent {
  /** Its totals, with which the next email compares; null if it is not about a period. */
  readonly figures: Figures | null;
  readonly email: () => Promise<MailContent>;
}

/** The sender of emails, and the address for unsubscribing. */
type Letterhead = NonNullable<Settings['mail']>;

/** An email to one recipient, ready to be sent. */
export interface Email {
  readonly key: DeliveryKey;
  readonly id: string;
  /** Addresses for SMTP, with international domains in ASCII form. */
  readonly envelope: { readonly from: string; readonly to: string };
  readonly bytes: Buffer;
}

/** A notice for one recipient, ready to be sent, with the numbers to record. */
export type OutgoingMessage = (Email | Post) & { readonly figures?: Figures | null };

/** What composing needs: the sender of emails, if there is one, and the channels by name. */
interface ComposingParts {
  readonly workspace: { readonly settings: Pick<Settings, 'mail'> };
  readonly outgoing: { readonly channels: ReadonlyMap<string, Channel> };
  readonly session: { readonly now: () => Date };
}

/** The messages of a notice, one per recipient; an email is composed only if it has recipients. */
export async function composeAll(
  { workspace: { settings }, outgoing: { channels }, session: { now } }: ComposingParts,
  notice: Notice,
  key: Omit<DeliveryKey, 'recipient'>,
  recipients: readonly Recipient[],
): Promise<OutgoingMessage[]> {
  const content = recipients.some(isAddress) ? await notice.email() : undefined;
  const { mail } = settings;
  const { figures } = notice;
  const message = async (recipient: Recipient): Promise<OutgoingMessage> => {
    const to = { ...key, recipient };
    const channel = channels.get(recipient);
    if (channel !== undefined) return { ...composePost(to, notice, channel, now()), figures };
    if (mail === undefined || content === undefined)
      throw new ConfigurationError('Emails need a sender: set mail.from in the configuration.');
    return { ...(await compose(to, content, mail, now())), figures };
  };
  // One after another, because each takes several times its size while it is composed.
  return pMap(recipients, message, { concurrency: 1 });
}

/** Composes the email, with text and HTML as alternatives, and images related to the HTML. */
export async function compose(
  key: DeliveryKey,
  content: MailContent,
  { from }: Letterhead,
  now: Date,
): Promise<Email> {
  const { default: MailComposer } = await import('nodemailer/lib/mail-composer');
  // An email that is sent again has the same id, so that email clients show it once.
  const id = `<readership.${fingerprintOf(key)}@${asciiDomain(from)}>`;
  // Some email clients keep pictures by their ids, and would show another email's.
  const uniqueId = (cid: string) => `${fingerprintOf(key)}.${cid}`;
  const html = content.pictures.reduce(
    (text, { cid }) => text.replaceAll(`"cid:${cid}"`, `"cid:${uniqueId(cid)}"`),
    content.html,
  );
  const composed = new MailComposer({
    from: { name: from.name, address: from.address },
    to: { name: '', address: key.recipient },
    subject: content.subject,
    date: now,
    messageId: id,
    text: content.text,
    html,
    attachments: content.pictures.map(({ cid, png }) => ({
      cid: uniqueId(cid),
      content: Buffer.from(png),
      contentType: 'image/png',
      contentDisposition: 'inline' as const,
      filename: `${cid.split('@')[0] ?? cid}.png`,
    })),
    headers: {
      'Auto-Submitted': 'auto-generated',
      // Exchange heeds only this one, and would answer that someone is out of office.
      'X-Auto-Response-Suppress': 'All',
      'List-Id': `<${listOf(key)}.readership.${asciiDomain(from)}>`,
      'List-Unsubscribe': `<mailto:${inMailto(from)}?subject=unsubscribe>`,
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
  return { key, id, envelope, bytes: await composed.build() };
}

/** Lets readers filter a report's emails: the same for every period and recipient. */
const listOf = ({ report, project }: DeliveryKey): string =>
  `${report}.${project}`.toLowerCase().replaceAll(/[^a-z0-9.-]/g, '-');

/** An address in a `mailto:` link, which has only ASCII: in a header, anything else would make it encoded text. */
const inMailto = (sender: Sender): string =>
  `${encodeURIComponent(localPartOf(sender.address))}@${asciiDomain(sender)}`;

/** The domain of a sender as SMTP and headers write it. */
export const asciiDomain = ({ address }: Sender): string =>
  domainToASCII(domainOf(address)) || domainOf(address);
