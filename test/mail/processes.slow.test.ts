import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readDeliveries } from '../../src/state/emails.js';
import { compiled } from '../compiled.js';
import { openTestState } from '../open-state.js';
import { tempDir } from '../temp-dir.js';
import { type MailServer, startMailServer } from './mail-server.js';

let program: string;
let server: MailServer;
let dataDir: string;

beforeAll(async () => {
  program = await compiled(new URL('./sending-process.ts', import.meta.url), await tempDir());
});

beforeEach(async () => {
  server = await startMailServer();
  const { dataDir: created, close } = await openTestState();
  dataDir = created;
  await close();
});

/** Runs a process that sends the email, and may kill itself. Returns how it ended. */
async function send(point = ''): Promise<unknown> {
  const child = spawn(
    process.execPath,
    [program, dataDir, point, `smtp://127.0.0.1:${server.port}`, join(dataDir, 'witness')],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  return signal ?? code;
}

const [SENT, NOTHING_TO_SEND] = [0, 3];
const arrived = () => server.accepted.get('docs@example.com')?.length ?? 0;

async function stored() {
  const { state, close } = await openTestState(dataDir);
  const deliveries = readDeliveries(state).map(({ state: of, attempts }) => [of, attempts]);
  await close();
  return deliveries;
}

describe('a process killed while it sends an email', () => {
  it.each([
    ['begun', 'unknown', 0],
    ['answered', 'unknown', 1],
    ['stored', 'sent', 1],
  ] as const)('%s: it is %s, and not sent again by itself', async (point, state, copies) => {
    expect(await send(point)).toBe('SIGKILL');
    expect(arrived()).toBe(copies);
    for (let times = 0; times < 2; times++) expect(await send()).toBe(NOTHING_TO_SEND);
    expect(await stored()).toEqual([[state, 1]]);
    expect(arrived()).toBe(copies);
  });
});

it('processes that all want to send one email send it once', async () => {
  server.behaviors.set('docs@example.com', [{ on: 'data', do: 'delay', ms: 300 }]);
  const ends = await Promise.all(Array.from({ length: 4 }, () => send()));
  expect(ends.sort()).toEqual([SENT, NOTHING_TO_SEND, NOTHING_TO_SEND, NOTHING_TO_SEND]);
  expect(arrived()).toBe(1);
  expect(await stored()).toEqual([['sent', 1]]);
});
