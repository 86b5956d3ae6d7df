import { createHmac } from 'node:crypto';
import { openChannel, type Post } from '../../src/mail/channel.js';
import { composePost } from '../../src/mail/channel-post.js';
import type { Notice } from '../../src/mail/compose.js';

const KEY = Buffer.alloc(32, 7);
export const SECRET = `whsec_${KEY.toString('base64')}`;

const notice: Notice = {
  kind: 'report',
  subject: 'Acme Docs, Nov 9 – 15, 2026: people & AI <read>',
  chat: 'Human views: 1,620 (+3%)\n\nMost read:\n/a_b/<!channel>&[x](https://evil.example): 20 human, 10 AI',
  pageUrl: 'https://reports.example.com/prj_1/weekly-2026-W46.html',
  data: { human: { views: 1620 } },
  figures: { days: 7, human: 1620, ai: 40 },
  email: () => Promise.reject(new Error('nobody gets an email')),
};

/** The weekly report of a week for a channel that posts to `url`. */
export function postTo(
  kind: Post['channel']['kind'],
  url: string,
  said: Partial<Notice> = {},
  period = '2026-W46',
): Post & Pick<Notice, 'figures'> {
  const secretEnv = kind === 'webhook' ? 'SECRET' : undefined;
  const channel = openChannel({ kind, urlEnv: 'URL', secretEnv }, { URL: url, SECRET });
  const key = { report: 'weekly', project: 'prj_1', period, recipient: 'docs-channel' };
  const all = { ...notice, ...said };
  return { ...composePost(key, all, channel, new Date('2026-11-16T03:00:00Z')), figures: all.figures };
}

/** Verifies a webhook as docs/reports.md describes it. */
export function isGenuine(headers: NodeJS.Dict<string | string[]>, body: string): boolean {
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`;
  const signature = `v1,${createHmac('sha256', KEY).update(signed).digest('base64')}`;
  return String(headers['webhook-signature']).split(' ').includes(signature);
}
