import type { ChannelSettings } from '../config/recipients.js';
import { isInTheClear } from '../config/values.js';
import { unmistakable } from '../redact.js';
import { type DeliveryKey, type Figures } from './delivery.js';
import { fingerprintOf, type Notice } from './message.js';

/** A channel with its address, or the reason why it has none. */
export type Channel = { readonly kind: ChannelSettings['kind'] } & (
  | { readonly url: URL; readonly key: Buffer | undefined; readonly secrets: readonly string[] }
  | { readonly problem: string }
);

/** A notice for one channel. The address and the key are secrets. */
export interface Post {
  readonly key: DeliveryKey;
  readonly id: string;
  readonly figures: Figures | null;
  readonly channel: Channel;
  readonly body: string;
}

/** As required by Standard Webhooks: 24 to 64 bytes, in base64. */
const SECRET = /^whsec_(?=.{32,88}$)[A-Za-z0-9+/]+={0,2}$/;

/** Reads the variables that a channel names. Problems do not repeat their values. */
export function openChannel(
  { kind, urlEnv, secretEnv }: ChannelSettings,
  environment: Readonly<Record<string, string | undefined>>,
): Channel {
  const url = environment[urlEnv] ?? '';
  if (url === '')
    return { kind, problem: `${urlEnv} is not set: set it to the address, in the environment or .env` };
  if (!/^https?:/.test(url) || !URL.canParse(url) || isInTheClear(url))
    return { kind, problem: `${urlEnv} is not an address that begins with https://` };
  const secret = (secretEnv === undefined ? undefined : environment[secretEnv]) ?? '';
  if (secretEnv !== undefined && !SECRET.test(secret))
    return {
      ...{ kind },
      problem: `${secretEnv} ${secret === '' ? 'is not set' : 'is not a valid secret'}: set it to whsec_ and 24 to 64 random bytes in base64, such as the output of echo whsec_$(openssl rand -base64 32)`,
    };
  const key = secret === '' ? undefined : Buffer.from(secret.slice('whsec_'.length), 'base64');
  return { kind, url: new URL(url), key, secrets: secretParts(url, secret) };
}

/** The secrets of a channel: its key, its address, and parts of the address that cannot be ordinary words. */
export function secretParts(url: string, secret: string): string[] {
  const { pathname, search, searchParams } = URL.canParse(url) ? new URL(url) : new URL('https://x');
  return unmistakable([url, secret, pathname, search, ...pathname.split('/'), ...searchParams.values()]);
}

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
