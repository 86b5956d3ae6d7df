import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pMap from 'p-map';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Delivery } from '../../src/mail/delivery.js';
import { deliver, readDeliveries, reconcileDeliveries } from '../../src/mail/ledger.js';
import { smtpTransport } from '../../src/mail/transport.js';
import { EffectsJournal } from '../../src/effects/journal.js';
import { openWarehouse } from '../../src/warehouse/open.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { compiled } from '../compiled.js';
import { letter } from './letters.js';
import { type Behavior, type MailServer, type ServerEvent, startMailServer } from './mail-server.js';

/** Each kills a process at a moment chosen by its seed. */
const RUNS = Number(process.env['CRASH_RUNS'] ?? 12);
const AT_ONCE = 3;

let server: MailServer;
let directory: string;
let program: string;
/** A database without deliveries, to start with. */
let empty: string;
/** How long a process takes if it is not killed. */
let lifetimeMs: number;
/** How the server behaves toward the run that a recipient belongs to. */
const listeners = new Map<string, (event: ServerEvent) => void>();

beforeAll(async () => {
  server = await startMailServer();
  server.onEvent = (event, recipient) => listeners.get(recipient)?.(event);
  directory = await mkdtemp(join(tmpdir(), 'readership-crash-'));
  program = await compiled(new URL('./delivering-process.ts', import.meta.url), directory);
  empty = join(directory, 'empty.duckdb');
  await (await open(empty)).close();
  const began = performance.now();
  const child = start(join(directory, 'unharmed.duckdb'), ['unharmed@example.com']);
  await once(child, 'exit');
  expect(child.exitCode).toBe(0);
  lifetimeMs = performance.now() - began;
});

afterAll(async () => {
  await server.close();
  await rm(directory, { recursive: true });
});

it(
  `nobody gets the same report twice, no matter when ${RUNS} processes are killed`,
  async () => {
    const seeds = Array.from({ length: RUNS }, (_, seed) => seed);
    const outcomes = await pMap(seeds, crashAndRecover, { concurrency: AT_ONCE });
    const killed = outcomes.filter((outcome) => outcome.wasKilled).length;
    const found = outcomes.flatMap((outcome) => outcome.deliveries);
    const count = (state: Delivery['state']) => found.filter((delivery) => delivery.state === state).length;
    if (process.env['CRASH_RUNS'] !== undefined)
      process.stderr.write(
        `${killed} of ${RUNS} killed; of ${found.length} mails ${count('sent')} sent, ${count('failed')} refused, ` +
          `${count('unknown')} unknown, of which ${outcomes.reduce((sum, { unknownYetTaken }) => sum + unknownYetTaken, 0)} had arrived\n`,
      );
    // The seeds are useful only if they hit: most processes die before they end, some while sending an email.
    expect(killed).toBeGreaterThan(RUNS / 2);
    expect(count('unknown')).toBeGreaterThan(0);
  },
  RUNS * 3_000,
);

/** Kills a process, continues an hour and two days later, and checks the outcome of every email. */
async function crashAndRecover(seed: number) {
  const random = randomOf(seed);
  const recipients = ['a', 'b', 'c'].map((name) => `${name}-${seed}@example.com`);
  for (const recipient of recipients) server.behaviors.set(recipient, behaviorsOf(random));
  const file = join(directory, String(seed), 'warehouse.duckdb');
  await mkdir(dirname(file));
  await copyFile(empty, file);
  const wasKilled = await runAndKill(file, recipients, random);

  const warehouse = await open(file);
  const journal = await EffectsJournal.open(dirname(file));
  const goOn = async (now: Date): Promise<Delivery[]> => {
    await reconcileDeliveries({ warehouse, journal }, now);
    const transport = smtpTransport(`smtp://127.0.0.1:${server.port}`);
    const { signal } = new AbortController();
    const task = { warehouse, journal, transport, admission: 'due' as const, now: () => now, signal };
    await deliver(task, await Promise.all(recipients.map((recipient) => letter(recipient))));
    return readDeliveries(warehouse);
  };
  const settled = await goOn(new Date('2026-11-16T04:00:00Z'));
  const deliveries = await goOn(new Date('2026-11-18T04:00:00Z'));
  await journal.close();
  await warehouse.close();

  const copies = (recipient: string) => server.accepted.get(recipient)?.length ?? 0;
  for (const recipient of recipients)
    expect(copies(recipient), `seed ${seed}, ${recipient}`).toBeLessThanOrEqual(1);
  expect(deliveries.map(({ recipient }) => recipient)).toEqual(recipients);
  for (const { state, recipient } of deliveries) {
    expect(['sent', 'unknown', 'failed'], `seed ${seed}, ${recipient}`).toContain(state);
    if (state === 'sent') expect(copies(recipient), `seed ${seed}, ${recipient}`).toBe(1);
    if (state === 'failed') expect(copies(recipient), `seed ${seed}, ${recipient}`).toBe(0);
  }
  // An unknown outcome stays unknown, and the email is never tried again.
  const unknown = (all: readonly Delivery[]) => all.filter(({ state }) => state === 'unknown');
  expect(unknown(deliveries)).toEqual(expect.arrayContaining(unknown(settled)));
  const unknownYetTaken = unknown(deliveries).filter(({ recipient }) => copies(recipient) === 1).length;
  return { wasKilled, deliveries, unknownYetTaken };
}

/** Whether the process was killed before it ended on its own. */
async function runAndKill(file: string, recipients: readonly string[], random: () => number) {
  const child = start(file, recipients);
  const ended = once(child, 'exit');
  const kill = () => child.kill('SIGKILL');
  if (random() < 0.4) setTimeout(kill, random() * 1.2 * lifetimeMs);
  else {
    const events = ['rcpt', 'data', 'accepted'] as const;
    const event = events[Math.floor(random() * events.length)];
    const victim = recipients[Math.floor(random() * recipients.length)] ?? '';
    const delayMs = random() * 15;
    listeners.set(victim, (seen) => {
      if (seen === event) setTimeout(kill, delayMs);
    });
  }
  await ended;
  for (const recipient of recipients) listeners.delete(recipient);
  return child.signalCode === 'SIGKILL';
}

const start = (file: string, recipients: readonly string[]): ChildProcess =>
  spawn(process.execPath, [program, file, `smtp://127.0.0.1:${server.port}`, ...recipients], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });

const open = (file: string): Promise<Warehouse> =>
  openWarehouse(file, { command: 'test', now: () => new Date(), maxWaitMs: 5_000 });

/** Most emails are accepted, some slowly; the others meet every kind of fault once. */
function behaviorsOf(random: () => number): Behavior[] {
  const faults: Behavior[] = [
    { on: 'rcpt', do: 451 },
    { on: 'rcpt', do: 550 },
    { on: 'rcpt', do: 'drop' },
    { on: 'data', do: 451 },
    { on: 'data', do: 'drop-accepted' },
    { on: 'data', do: 'drop-lost' },
  ];
  const fault = random() < 0.3 ? faults[Math.floor(random() * faults.length)] : undefined;
  return fault === undefined ? [{ on: 'data', do: 'delay', ms: random() * 30 }] : [fault];
}

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed * 0x9e3779b9 + 1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
