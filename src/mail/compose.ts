import { isAddress, type Recipient } from '../config/recipients.js';
import { ConfigurationError } from '../errors.js';
import type { Channel, Post } from './channel.js';
import type { DeliveryKey } from './delivery.js';
import { compose, type Email, fingerprintOf, type Letterhead, type Notice } from './message.js';

/** A notice for one recipient, ready to be sent. */
export type Message = Email | Post;

/** The sender of emails, and the configured channels by name. */
export interface Senders {
  readonly mail: Letterhead | undefined;
  readonly channels: ReadonlyMap<string, Channel>;
}

/** The messages of a notice, one per recipient; an email is composed only if it has recipients. */
export async function composeAll(
  notice: Notice,
  key: Omit<DeliveryKey, 'recipient'>,
  recipients: readonly Recipient[],
  { mail, channels }: Senders,
  now: Date,
): Promise<Message[]> {
  const content = recipients.some(isAddress) ? await notice.email() : undefined;
  return Promise.all(
    recipients.map(async (recipient): Promise<Message> => {
      const to = { ...key, recipient };
      const channel = channels.get(recipient);
      if (channel !== undefined) return composePost(to, notice, channel, now);
      if (mail === undefined || content === undefined)
        throw new ConfigurationError('Emails need a sender: set mail.from in the configuration.');
      return compose(to, { ...content, figures: notice.figures }, mail, now);
    }),
  );
}

/** A notice for a channel, ready to be posted. */
export function composePost(key: DeliveryKey, notice: Notice, channel: Channel, now: Date): Post {
  const content = {
    slack: () => slackMessage(notice),
    teams: () => teamsMessage(notice),
    webhook: () => webhookEvent(key, notice, now),
  }[channel.kind]();
  const id = `msg_${fingerprintOf(key)}`;
  return { key, id, channel, figures: notice.figures, body: JSON.stringify(content) };
}

/** Slack accepts up to 3,000 characters per section. */
const MAX_TEXT = 2_800;
const MAX_HEADING = 150;

const cut = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length - 1).replace(/[\ud800-\udbff]$/, '')}…`;

/**
 * Escapes the three characters that are special in Slack, so that a path cannot mention a channel
 * or forge a link.
 */
const mrkdwn = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const LINK = 'Open the report';

function slackMessage({ subject, brief, pageUrl }: Notice) {
  const section = (text: string) => ({ type: 'section', text: { type: 'mrkdwn', verbatim: true, text } });
  return {
    text: mrkdwn(subject),
    blocks: [
      { type: 'header', text: { type: 'plain_text', emoji: false, text: cut(subject, MAX_HEADING) } },
      // Leaves room up to 3,000 characters for escaping, which is enough for any realistic text.
      section(cut(mrkdwn(cut(brief, MAX_TEXT)), 3_000).replace(/&[a-z]{0,3}…$/, '…')),
      ...(pageUrl === null ? [] : [section(`<${mrkdwn(pageUrl).replaceAll('|', '%7C')}|${LINK}>`)]),
    ],
  };
}

/** Teams interprets Markdown in text blocks, but not in text runs. */
function teamsMessage({ subject, brief, pageUrl }: Notice) {
  const block = (text: string, spacing: string, style: object = {}) => ({
    ...{ type: 'RichTextBlock', spacing },
    inlines: [{ type: 'TextRun', text, ...style }],
  });
  const lines = cut(brief, MAX_TEXT).split('\n');
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          ...{ type: 'AdaptiveCard', version: '1.4', msteams: { width: 'Full' } },
          body: [
            block(cut(subject, MAX_HEADING), 'None', { size: 'Large', weight: 'Bolder' }),
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
  const { kind, subject, brief, pageUrl, data } = notice;
  const isTooLong = JSON.stringify(data).length > MAX_DATA;
  return {
    ...{ type: kind, timestamp: now.toISOString() },
    data: {
      ...{ report, project, period, subject, text: brief, url: pageUrl },
      content: isTooLong ? null : data,
      ...(isTooLong
        ? {
            contentLeftOut: `left out, because it has more than ${MAX_DATA} characters: run readership report ${report} --format json`,
          }
        : {}),
    },
  };
}
