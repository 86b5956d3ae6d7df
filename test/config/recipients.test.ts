import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { withSender } from '../../src/app/secrets.js';
import { loadSettings } from '../../src/config/load.js';
import { parseMailAddress, parseSender } from '../../src/config/recipients.js';
import { parseSmtpUrl } from '../../src/mail/smtp-server.js';
import { tempDir } from '../temp-dir.js';

async function load(yaml: string) {
  const directory = await tempDir();
  const file = join(directory, 'readership.yaml');
  await writeFile(file, `baseUrl: https://platform.example.com\nprojects: [{ id: prj_1 }]\n${yaml}`);
  return (await loadSettings(file, directory)).settings;
}

const NO_SENDER =
  'channels: { chat: { kind: slack } }\nreports: { weekly: { to: [chat, docs@Example.com, lead@other.example] } }';

describe('the email configuration', () => {
  it('normalizes recipients and removes duplicates', async () => {
    const { mail, reports } = await load(
      'mail: { from: Readership <docs@Example.com> }\n' +
        "reports: { weekly: { to: [docs@example.com, ' DOCS@EXAMPLE.com', lead@example.com] } }",
    );
    expect(mail).toEqual({ from: { name: 'Readership', address: 'docs@example.com' } });
    const weekly = [{ digest: false, to: ['docs@example.com', 'lead@example.com'] }];
    expect(reports.audiences).toEqual({ weekly });
  });

  it('needs no sender where only channels are recipients', async () => {
    const { channels, alerts } = await load(
      'channels: { docs-chat: { kind: slack }, hook: { kind: webhook } }\nalerts: { to: [docs-chat, docs-chat] }',
    );
    expect(channels).toEqual({
      'docs-chat': { kind: 'slack', urlEnv: 'READERSHIP_CHANNEL_DOCS_CHAT' },
      hook: {
        kind: 'webhook',
        urlEnv: 'READERSHIP_CHANNEL_HOOK',
        secretEnv: 'READERSHIP_WEBHOOK_SECRET_HOOK',
      },
    });
    expect(alerts.to).toEqual(['docs-chat']);
  });

  it.each([
    [NO_SENDER, undefined, 'readership@example.com'],
    [NO_SENDER, 'smtps://me%40mail.example:secret-word@smtp.example', 'me@mail.example'],
    [NO_SENDER, 'smtps://apikey:secret-word@smtp.example', 'readership@example.com'],
    [
      'mail: { from: own@example.com }',
      'smtps://me%40mail.example:secret-word@smtp.example',
      'own@example.com',
    ],
  ])('with %j and the mail server %s, has the sender %s', async (yaml, url, sender) => {
    expect(withSender(await load(yaml), { READERSHIP_SMTP_URL: url }).mail?.from.address).toBe(sender);
  });

  it.each([
    [
      'reports: { weekly: { to: [docs] } }',
      /reports\.weekly\.to: docs is neither an email address nor one of the channels: add it under channels/,
    ],
    [
      'reports: { weekly: { too: [a@example.com] } }',
      /yaml:3 {2}reports\.weekly\.too: unknown setting; there is to, where, digest$/m,
    ],
    ['reports: { weekly: { to: [Docs Team] } }', /reports\.weekly\.to\[0\]: not an email address: write one/],
    [
      'reports: { weekly: [{ where: sdks }] }',
      /reports\.weekly\[0\]\.where: matches no page: write a path that begins with \//,
    ],
    [
      'reports: { firstDayOfWeeks: monday }',
      /reports\.firstDayOfWeeks: unknown setting; write the recipients of a report/,
    ],
    [
      'reports: { weekly: [{ to: [a@example.com] }, { to: [a@example.com], where: /sdks/** }] }',
      /reports\.weekly: a@example\.com is in two audiences/,
    ],
    [
      'channels: { chat: { kind: slack } }\nalerts: { to: [caht] }',
      /yaml:4 {2}alerts\.to: caht is neither an email address nor one of the channels, which are chat/,
    ],
    ['alerts: { to: [Docs Team] }', /alerts\.to\[0\]: not an email address: write one such as/],
    ['channels: { Chat: { kind: slack } }', /channels\.Chat: not a channel name/],
    ['channels: { chat: { kind: irc } }', /channels\.chat\.kind: write slack, teams or webhook/],
    [
      'channels: { chat: { kind: slack, url: https://hooks.slack.com/x } }',
      /channels\.chat\.url: unknown setting/,
    ],
    ['mail: { from: nobody }', /mail\.from: not an email address/],
    ['mail: { from: a@example.com, password: x }', /mail\.password: unknown setting/],
  ])('rejects %s and says what to write', async (yaml, message) => {
    await expect(load(yaml)).rejects.toThrow(message);
  });
});

it('a directory of the site means what is below it, and an address with a slash is that of the front page', async () => {
  const whereOf = async (where: string) => {
    const { reports } = await load(`reports: { sections: { to: [a@example.com], where: ${where} } }`);
    return reports.audiences['sections']?.[0]?.where;
  };
  expect(await whereOf('/docs/')).toBe('/docs/**');
  expect(await whereOf('/docs/*/')).toBe('/docs/*/**');
  expect(await whereOf('/docs')).toBe('/docs');
  expect(await whereOf('/')).toBe('/');
});

describe('an email address', () => {
  it.each([
    [' Docs@Example.COM ', 'Docs@example.com'],
    ['first.last+weekly@docs.example.co.uk', 'first.last+weekly@docs.example.co.uk'],
    ['docs@MÜLLER.example', 'docs@müller.example'],
    ['root@localhost', 'root@localhost'],
  ])('%s is %s', (text, parsed) => {
    expect(parseMailAddress(text)).toBe(parsed);
  });

  it.each([
    ['', 'nothing'],
    ['docs', 'no domain'],
    ['@example.com', 'no mailbox'],
    ['docs@', 'no domain'],
    ['docs@example..com', 'an empty label'],
    ['a@example.com, b@example.com', 'two'],
    ['Docs <docs@example.com>', 'a name'],
    ['docs@example.com\r\nBcc: eve@example.com', 'a second line'],
    [`${'d'.repeat(250)}@example.com`, 'too long'],
  ])('%j is not one: %s', (text) => {
    expect(parseMailAddress(text)).toBeUndefined();
  });
});

it.each<[string, object | undefined]>([
  ['Readership <docs@Example.com>', { name: 'Readership', address: 'docs@example.com' }],
  ['docs@example.com', { name: '', address: 'docs@example.com' }],
  ...['', 'Readership', 'a@example.com, b@example.com', 'Readership <docs>', 'g: a@b.c;'].map(
    (text): [string, undefined] => [text, undefined],
  ),
])('the sender %j is %j', (text, sender) => {
  expect(parseSender(text)).toEqual(sender);
});

describe('the mail server URL', () => {
  it.each([
    [
      'smtps://me%40example.com:p%3A%2F%40ss@smtp.example.com',
      { port: 465, secure: true, login: { user: 'me@example.com', password: 'p:/@ss' } },
    ],
    ['smtp://me:p%40ss@smtp.example.com', { port: 587, secure: false, requireTls: true }],
    ['smtp://me:p%40ss@localhost:1025', { port: 1025, secure: false, requireTls: false }],
    ['smtp://relay.internal:25', { port: 25, secure: false, requireTls: false }],
    ['smtp://[::1]:25', { host: '::1', port: 25, requireTls: false }],
  ])('%s', (url, server) => {
    expect(parseSmtpUrl(url)).toMatchObject(server);
  });

  it.each([
    'smtp.example.com',
    'https://me:s3cret@smtp.example.com',
    'smtp://me:s3cret@smtp.example.com/?tls=no',
    'smtp://me:s3cret%@smtp.example.com',
    'smtp://me@smtp.example.com',
    'smtps://me:s3cret@',
  ])('%s is rejected without repeating the password', (url) => {
    expect(() => parseSmtpUrl(url)).toThrow(/^READERSHIP_SMTP_URL (?!.*s3cret)/s);
  });
});
