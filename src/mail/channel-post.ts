import { chatLink, chatParts, fittingMessage } from '../format/chat.js';
import { escapeMarkup, shortened } from '../format/text.js';
import type { DeliveryKey } from '../state/emails.js';
import type { Channel, Post } from './channel.js';
import { fingerprintOf } from './delivery.js';

/** The content of a notice that channels get. */
export interface ChannelContent {
  readonly kind: 'report' | 'alert';
  readonly subject: string;
  /** A few lines of text for a chat, with links as `chatLink` writes them. */
  readonly chat: string;
  /** The address of the full report; null if it is not served. */
  readonly pageUrl: string | null;
  /** Its content, for programs. */
  readonly data: object;
}

/** A notice for a channel, ready to be posted. */
export function composePost(key: DeliveryKey, notice: ChannelContent, channel: Channel, now: Date): Post {
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

const LINK = 'Open the report';

/** The message as far as it fits, with a link to the rest. */
const fitting = (message: string, pageUrl: string | null, lengthOf: (text: string) => number): string =>
  fittingMessage(message, MAX_TEXT, lengthOf, pageUrl === null ? null : chatLink(pageUrl, LINK));

/** Text is escaped, so that a path cannot mention a channel or forge a link. */
function slackMessage({ subject, chat, pageUrl }: ChannelContent) {
  const section = (text: string) => ({ type: 'section', text: { type: 'mrkdwn', verbatim: true, text } });
  const body = subject.length > MAX_HEADING ? `${subject}\n\n${chat}` : chat;
  const written = (text: string): string =>
    chatParts(text)
      .map(({ words, href }) => (href === null ? escapeMarkup(words) : slackLink(href, words)))
      .join('');
  const shown = written(fitting(body, pageUrl, (text) => written(text).length));
  return {
    text: escapeMarkup(subject),
    blocks: [
      { type: 'header', text: { type: 'plain_text', emoji: false, text: shortened(subject, MAX_HEADING) } },
      section(shown),
      ...(pageUrl === null ? [] : [section(slackLink(pageUrl, LINK))]),
    ],
  };
}

const slackLink = (href: string, words: string): string =>
  `<${escapeMarkup(href).replaceAll('|', '%7C')}|${escapeMarkup(words)}>`;

/** Teams interprets Markdown in text blocks, but not in text runs. */
function teamsMessage({ subject, chat, pageUrl }: ChannelContent) {
  const block = (line: string, spacing: string, style: object = {}) => ({
    type: 'RichTextBlock',
    spacing,
    inlines: chatParts(line).map(({ words, href }) => ({
      type: 'TextRun',
      text: words,
      ...style,
      ...(href !== null && { selectAction: { type: 'Action.OpenUrl', url: href } }),
    })),
  });
  const lines = fitting(chat, pageUrl, ({ length }) => length).split('\n');
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

function webhookEvent({ report, project, period }: DeliveryKey, notice: ChannelContent, now: Date) {
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
