import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { deliver } from '../../src/mail/deliver.js';
import { sentOf } from '../../src/mail/delivery.js';
import { DEFAULT_TIMEOUTS } from '../../src/mail/smtp.js';
import { classify, outboxTransport, smtpTransport } from '../../src/mail/transport.js';
import { readDeliveries } from '../../src/state/emails.js';
import { letter } from './letters.js';
import { startMailServer } from './mail-server.js';
import { type MailSite, mailSite } from './site.js';

const MONDAY = new Date('2026-11-16T03:00:00Z');
const RECIPIENTS = Array.from({ length: 40 }, (_, index) => `person-${index}@example.com`);

let test: MailSite;

beforeEach(async () => {
  test = await mailSite();
});

/** What one run sends through the server on this port, or without one to files. */
async function sendTo(
  port: number | undefined,
  recipients: readonly string[],
  now = MONDAY,
  admission: 'due' | 'force' = 'due',
) {
  const { state, sender, directory } = test;
  const transport =
    port === undefined ? outboxTransport(`${directory}/outbox`) : smtpTransport(`smtp://127.0.0.1:${port}`);
  const { signal } = new AbortController();
  const parts = {
    state,
    sender,
    outgoing: { transport: () => transport, silentHosts: new Set<string>() },
    session: { now: () => now, signal },
  };
  return deliver(parts, await Promise.all(recipients.map((recipient) => letter(recipient))), admission);
}

const refusal = (responseCode: number, words: string) => Object.assign(new Error(words), { responseCode });

/** A relay that takes three emails an hour, and refuses others at this stage of the conversation. */
async function slowRelay(at: 'onConnect' | 'onMailFrom' | 'onRcptTo', responseCode: number) {
  const hour = { taken: 0, refused: 0 };
  const server = await startMailServer({
    [at]: (...given: unknown[]) => {
      const done = given.at(-1) as (error?: Error) => void;
      const isTaken = hour.taken < 3;
      if (!isTaken) hour.refused += 1;
      done(isTaken ? undefined : refusal(responseCode, 'Too much mail, try again later'));
    },
  });
  server.onEvent = (event) => {
    if (event === 'accepted') hour.taken += 1;
  };
  return { server, hour };
}

describe('a mail server that takes no more for now', () => {
  it.each([
    ['onConnect', 421, 40],
    ['onConnect', 450, 10],
    ['onMailFrom', 421, 10],
    ['onMailFrom', 450, 40],
    ['onMailFrom', 552, 10],
  ] as const)(
    'refusing %s with %d, takes all %d in the end, and no attempt counts',
    async (at, code, many) => {
      const recipients = RECIPIENTS.slice(0, many);
      const { server, hour } = await slowRelay(at, code);
      for (let runs = 0; server.accepted.size < many; runs++) {
        expect(runs).toBeLessThan(20);
        Object.assign(hour, { taken: 0, refused: 0 });
        const now = new Date(MONDAY.getTime() + runs * 3_600_000);
        const sent = await sendTo(server.port, recipients, now);
        // Four are under way at once, and then one.
        expect(hour.refused).toBeLessThanOrEqual(5);
        expect(sent.deliveries.every(({ state }) => state === 'sent')).toBe(true);
        const { error } = sentOf(sent);
        if (server.accepted.size === many) break;
        expect(error).toMatchObject({ exitCode: 75 });
        expect(error?.message.match(/Too much mail/g)).toHaveLength(1);
      }
      expect(readDeliveries(test.state).map(({ state, attempts }) => `${state} ${attempts}`)).toEqual(
        recipients.map(() => 'sent 1'),
      );
      for (const copies of server.accepted.values()) expect(copies).toHaveLength(1);
    },
  );

  it.each([421, 450])('takes all in the end, refusing recipients with %d', async (code) => {
    const { server, hour } = await slowRelay('onRcptTo', code);
    for (let hours = 0; server.accepted.size < RECIPIENTS.length; hours++) {
      expect(hours).toBeLessThan(80);
      Object.assign(hour, { taken: 0, refused: 0 });
      await sendTo(server.port, RECIPIENTS, new Date(MONDAY.getTime() + hours * 3_600_000));
      if (code === 421) expect(hour.refused).toBeLessThanOrEqual(5);
    }
    for (const copies of server.accepted.values()) expect(copies).toHaveLength(1);
  });

  it('because others are under way takes all of them in one run, one after another', async () => {
    const { port, accepted } = await startMailServer({ maxClients: 1 });
    const sent = await sendTo(port, RECIPIENTS, MONDAY, 'force');
    expect(sentOf(sent).error).toBeUndefined();
    expect([...accepted.keys()].sort()).toEqual([...RECIPIENTS].sort());
    for (const copies of accepted.values()) expect(copies).toHaveLength(1);
    expect(
      readDeliveries(test.state).every(({ state, attempts }) => state === 'sent' && attempts === 1),
    ).toBe(true);
  });

  it('keeps nobody else waiting when it refuses one recipient for now', async () => {
    for (const code of [450, 451, 452]) {
      const one = `full-${code}@example.com`;
      test.server.behaviors.set(one, [{ on: 'rcpt', do: code }]);
      const others = ['a', 'b', 'c'].map((name) => `${name}-${code}@example.com`);
      const { deliveries, pausedBy } = await sendTo(test.server.port, [one, ...others]);
      expect(pausedBy).toBeUndefined();
      expect(deliveries.map(({ state, attempts }) => `${state} ${attempts}`)).toEqual([
        'waiting 1',
        'sent 1',
        'sent 1',
        'sent 1',
      ]);
    }
  });

  it('sends no others after it refused the text, which all of them have', async () => {
    test.server.behaviors.set('a@example.com', [{ on: 'data', do: 454 }]);
    const { deliveries, pausedBy } = await sendTo(test.server.port, ['a@example.com', 'b@example.com']);
    expect(pausedBy).toMatch(/while sending the email, said: 454/);
    expect(deliveries).toMatchObject([{ recipient: 'a@example.com', state: 'waiting' }]);
  });

  it('leaves what is in the outbox as it was', async () => {
    await sendTo(undefined, ['docs@example.com']);
    const before = readDeliveries(test.state);
    expect(before).toMatchObject([{ state: 'written', attempts: 1 }]);
    const { server, hour } = await slowRelay('onMailFrom', 450);
    hour.taken = 3;
    expect((await sendTo(server.port, ['docs@example.com'])).deliveries).toEqual([]);
    expect(readDeliveries(test.state)).toEqual(before);
    hour.taken = 0;
    expect(await sendTo(server.port, ['docs@example.com'])).toMatchObject({
      deliveries: [{ state: 'sent' }],
    });
  });
});

describe('a mail server', () => {
  it('that refuses the sender or the login refuses it once, and nobody is given up', async () => {
    const strict = await startMailServer({
      onMailFrom: (_, __, done) => {
        done(refusal(553, 'not your address'));
      },
    });
    const sent = await sendTo(strict.port, RECIPIENTS);
    expect(sent).toMatchObject({
      deliveries: [],
      pausedBy: expect.stringMatching(/sender, said: 553/) as string,
    });
    expect(sentOf(sent).error?.message).toBe(
      `The mail server is not accepting emails: 127.0.0.1:${strict.port}, while naming the sender, said: 553 not your address\n` +
        'Emails to the recipients in readership.yaml will be tried again, and this does not count as an attempt. To try now: readership run\nSee: readership status',
    );
    expect(readDeliveries(test.state)).toEqual([]);
  });

  it('that hangs up after it said why is quoted, and nobody is given up', async () => {
    // With PIPELINING, the commands after the refused one are already under way.
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.write('220 relay\r\n');
      socket.on('data', (data) => {
        if (data.toString().startsWith('EHLO')) socket.write('250-relay\r\n250 PIPELINING\r\n');
        else socket.end('421-4.7.0 Too much mail\r\n421 4.7.0 Closing\r\n');
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void server.close());
    const { deliveries, pausedBy } = await sendTo((server.address() as AddressInfo).port, RECIPIENTS);
    expect(pausedBy).toMatch(/said: 421-4.7.0 Too much mail/);
    expect(deliveries).toEqual([]);
    expect(readDeliveries(test.state)).toEqual([]);
  });

  it('gets an address with more than ASCII before the @ only if it can read it', async () => {
    const plain = await startMailServer({ hideSMTPUTF8: true });
    const to = ['jörg@example.com', 'docs@example.com'];
    const { deliveries } = await sendTo(plain.port, to);
    expect(deliveries).toMatchObject([
      {
        state: 'failed',
        note: `127.0.0.1:${plain.port}, while naming the recipient: it accepts only ASCII before the @ of an address (no SMTPUTF8), so not jörg@example.com. Use another address`,
      },
      { state: 'sent' },
    ]);
    const able = await startMailServer({ hideSMTPUTF8: false });
    expect(await sendTo(able.port, ['jürgen@example.com'])).toMatchObject({
      deliveries: [{ state: 'sent' }],
    });
    expect([...able.accepted.keys()]).toEqual(['jürgen@example.com']);
  });

  it('may take as long as the standard lets it, to greet and to accept an email', () => {
    expect(DEFAULT_TIMEOUTS).toMatchObject({ greetingMs: 5 * 60_000, silenceMs: 10 * 60_000 });
    const { greetingMs, silenceMs, totalMs } = DEFAULT_TIMEOUTS;
    expect(totalMs).toBeGreaterThan(greetingMs + silenceMs);
  });
});

const CODES = [undefined, 0, 200, 250, 354, 421, 450, 451, 530, 535, 550, 554, 600];

// What each reply means at that stage of the conversation; all others, or none, mean the last.
it.each([
  ['connect', {}, 'not-now'],
  ['login', {}, 'not-now'],
  ['sender', {}, 'not-now'],
  ['recipient', { 530: 'not-now', 535: 'refused', 550: 'refused', 554: 'refused' }, 'not-sent'],
  [
    'message',
    { 450: 'not-sent', 451: 'not-sent', 530: 'refused', 535: 'refused', 550: 'refused', 554: 'refused' },
    'unknown',
  ],
] as const)('a conversation that ended at %s means %j, and otherwise %s', (stage, meanings, otherwise) => {
  for (const code of CODES)
    expect(classify(stage, code), `${code}`).toBe(
      new Map(Object.entries(meanings)).get(`${code}`) ?? otherwise,
    );
});
