import { domainToASCII } from 'node:url';
import { domainOf, isAddress, type Recipient, type Sender } from '../config/recipients.js';
import type { Settings } from '../config/schema.js';
import { ConfigurationError } from '../errors.js';
import { chatParts } from '../format/chat.js';
import { escapeMarkup } from '../format/text.js';
import type { DeliveryKey } from '../state/emails.js';
import type { Channel, Post } from './channel.js';
import { type Figures, fingerprintOf } from './delivery.js';

/** The content of an email. The HTML refers to images as `cid:<cid>`. */
export interface MailContent {
  readonly subject: string;
  readonly html: string;
  readonly text: string;
  readonly pictures: readonly { readonly cid: string; readonly png: Uint8Array }[];
}

/** A notice to recipients, in every form in which they may get it. */
export interface Notice {
  readonly kind: 'report' | 'alert';
  readonly subject: string;
  /** A few lines of text for a chat, with links as `chatLink` writes them. */
  readonly chat: string;
  /** The address of the full report; null if it is not served. */
  readonly pageUrl: string | null;
  /** Its content, for programs. */
  readonly data: object;
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
export type OutgoingMessage = (Email | Post) & Partial<Pick<Notice, 'figures'>>;

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
  return Promise.all(
    recipients.map(async (recipient): Promise<OutgoingMessage> => {
      const to = { ...key, recipient };
      const channel = channels.get(recipient);
      if (channel !== undefined) return { ...composePost(to, notice, channel, now()), figures };
      if (mail === undefined || content === undefined)
        throw new ConfigurationError('Emails need a sender: set mail.from in the configuration.');
      return { ...(await compose(to, content, mail, now())), figures };
    }),
  );
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
      contentDisposition: 'inline' as const,
      filename: `${cid.split('@')[0] ?? cid}.png`,
    })),
    headers: {
      'Auto-Submitted': 'auto-generated',
      'List-Id': `<${listOf(key)}.readership.${asciiDomain(from)}>`,
      'List-Unsubscribe': `<mailto:${from.address}?subject=unsubscribe>`,
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

/** The domain of a sender as SMTP and headers write it. */
export const asciiDomain = ({ address }: Sender): string =>
  domainToASCII(domainOf(address)) || domainOf(address);

/** A notice for a channel, ready to be posted. */
export function composePost(key: DeliveryKey, notice: Notice, channel: Channel, now: Date): Post {
  const content = {
    slack: () => slackMessage(notice),
    teams: () => teamsMessage(notice),
    webhook: () => webhookEvent(key, notice, now),
  }[channel.kind]();
  const id = `msg_${fingerprintOf(key)}`;
  return { key, id, channel, body: JSON.stringify(content) };
}

/** Slack accepts up to 3,000 characters per section, and fewer in a heading. */
const MAX_TEXT = 2_800;
const MAX_HEADING = 150;

const cut = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length - 1).replace(/[\ud800-\udbff]$/, '')}…`;

const LINK = 'Open the report';

/** Text is escaped, so that a path cannot mention a channel or forge a link. */
function slackMessage({ subject, chat, pageUrl }: Notice) {
  const section = (text: string) => ({ type: 'section', text: { type: 'mrkdwn', verbatim: true, text } });
  const body = subject.length > MAX_HEADING ? `${subject}\n\n${chat}` : chat;
  const written = chatParts(body).map(({ words, href }) =>
    href === null ? escapeMarkup(words) : slackLink(href, words),
  );
  return {
    text: escapeMarkup(subject),
    blocks: [
      { type: 'header', text: { type: 'plain_text', emoji: false, text: cut(subject, MAX_HEADING) } },
      section(wholeParts(written, MAX_TEXT)),
      ...(pageUrl === null ? [] : [section(slackLink(pageUrl, LINK))]),
    ],
  };
}

const slackLink = (href: string, words: string): string =>
  `<${escapeMarkup(href).replaceAll('|', '%7C')}|${escapeMarkup(words)}>`;

/** The parts that fit, so that neither a link nor an escaped character is cut; only words may be. */
function wholeParts(parts: readonly string[], length: number): string {
  let text = '';
  for (const part of parts) {
    const room = length - text.length;
    if (part.length > room)
      return room < 1 || part.startsWith('<')
        ? `${text}…`
        : text + cut(part, room).replace(/&[a-z]{0,3}…$/, '…');
    text += part;
  }
  return text;
}

/** Teams interprets Markdown in text blocks, but not in text runs. */
function teamsMessage({ subject, chat, pageUrl }: Notice) {
  const block = (line: string, spacing: string, style: object = {}) => ({
    type: 'RichTextBlock',
    spacing,
    inlines: chatParts(line).map(({ words, href }) => ({
      ...{ type: 'TextRun', text: words, ...style },
      ...(href !== null && { selectAction: { type: 'Action.OpenUrl', url: href } }),
    })),
  });
  const lines = cut(chat, MAX_TEXT).split('\n');
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          msteams: { width: 'Full' },
          body: [
            block(subject, 'None', { size: 'Large', weight: 'Bolder' }),
            ...lines.flatMap((line, index) =>
              line === '' ? [] : block(line, index === 0 || lines[index - 1] === '' ? 'Medium' : 'None'),
            ),
          ],
          actions: pageUrl === null ? [] : [{ type: 'Action.OpenUrl', title: LINK, url: pageUrl }],
        },
      },
    ],
  };
}

/** Webhook receivers commonly accept at most a megabyte. */
const MAX_DATA = 500_000;

function webhookEvent({ report, project, period }: DeliveryKey, notice: Notice, now: Date) {
  const { kind, subject, chat, pageUrl, data } = notice;
  const isTooLong = JSON.stringify(data).length > MAX_DATA;
  const contentLeftOut = `left out, because it has more than ${MAX_DATA} characters: run readership report ${report} --format json`;
  return {
    type: kind,
    timestamp: now.toISOString(),
    data: {
      report,
      project,
      period,
      subject,
      text: chatParts(chat)
        .map(({ words }) => words)
        .join(''),
      url: pageUrl,
      ...(isTooLong ? { content: null, contentLeftOut } : { content: data }),
    },
  };
}
