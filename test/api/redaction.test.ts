import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { clientOf, errorOf, KEY, NO_ROWS, PAGE } from './open-client.js';
import { redactor } from '../../src/redact.js';
import { ATTEMPT } from '../attempt.js';

const PIECE = KEY.slice(0, 8);

async function messagesOf(handle: (response: ServerResponse) => unknown): Promise<string[]> {
  const { client } = await clientOf(handle, { retries: { retries: 0, minDelayMs: 1, maxDelayMs: 1 } });
  const asked = [client.views(PAGE), client.createJob('Improve /a', ATTEMPT)];
  return Promise.all(asked.map(async (answer) => (await errorOf(answer)).message));
}

const ECHOES: [string, string][] = [
  ['an error body', JSON.stringify({ error: `no such key: ${KEY}` })],
  ['its details', JSON.stringify({ error: 'no', details: [{ message: `key ${KEY} expired` }] })],
  ['JSON with escaped slashes', JSON.stringify({ error: `no such key: ${KEY}` }).replaceAll('/', '\\/')],
  ['fully escaped JSON', JSON.stringify({ error: 'KEY' }).replace('KEY', escaped(KEY))],
  ['a web page', `<!doctype html><body>Bearer ${KEY}</body>`],
  ['plain text', `Bearer ${KEY} is not allowed`],
  ['an address', `Sign in: https://example.com/login?key=${encodeURIComponent(KEY)}`],
  ['the end of the quoted text', 'x'.repeat(300 - PIECE.length) + KEY],
  ['the end of the quoted text, after tags', `<p>${'<b>'.repeat(50)}${'x'.repeat(299 - PIECE.length)}${KEY}`],
];

function escaped(text: string): string {
  return text.replaceAll(/./g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

describe('a server that echoes the key', () => {
  it.each(ECHOES)('in %s: no message contains it, or a part of it', async (_, body) => {
    for (const status of [400, 401, 429, 500]) {
      const messages = await messagesOf((response) => response.writeHead(status).end(body));
      for (const message of messages) expect(message).not.toContain(PIECE);
    }
  });

  it('in the start of a web page instead of JSON: no message contains it, or a part of it', async () => {
    for (const body of [`<!doctype html>Bearer ${KEY}`, `${'x'.repeat(60 - PIECE.length)}${KEY}`])
      for (const message of await messagesOf((response) => response.end(body)))
        expect(message).not.toContain(PIECE);
  });

  it.each([
    ['unchanged', KEY],
    ['within other text', `/login?key=${KEY}&x=1`],
    ['fully escaped', 'ESCAPED'],
    ['URL-encoded', encodeURIComponent(KEY)],
  ])('%s in data that would be stored: none of it is stored', async (_, echo) => {
    const source = { repository: echo, ref: echo };
    const job = { id: echo, status: echo, prLink: echo, model: echo, source };
    const page = { ...NO_ROWS, views: [{ path: echo, human: 1, ai: 0, total: 1 }] };
    const { client } = await clientOf((response, _count, { method, url }) => {
      const answer = method === 'POST' || url.pathname.includes('/job/') ? job : page;
      response.end(JSON.stringify(answer).replaceAll('ESCAPED', escaped(KEY)));
    });
    for (const value of [
      await client.views(PAGE),
      await errorOf(client.job('job_1')),
      await client.createJob('Go', ATTEMPT),
    ]) {
      const text = value instanceof Error ? value.message : JSON.stringify(value);
      expect(text).not.toContain(PIECE);
      expect(text).not.toContain(echo);
      expect(text).toContain('[redacted]');
    }
  });

  it('does not change paths that happen to contain a key as short as a word', async () => {
    const page = { ...NO_ROWS, views: [{ path: '/secret-management\\', human: 1, ai: 0, total: 1 }] };
    const { client } = await clientOf((response) => response.end(JSON.stringify(page)), { apiKey: 'secret' });
    expect(await client.views(PAGE)).toEqual(page);
  });
});

it('a secret that contains another one leaves nothing behind', () => {
  const redact = redactor(['smtp-user', 'smtp-user:pa55w0rd-of-docs']);
  expect(redact('no login for smtp-user:pa55w0rd-of-docs, or smtp-user')).toBe(
    'no login for [redacted], or [redacted]',
  );
});

it.each([
  ['cut to a reasonable length', 'long '.repeat(10_000), /^.{0,400}…”.{0,200}$/s],
  [
    'that of a web page, without its tags, scripts and styles',
    '<html><style>b{color:red}</style><h1>Bad <b>gateway</b></h1><script>alert(1)</script></html>',
    '502: “Bad gateway”',
  ],
  ['empty if the server said nothing', '', 'the server answered 502.'],
  [
    'without characters that could control a terminal',
    JSON.stringify({ error: 'red \u001b[31malert\u0007\u009b2J' }),
    // eslint-disable-next-line no-control-regex
    /^[^\u0000-\u001f\u007f-\u009f]+$/,
  ],
])('the server text that a message quotes is %s', async (_, body, words) => {
  const [message] = await messagesOf((response) => response.writeHead(502).end(body));
  expect(message).toMatch(words);
});
