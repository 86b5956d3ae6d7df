import { chatLink } from '../../src/format/chat.js';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { promisify } from 'node:util';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openChannel } from '../../src/mail/channel.js';
import { deliver } from '../../src/mail/deliver.js';
import { DeliveryError, resolved, sentOf } from '../../src/mail/delivery.js';
import { outboxTransport } from '../../src/mail/transport.js';
import { readDeliveries, storeDelivery } from '../../src/state/emails.js';
import { Sender } from '../../src/state/sender.js';
import type { State } from '../../src/state/state.js';
import { openTestState, type OpenState } from '../open-state.js';
import { reply, serve } from '../serve.js';
import { tempDir } from '../temp-dir.js';
import { postTo, SECRET } from './posts.js';

const NOW = new Date('2026-11-16T03:00:00Z');
const run = promisify(execFile);
const ALL_ANSWER = { pausedBy: undefined, silentHosts: new Set<string>() };

async function setUp(given?: OpenState, whyNot = () => Promise.resolve<Error | undefined>(undefined)) {
  const { state, worker, here } = given ?? (await openTestState());
  const sender = new Sender({ state, worker, here, witness: undefined, whyNot });
  const parts = partsWith(state, sender);
  return async (...posts: Parameters<typeof deliver>[1]) => ({
    attempted: (await deliver(parts, posts, 'due')).deliveries,
    stored: readDeliveries(state),
  });
}

const partsWith = (state: State, sender: Sender, now = NOW, { signal } = new AbortController()) => ({
  state,
  sender,
  outgoing: { transport: () => outboxTransport('nowhere'), silentHosts: new Set<string>() },
  session: { now: () => now, signal },
});

describe('a post to a channel', () => {
  it('is sent once, with its numbers in the state', async () => {
    const send = await setUp();
    const standIn = await serve((_, response) => response.end('ok'));
    const first = await send(postTo('slack', `${standIn.baseUrl}/services/T0/B0/secret`));
    expect(first.stored).toMatchObject([
      { state: 'sent', via: 'slack', note: `slack at ${new URL(standIn.baseUrl).host} answered 200: ok` },
    ]);
    expect(first.stored).toMatchObject([{ days_covered: 7, human: 1620, ai: 40 }]);
    expect((await send(postTo('slack', standIn.baseUrl))).attempted).toEqual([]);
    const twice = [1, 2].map(() => send(postTo('slack', standIn.baseUrl, {}, '2026-W47')));
    expect((await Promise.all(twice)).flatMap(({ attempted }) => attempted)).toHaveLength(1);
    expect(standIn.seen.map(({ method, headers }) => [method, headers['content-type']])).toEqual(
      Array(2).fill(['POST', 'application/json; charset=utf-8']),
    );
  });

  it.each<[number, string, Record<string, string>?]>([
    [204, 'sent'],
    [301, 'waiting'],
    [302, 'unknown'],
    [303, 'unknown'],
    [307, 'waiting'],
    [400, 'failed'],
    [403, 'waiting'],
    [404, 'waiting'],
    [410, 'waiting'],
    [413, 'failed'],
    [429, 'waiting'],
    [500, 'unknown'],
    [408, 'unknown'],
    [503, 'unknown'],
    [504, 'unknown'],
    [503, 'waiting', { 'retry-after': '60' }],
  ])('answered %i is %s', async (status, state, headers = {}) => {
    const standIn = await serve((_, response) =>
      response.writeHead(status, { location: '/elsewhere', ...headers }).end('why'),
    );
    const { stored } = await (await setUp())(postTo('teams', standIn.baseUrl));
    expect(stored).toMatchObject([{ state }]);
    expect(standIn.seen).toHaveLength(1);
  });

  it('waits if Teams reports with 200 that it did not post', async () => {
    const words =
      'Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429';
    const standIn = await serve((_, response) => response.end(words));
    const { stored } = await (await setUp())(postTo('teams', standIn.baseUrl));
    expect(stored).toMatchObject([{ state: 'waiting', note: expect.stringContaining(words) as string }]);
  });

  const SWITCH = 'HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n';
  it.each<[string, (socket: Socket) => unknown, string]>([
    ['switches protocols and sends nothing more', (socket) => socket.write(SWITCH), ''],
    [
      'drops the connection after it was sent',
      (socket) => socket.resetAndDestroy(),
      '.*(ECONNRESET|hang up)',
    ],
  ])('is unknown if the server %s', async (_, answer, words) => {
    const server = await serve((_, { socket }) => answer(socket ?? expect.fail()));
    const { stored } = await (await setUp())(postTo('teams', server.baseUrl));
    const note = new RegExp(`^teams at 127\\.0\\.0\\.1:\\d+ did not answer: ${words}`);
    expect(stored).toMatchObject([{ state: 'unknown', note: expect.stringMatching(note) as string }]);
  });

  it('waits if nothing listens', async () => {
    const { stored } = await (await setUp())(postTo('teams', 'http://127.0.0.1:1/'));
    const note = expect.stringContaining('could not be reached: ') as string;
    expect(stored).toMatchObject([{ state: 'waiting', note }]);
  });

  it('never reveals its address or secret, although the channel echoes them', async () => {
    const send = await setUp();
    const parts = ['B0CDEFGHIJKLMNOP', 'abcdefghijklmnop', SECRET];
    const standIn = await serve(({ url }, response) => reply(response, 500, { url: url.href, parts }));
    const url = `${standIn.baseUrl}/services/T0/B0CDEFGHIJKLMNOP?sig=abcdefghijklmnop`;
    const { stored } = await send(postTo('webhook', url));
    expect(stored[0]?.note).toContain('[redacted]');
    for (const secret of parts) expect(JSON.stringify(stored)).not.toContain(secret);
  });
});

describe('a host that does not answer', () => {
  it('costs one wait, however many of its channels and reports are due, and the others count as untried', async () => {
    const { state, worker, here } = await openTestState();
    const sender = new Sender({
      state,
      worker,
      here,
      witness: undefined,
      whyNot: () => Promise.resolve(undefined),
    });
    const parts = partsWith(state, sender);
    const answering = await serve((_, response) => response.end('ok'));
    let arrived: () => void = () => undefined;
    const hasArrived = new Promise<void>((resolve) => (arrived = resolve));
    const silent = await serve(() => {
      arrived();
    });
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const posts = Array.from({ length: 40 }, (_, number) => {
      const post = postTo('slack', number % 2 === 0 ? silent.baseUrl : answering.baseUrl);
      return { ...post, key: { ...post.key, recipient: `docs-${number}` } };
    });
    const delivering = deliver(parts, posts, 'due');
    await hasArrived;
    await vi.advanceTimersByTimeAsync(60_000);
    const sent = await delivering;
    const { host } = new URL(silent.baseUrl);
    expect(silent.seen).toHaveLength(1);
    expect(answering.seen).toHaveLength(20);
    expect(readDeliveries(state)).toHaveLength(21);
    expect(sentOf(sent).error?.message).toBe(
      `Not delivered, or outcome unknown:\n  weekly 2026-W46 to docs-0: unknown, slack at ${host} did not answer: it took too long\n` +
        `${host} did not answer, so nothing else was posted to it, and counts as untried. To try again: readership run\nSee: readership status`,
    );
    const later = await deliver(parts, [postTo('slack', silent.baseUrl, {}, '2026-W47')], 'due');
    expect(later).toEqual({ deliveries: [], pausedBy: undefined, silentHosts: new Set([host]) });
    expect(silent.seen).toHaveLength(1);
  });
});

describe('what is sent', () => {
  const LATER = new Date('2026-11-16T04:00:00Z');

  it('is nothing while that is refused, and what was sent needs no answer', async () => {
    const opened = await openTestState();
    const error = new Error('sent from another place');
    let whyNot = (): Promise<Error | undefined> => Promise.resolve(error);
    const standIn = await serve((_, response) => response.end('ok'));
    const send = await setUp(opened, () => whyNot());
    await expect(send(postTo('slack', standIn.baseUrl))).rejects.toThrow(error);
    expect(readDeliveries(opened.state)).toEqual([]);
    whyNot = () => Promise.resolve(undefined);
    for (let times = 0; times < 2; times++) await send(postTo('slack', standIn.baseUrl));
    expect(standIn.seen).toHaveLength(1);
    whyNot = () => Promise.reject(error);
    expect((await send(postTo('slack', standIn.baseUrl))).attempted).toEqual([]);
  });

  it('is nothing that the witness cannot record, and what waited still waits', async () => {
    const opened = await openTestState();
    // It cannot be written in a directory that is gone.
    const witness = join(await tempDir(), 'gone', 'witness');
    const { state, worker, here } = opened;
    const standIn = await serve((_, response, count) => {
      if (count === 1) response.writeHead(429);
      response.end('ok');
    });
    const send = await setUp(opened);
    const first = await send(postTo('slack', standIn.baseUrl));
    expect(first.stored).toMatchObject([{ state: 'waiting', attempts: 1 }]);
    const sender = new Sender({ state, worker, here, witness, whyNot: () => Promise.resolve(undefined) });
    const parts = partsWith(state, sender, LATER);
    const posts = ['2026-W46', '2026-W47'].map((period) => postTo('slack', standIn.baseUrl, {}, period));
    await expect(deliver(parts, posts, 'unsettled')).rejects.toThrow(
      'must be written before anything is sent',
    );
    expect(standIn.seen).toHaveLength(1);
    expect(readDeliveries(state)).toEqual(first.stored);
  });

  it('is nothing after an interruption, not even what was being prepared', async () => {
    const { state, worker, here } = await openTestState();
    const interruption = new AbortController();
    const standIn = await serve((_, response) => response.end('ok'));
    const whyNot = () => {
      interruption.abort();
      return Promise.resolve(undefined);
    };
    const sender = new Sender({ state, worker, here, witness: undefined, whyNot });
    const parts = partsWith(state, sender, NOW, interruption);
    expect((await deliver(parts, [postTo('slack', standIn.baseUrl)], 'due')).deliveries).toEqual([]);
    expect(standIn.seen).toEqual([]);
    expect(readDeliveries(state)).toEqual([]);
  });

  it('stays of unknown outcome until a person settles it, and is sent again if it did not arrive, even after the last attempt', async () => {
    const opened = await openTestState();
    const { state } = opened;
    const standIn = await serve((_, response, count) =>
      count === 1 ? response.destroy() : response.end('ok'),
    );
    const send = await setUp(opened);
    const post = postTo('webhook', standIn.baseUrl);
    const [unknown = expect.fail()] = (await send(post)).stored;
    expect(unknown.state).toBe('unknown');
    expect((await send(post)).attempted).toEqual([]);
    const missing = resolved({ ...unknown, attempts: 8 }, 'not delivered', NOW);
    expect(missing).toMatchObject({ state: 'waiting', attempts: 0, next_attempt_at: null });
    const arrived = resolved(unknown, 'delivered', LATER);
    expect(arrived).toMatchObject({ state: 'sent', settled_at: LATER, attempts: 1 });
    await state.transaction(() => storeDelivery(state, arrived));
    expect((await send(post)).attempted).toEqual([]);
    await state.transaction(() => storeDelivery(state, missing));
    expect((await send(post)).attempted).toMatchObject([{ state: 'sent', attempts: 1 }]);
    expect(standIn.seen).toHaveLength(2);
    const alike = { ...missing, project: 'other' };
    const failed = new DeliveryError({
      deliveries: [missing, alike, { ...missing, state: 'failed', note: null }],
      ...ALL_ANSWER,
    });
    expect(failed).toMatchObject({ exitCode: 1 });
    expect(failed.message).toBe(
      'Not delivered, or outcome unknown:\n' +
        '  weekly 2026-W46 to docs-channel: waiting, not delivered, confirmed by a person\n' +
        '  weekly 2026-W46 to docs-channel: failed, no reason given\nSee: readership status',
    );
    expect(sentOf({ deliveries: [missing, arrived], ...ALL_ANSWER }).words).toBe('1 report sent, 1 not');
    const later = new DeliveryError({ deliveries: [missing], ...ALL_ANSWER });
    expect(later).toMatchObject({ exitCode: 75 });
    expect(later.message).toMatch(/^Not sent:\n {2}weekly 2026-W46 to docs-channel: not deliv/);
  });
});

describe('what a channel gets', () => {
  it('is escaped for Slack, so that no path can mention a channel or forge a link', () => {
    const link = '<https://reports.example.com/prj_1/weekly-2026-W46.html|Open the report>';
    const path = '/a_b/&lt;!channel&gt;&amp;[x](https://evil.example): 20 human';
    expect(JSON.parse(postTo('slack', 'https://hooks.example.com/x').body)).toMatchObject({
      text: 'Acme Docs, Nov 9 – 15, 2026: people &amp; AI &lt;read&gt;',
      blocks: [
        { type: 'header', text: { type: 'plain_text' } },
        { text: { type: 'mrkdwn', verbatim: true, text: expect.stringContaining(path) as string } },
        { text: { text: link } },
      ],
    });
  });

  it('stays within the limits of Slack, no matter how long it is, with a heading that was cut below it', () => {
    const chat = '&'.repeat(5_000);
    const { blocks } = JSON.parse(
      postTo('slack', 'https://hooks.example.com/x', { chat, subject: '𝄞'.repeat(300) }).body,
    ) as { blocks: { text: { text: string } }[] };
    expect(blocks[0]?.text.text.length).toBeLessThanOrEqual(150);
    expect(blocks[0]?.text.text).toMatch(/^𝄞+…$/u);
    expect(blocks[1]?.text.text.length).toBeLessThanOrEqual(3_000);
    expect(blocks[1]?.text.text).toMatch(/^𝄞{300}\n\nMore: <https:[^|]+\|Open the report>$/u);
  });

  it('has links where the text has them, never cut in the middle, and none for a program', () => {
    const href = 'https://readers.example.com/page?project=prj_1&path=/a|b';
    const chat = `▲ ${chatLink(href, '/a<b')}: 20 human`;
    const { blocks } = JSON.parse(postTo('slack', 'https://hooks.example.com/x', { chat }).body) as {
      blocks: { text: { text: string } }[];
    };
    const written = `<${href.replace('&', '&amp;').replace('|', '%7C')}|/a&lt;b>`;
    expect(blocks[1]?.text.text).toBe(`▲ ${written}: 20 human`);
    const teams = postTo('teams', 'https://teams.example.com/x', { chat }).body;
    expect(teams).toContain(
      JSON.stringify({ type: 'TextRun', text: '/a<b', selectAction: { type: 'Action.OpenUrl', url: href } }),
    );
    const { data } = JSON.parse(postTo('webhook', 'https://hooks.example.com/x', { chat }).body) as {
      data: { text: string };
    };
    expect(data.text).toBe('▲ /a<b: 20 human');
    // However long it is, and wherever it is cut.
    for (const before of Array.from({ length: 120 }, (_, index) => 2_700 + index)) {
      const long = `${'x'.repeat(before)}${chatLink(href, '/a<b')} and more`.padEnd(4_000, '.');
      const { blocks } = JSON.parse(postTo('slack', 'https://hooks.example.com/x', { chat: long }).body) as {
        blocks: { text: { text: string } }[];
      };
      const text = blocks[1]?.text.text ?? '';
      expect(text.length).toBeLessThanOrEqual(3_000);
      expect(text).toMatch(/^x+(?:\/a?(?:&lt;b?)?)?[ a-z.]*…\n\nMore: <https:[^|]+\|Open the report>$/);
      expect(postTo('teams', 'https://teams.example.com/x', { chat: long }).body).not.toMatch(
        /\\u00(02|03|1f)/,
      );
    }
  });

  it('is an Adaptive Card of plain runs for Teams, with a button', () => {
    const { type, attachments } = JSON.parse(postTo('teams', 'https://teams.example.com/x').body) as {
      type: string;
      attachments: { contentType: string; content: { body: { type: string }[]; actions: object[] } }[];
    };
    expect(type).toBe('message');
    const [{ contentType, content } = expect.fail()] = attachments;
    expect(contentType).toBe('application/vnd.microsoft.card.adaptive');
    expect(new Set(content.body.map((block) => block.type))).toEqual(new Set(['RichTextBlock']));
    expect(JSON.stringify(content.body)).toContain('/a_b/<!channel>&[x](https://evil.example): 20 human');
    expect(content.actions).toMatchObject([
      { type: 'Action.OpenUrl', url: expect.stringMatching(/^https:/) as string },
    ]);
  });

  it('is signed JSON for a webhook, which passes the verification in docs/reports.md; a forged one does not', async () => {
    const standIn = await serve((_, response) => response.writeHead(204).end());
    const send = await setUp();
    await send(postTo('webhook', standIn.baseUrl));
    const { headers, body } = standIn.seen[0] ?? expect.fail();
    expect(headers['webhook-id']).toMatch(/^msg_[0-9a-f]{32}$/);
    expect(headers['webhook-timestamp']).toBe(String(NOW.getTime() / 1_000));
    expect(JSON.parse(body)).toMatchObject({
      type: 'report',
      timestamp: NOW.toISOString(),
      data: { report: 'weekly', project: 'prj_1', period: '2026-W46', content: { human: { views: 1620 } } },
    });
    const docs = await readFile(new URL('../../docs/reports.md', import.meta.url), 'utf8');
    const [, code = ''] = /```js\n([^]+?)```/.exec(docs) ?? [];
    const file = join(await tempDir(), 'verify.mjs');
    const read = `const [headers, body, at] = JSON.parse(process.argv[2]); Date.now = () => at;`;
    await writeFile(file, `${code}\n${read}\nprocess.stdout.write(String(isGenuine(headers, body)));\n`);
    const verdict = async (...given: unknown[]) => {
      const env = { ...process.env, READERSHIP_WEBHOOK_SECRET_PIPELINE: SECRET };
      const { stdout } = await run(process.execPath, [file, JSON.stringify(given)], { env });
      return stdout;
    };
    const at = NOW.getTime();
    const all = [
      verdict(headers, body, at + 60_000),
      verdict(headers, `${body} `, at),
      verdict({ ...headers, 'webhook-id': 'msg_1' }, body, at),
      verdict(headers, body, at + 600_000),
    ];
    expect(await Promise.all(all)).toEqual(['true', 'false', 'false', 'false']);
  });

  it('leaves out data that is too large for the receiver, and says where it is', () => {
    const { body } = postTo('webhook', 'https://example.com/x', { data: { rows: 'x'.repeat(600_000) } });
    expect(body.length).toBeLessThan(2_000);
    expect(JSON.parse(body)).toMatchObject({
      data: { content: null, contentLeftOut: expect.stringContaining('--format json') as string },
    });
  });
});

describe('a channel', () => {
  it.each([
    [{}, /^URL is not set/],
    [{ URL: 'hooks.example.com' }, /^URL is not an address that begins with https:/],
    [{ URL: 'http://hooks.example.com/x' }, /^URL is not an address that begins with https:/],
    [{ URL: 'https://example.com/x' }, /^SECRET is not set: set it to whsec_/],
    [{ URL: 'https://example.com/x', SECRET: 'hunter2hunter2' }, /^SECRET is not a valid secret/],
  ])('with %j has a problem that says what to do without repeating a value', (environment, problem) => {
    const channel = openChannel({ kind: 'webhook', urlEnv: 'URL', secretEnv: 'SECRET' }, environment);
    if (!('problem' in channel)) throw new Error('it has no problem');
    expect(channel.problem).toMatch(problem);
    for (const value of Object.values(environment)) expect(channel.problem).not.toContain(value);
  });

  it('with a problem gets nothing until it is fixed', async () => {
    const send = await setUp();
    const standIn = await serve((_, response) => response.end('ok'));
    const channel = openChannel({ kind: 'slack', urlEnv: 'URL' }, {});
    const { stored } = await send({ ...postTo('slack', standIn.baseUrl), channel });
    const note = expect.stringContaining('URL is not set') as string;
    expect(stored).toMatchObject([{ state: 'waiting', note }]);
    expect(standIn.seen).toEqual([]);
  });
});
