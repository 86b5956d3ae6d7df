import PostalMime from 'postal-mime';
import { describe, expect, it } from 'vitest';
import { compose } from '../../src/mail/compose.js';
import { content, letter, sender } from './letters.js';

const now = new Date('2026-11-16T03:00:00Z');
const key = { report: 'weekly', project: 'prj_1', period: '2026-W46', recipient: 'docs@example.com' };
const from = sender('"Readership, Ltd." <readership@example.com>');

const composed = async (changes: Partial<typeof key> = {}) => {
  const sending = { from };
  const message = await compose({ ...key, ...changes }, content, sending, now);
  const parsed = await PostalMime.parse(message.bytes);
  const header = (name: string) => parsed.headers.find((header) => header.key === name)?.value;
  return { message, parsed, header };
};

describe('an email', () => {
  it('is text and HTML as alternatives, with the pictures related to the HTML', async () => {
    const { message, parsed } = await composed();
    const types = message.bytes.toString().match(/(?<=^Content-Type: )[a-z/]+/gm);
    const alternatives = ['text/plain', 'multipart/related', 'text/html', 'image/png'];
    expect(types).toEqual(['multipart/alternative', ...alternatives]);
    expect(parsed.text?.trim()).toBe(content.text);
    const [picture, ...others] = parsed.attachments;
    expect(others).toEqual([]);
    expect(picture).toMatchObject({
      disposition: 'inline',
      related: true,
      mimeType: 'image/png',
    });
    expect(Buffer.from(picture?.content as ArrayBuffer)).toEqual(content.pictures[0]?.png);
  });

  it('has ids of pictures that no other email has, for clients that keep pictures by their ids', async () => {
    const emails = [
      await composed(),
      await composed({ period: '2026-W47' }),
      await composed({ project: 'prj_2' }),
    ];
    const ids = emails.map(({ parsed }) => parsed.attachments[0]?.contentId?.replaceAll(/[<>]/g, '') ?? '');
    expect(new Set(ids).size).toBe(3);
    const [, own = ''] = /"cid:([^"]+)"/.exec(content.html) ?? [];
    for (const [index, { parsed }] of emails.entries())
      expect(parsed.html?.trim()).toBe(content.html.replace(own, ids[index] ?? ''));
  });

  it('names sender, one recipient, subject and date, and says that a machine wrote it', async () => {
    const { parsed, header } = await composed();
    expect(parsed.from).toMatchObject({ name: 'Readership, Ltd.', address: 'readership@example.com' });
    expect(parsed.to).toMatchObject([{ address: 'docs@example.com' }]);
    expect(parsed.subject).toBe(content.subject);
    expect(new Date(parsed.date ?? '')).toEqual(now);
    expect(header('auto-submitted')).toBe('auto-generated');
    expect(parsed.headers.filter(({ key }) => key.startsWith('x-'))).toMatchObject([
      { key: 'x-auto-response-suppress', value: 'All' },
    ]);
  });

  it('can be unsubscribed from by email to the sender', async () => {
    const bytes = (await letter('docs@example.com')).bytes.toString();
    expect(bytes).toContain('List-Unsubscribe: <mailto:readership@example.com?subject=unsubscribe>');
    expect(bytes).toContain('\r\nList-ID: <weekly.prj-1.readership.example.com>\r\n');
    const international = await compose(key, content, { from: sender('rö+1@bücher.example') }, now);
    expect(international.bytes.toString()).toContain(
      'List-Unsubscribe:\r\n <mailto:r%C3%B6%2B1@xn--bcher-kva.example?subject=unsubscribe>\r\n',
    );
  });

  it('has an id made of its report, project, period and recipient, in the sender’s domain', async () => {
    const { parsed } = await composed();
    expect(parsed.messageId).toMatch(/^<readership\.[0-9a-f]{32}@example\.com>$/);
    const others = await Promise.all([
      composed({ report: 'improve' }),
      composed({ project: 'prj_2' }),
      composed({ period: '2026-W47' }),
      composed({ recipient: 'lead@example.com' }),
    ]);
    expect(new Set([parsed.messageId, ...others.map(({ message }) => message.id)]).size).toBe(5);
    expect((await composed({ recipient: 'Docs@Example.com' })).message.id).toBe(parsed.messageId);
  });

  it('is the same, byte for byte, when it is composed again', async () => {
    expect((await composed()).message.bytes).toEqual((await composed()).message.bytes);
  });

  it('reaches an international domain by its ASCII name', async () => {
    const { message } = await composed({ recipient: 'docs@müller.example' });
    expect(message.envelope.to).toBe('docs@xn--mller-kva.example');
  });

  it('cannot get another header through its subject', async () => {
    const subject = 'Views\r\nBcc: eve@example.com';
    const message = await compose(key, { ...content, subject }, { from }, now);
    const { headers } = await PostalMime.parse(message.bytes);
    expect(headers.some(({ key }) => key === 'bcc')).toBe(false);
  });
});
