import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { deliver } from '../../src/mail/deliver.js';
import type { DeliveryAdmission } from '../../src/mail/delivery.js';
import { type MailTransport, outboxTransport, smtpTransport } from '../../src/mail/transport.js';
import { type Delivery, readDeliveries } from '../../src/state/emails.js';
import { letter } from './letters.js';
import { type Behavior, startMailServer } from './mail-server.js';
import { type MailSite, mailSite } from './site.js';

/** Long enough for any machine. */
const TIMEOUTS = { connectMs: 60_000, greetingMs: 60_000, silenceMs: 60_000, totalMs: 200_000 };
/** For a server that does not reply. */
const IMPATIENT = { ...TIMEOUTS, greetingMs: 800, silenceMs: 1_000 };
const MONDAY = new Date('2026-11-16T03:00:00Z');
const hoursLater = (hours: number) => new Date(MONDAY.getTime() + hours * 3_600_000);

let test: MailSite;

beforeEach(async () => {
  test = await mailSite();
});

interface Given {
  readonly transport?: MailTransport;
  readonly admission?: DeliveryAdmission;
  readonly signal?: AbortSignal;
}

async function deliverTo(recipients: readonly string[], given: Given = {}, now = MONDAY) {
  const { state, sender, server } = test;
  const { admission = 'due', signal = new AbortController().signal } = given;
  const transport = () => given.transport ?? smtpTransport(`smtp://127.0.0.1:${server.port}`, TIMEOUTS);
  const outgoing = { transport, silentHosts: new Set<string>() };
  const parts = { state, sender, outgoing, session: { now: () => now, signal } };
  return deliver(parts, await Promise.all(recipients.map((recipient) => letter(recipient))), admission);
}

const send = async (...given: Parameters<typeof deliverTo>) => (await deliverTo(...given)).deliveries;

const impatient = (port: number) => smtpTransport(`smtp://127.0.0.1:${port}`, IMPATIENT);
const take = (recipient: string, ...behaviors: Behavior[]) => test.server.behaviors.set(recipient, behaviors);
const received = (recipient: string): number => test.server.accepted.get(recipient)?.length ?? 0;

describe('an email handed to a mail server', () => {
  it('arrives unchanged, and is never sent again automatically', async () => {
    const [delivery] = await send(['docs@example.com']);
    expect(delivery).toMatchObject({ state: 'sent', via: 'smtp', attempts: 1, note: '250 queued' });
    expect(await send(['docs@example.com'], {}, hoursLater(1000))).toEqual([]);
    expect(await send(['docs@example.com'], { admission: 'unsettled' })).toEqual([]);
    const { bytes } = await letter('docs@example.com');
    const [arrived, ...others] = test.server.accepted.get('docs@example.com') ?? [];
    expect(others).toEqual([]);
    expect(arrived?.toString().trimEnd()).toBe(bytes.toString().trimEnd());
  });

  const WHILE_SENDING = /while sending the email/;

  it.each<[string, Behavior, Delivery['state'], RegExp, number]>([
    ['refused permanently at RCPT', { on: 'rcpt', do: 550 }, 'failed', /said: 550 says 550/, 0],
    ['refused temporarily at RCPT, as by a greylist', { on: 'rcpt', do: 451 }, 'waiting', /said: 451/, 0],
    ['refused at RCPT because the server is shutting down', { on: 'rcpt', do: 421 }, 'waiting', /421/, 0],
    ['cut off at RCPT', { on: 'rcpt', do: 'drop' }, 'waiting', /naming the recipient/, 0],
    ['not answered at RCPT', { on: 'rcpt', do: 'silence' }, 'waiting', /did not reply within 1 s/, 0],
    ['refused permanently after DATA', { on: 'data', do: 554 }, 'failed', /said: 554/, 0],
    ['refused temporarily after DATA', { on: 'data', do: 451 }, 'waiting', /said: 451/, 0],
    ['cut off after DATA, and lost', { on: 'data', do: 'drop-lost' }, 'unknown', WHILE_SENDING, 0],
    ['cut off after DATA, but accepted', { on: 'data', do: 'drop-accepted' }, 'unknown', WHILE_SENDING, 1],
    ['not answered after DATA, but accepted', { on: 'data', do: 'silence' }, 'unknown', /did not reply/, 1],
    ['refused after DATA because the server is shutting down', { on: 'data', do: 421 }, 'unknown', /421/, 0],
    ['answered slowly', { on: 'data', do: 'delay', ms: 200 }, 'sent', /250 queued/, 1],
  ])('that is %s', async (_, behavior, state, words, copies) => {
    take('docs@example.com', behavior);
    const given = behavior.do === 'silence' ? { transport: impatient(test.server.port) } : {};
    const [delivery] = await send(['docs@example.com'], given);
    expect(delivery?.state).toBe(state);
    expect(delivery?.note).toMatch(words);
    expect(received('docs@example.com')).toBe(copies);
    expect(readDeliveries(test.state)).toEqual([delivery]);
  });

  it('arrives even if those to others do not', async () => {
    take('b@example.com', { on: 'rcpt', do: 550 });
    take('c@example.com', { on: 'rcpt', do: 'drop' });
    take('d@example.com', { on: 'data', do: 'drop-lost' });
    const deliveries = await send(['b@example.com', 'c@example.com', 'd@example.com', 'e@example.com']);
    expect(deliveries.map(({ state }) => state)).toEqual(['failed', 'waiting', 'unknown', 'sent']);
    expect(received('e@example.com')).toBe(1);
  });

  it('waits if the server cannot be reached, has an untrusted certificate, or requires a login', async () => {
    const gone = await startMailServer();
    await gone.close();
    const impostor = await startMailServer({ secure: true });
    // That a password logs in, and appears nowhere else, is in test/secrets.
    const guarded = await startMailServer({ authOptional: false, allowInsecureAuth: true });
    for (const [url, why] of [
      [`smtp://127.0.0.1:${gone.port}`, /can't connect to the mail server .*ECONNREFUSED/],
      [
        `smtps://user:long-password@127.0.0.1:${impostor.port}`,
        /can't connect to the mail server .*certificate/,
      ],
      [`smtp://127.0.0.1:${guarded.port}`, /530/],
    ] as const) {
      const transport = smtpTransport(url, TIMEOUTS);
      const { deliveries, pausedBy } = await deliverTo(['a@example.com', 'b@example.com'], { transport });
      expect(pausedBy).toMatch(why);
      expect(deliveries).toEqual([]);
      expect(readDeliveries(test.state)).toEqual([]);
    }
  });
});

describe('where an email is sent from', () => {
  it('the greeting has the domain of the sender, as a container has no name that strict relays accept', async () => {
    const greetings: string[] = [];
    const strict = await startMailServer({
      onMailFrom: (_, { hostNameAppearsAs }, done) => {
        greetings.push(hostNameAppearsAs);
        done();
      },
    });
    const transport = smtpTransport(`smtp://127.0.0.1:${strict.port}`, TIMEOUTS);
    expect(await send(['a@example.com'], { transport })).toMatchObject([{ state: 'sent' }]);
    expect(greetings).toEqual(['example.com']);
  });

  it('a relay on this machine may have any certificate, but not one that gets a password', async () => {
    const relay = await startMailServer({ disabledCommands: [] });
    const open = smtpTransport(`smtp://127.0.0.1:${relay.port}`, TIMEOUTS);
    expect(await send(['a@example.com'], { transport: open })).toMatchObject([{ state: 'sent' }]);
    const login = smtpTransport(`smtp://user:long-password@127.0.0.1:${relay.port}`, TIMEOUTS);
    const { pausedBy } = await deliverTo(['b@example.com'], { transport: login });
    expect(pausedBy).toMatch(/certificate has expired: it must be renewed/);
  });

  it('TLS on the wrong port is explained by the address to write', async () => {
    const plain = await deliverTo(['a@example.com'], {
      transport: smtpTransport(`smtps://127.0.0.1:${test.server.port}`, TIMEOUTS),
    });
    expect(plain.pausedBy).toMatch(/write smtp:\/\/ instead of smtps:\/\//);
    const secure = await startMailServer({ secure: true });
    const silent = await deliverTo(['b@example.com'], { transport: impatient(secure.port) });
    expect(silent.pausedBy).toMatch(
      /no greeting within 1 s. If it expects TLS from the start.* write smtps:\/\//,
    );
  });

  it('after a server stopped answering, the other emails wait untouched for the next attempt', async () => {
    const recipients = Array.from({ length: 20 }, (_, index) => `person-${index}@example.com`);
    take(recipients[0] ?? '', { on: 'data', do: 'silence' });
    const deliveries = await send(recipients, { transport: impatient(test.server.port) });
    expect(deliveries).toMatchObject([{ recipient: recipients[0], state: 'unknown' }]);
    expect(readDeliveries(test.state)).toHaveLength(1);
    expect(await send(recipients)).toHaveLength(19);
    expect(recipients.map(received)).toEqual(Array(20).fill(1));
  });
});

describe('without a mail server', () => {
  it('an email is put into the outbox, complete, once', async () => {
    const outbox = join(test.directory, 'outbox');
    const transport = outboxTransport(outbox);
    const [delivery] = await send(['docs@example.com'], { transport });
    expect(delivery).toMatchObject({ state: 'written', via: 'outbox' });
    expect(await readFile(delivery?.note ?? '')).toEqual((await letter('docs@example.com')).bytes);
    expect(await send(['docs@example.com'], { transport })).toEqual([]);
    expect(await readdir(outbox)).toEqual([
      expect.stringMatching(/^weekly-2026-W46-docs@example\.com-[0-9a-f]{16}\.eml$/),
    ]);
  });

  it('no two emails share a file, and none is written outside the outbox, for any names of recipients', async () => {
    const outbox = join(test.directory, 'outbox');
    const long = `${'l'.repeat(200)}@example.com`;
    const recipients = ['a/b@example.com', 'a_b@example.com', '../../x@example.com', long];
    const deliveries = await send(recipients, { transport: outboxTransport(outbox) });
    expect(deliveries.map(({ state }) => state)).toEqual(['written', 'written', 'written', 'written']);
    expect(new Set(await readdir(outbox)).size).toBe(4);
  });

  it('an email that cannot be written waits', async () => {
    const transport = outboxTransport(join(test.directory, 'state.db', 'outbox'));
    expect(await send(['docs@example.com'], { transport })).toMatchObject([{ state: 'waiting' }]);
  });
});

it('an interruption starts no email, and finishes the one in progress', async () => {
  take('a@example.com', { on: 'data', do: 'delay', ms: 150 });
  const interruption = new AbortController();
  test.server.onEvent = (event) => {
    if (event === 'data') interruption.abort();
  };
  const { signal } = interruption;
  expect(await send(['a@example.com'], { signal })).toMatchObject([{ state: 'sent' }]);
  expect(await send(['b@example.com'], { signal })).toEqual([]);
  expect(readDeliveries(test.state)).toHaveLength(1);
});
