import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import pMap from 'p-map';
import { beforeAll, expect, it } from 'vitest';
import { deliver, readDeliveries, reconcileDeliveries, resolveDelivery } from '../../src/mail/ledger.js';
import { outboxTransport } from '../../src/mail/transport.js';
import { EffectsJournal } from '../../src/effects/journal.js';
import { compiled } from '../compiled.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { reply, serve, type TestServer } from '../serve.js';
import { tempDir } from '../temp-dir.js';
import { isGenuine, type KINDS, postTo } from './posts.js';

/**
 * The moments between two steps, what is known about the post if the process ends there, and what arrived.
 * One ledger serves all kinds of channels, so each moment is tried with one of them.
 */
const MOMENTS = [
  ['journaled', 'slack', 'unknown', 0],
  ['begun', 'webhook', 'unknown', 0],
  ['arrived', 'teams', 'unknown', 1],
  ['answered', 'slack', 'unknown', 1],
  ['outcome journaled', 'webhook', 'sent', 1],
  ['ended', 'teams', 'sent', 1],
] as const satisfies readonly (readonly [string, (typeof KINDS)[number], string, number])[];

let program: string;
let base: string;

beforeAll(async () => {
  base = await tempDir();
  program = await compiled(new URL('../app/sending-process.ts', import.meta.url), base);
  await closeNow(await liveWarehouse(join(base, 'warehouse.duckdb')));
});

/** Continues where a process was killed, as the next run does. */
async function nextRun(directory: string, kind: (typeof KINDS)[number], url: string, now: Date) {
  const warehouse = await liveWarehouse(join(directory, 'warehouse.duckdb'));
  const journal = await EffectsJournal.open(directory);
  const ledgers = { warehouse, journal };
  const { deliveries: found } = await reconcileDeliveries(ledgers, now);
  const { signal } = new AbortController();
  const transport = outboxTransport(join(directory, 'outbox'));
  const task = { ...ledgers, transport, admission: 'due' as const, now: () => now, signal };
  await deliver(task, [postTo(kind, url)]);
  const close = async () => {
    await journal.close();
    await closeNow(warehouse);
  };
  return { found, ledgers, task, close, stored: await readDeliveries(warehouse) };
}

it('a process killed while it posts leaves its outcome known or unknown, never posts twice, and a person can settle it', async () => {
  await pMap(
    MOMENTS,
    async ([moment, kind, known, arrived]) => {
      const directory = await tempDir();
      await cp(base, directory, { recursive: true });
      let kill = (): unknown => undefined;
      const standIn: TestServer = await serve((_, response) => {
        if (moment === 'arrived') kill();
        else reply(response, kind === 'teams' ? 202 : 200, 'ok');
      });
      const url = `${standIn.baseUrl}/hooks/of-${kind}`;
      const file = join(directory, 'warehouse.duckdb');
      const child = spawn(process.execPath, [program, file, kind, moment, url], {
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      kill = () => child.kill('SIGKILL');
      expect(await once(child, 'exit'), moment).toEqual([null, 'SIGKILL']);
      expect(standIn.seen, moment).toHaveLength(arrived);

      const run = await nextRun(directory, kind, url, new Date('2026-11-19T05:00:00Z'));
      expect(run.stored, moment).toMatchObject([{ recipient: 'docs-channel', via: kind, state: known }]);
      expect(
        run.found.map(({ state }) => state),
        moment,
      ).toEqual(known === 'unknown' ? ['unknown'] : []);
      expect(standIn.seen, moment).toHaveLength(arrived);
      if (moment === 'begun') {
        // Somebody checked, and it is not there: it is posted when it is next due.
        const [delivery] = run.stored;
        if (delivery === undefined) throw new Error('no delivery');
        await resolveDelivery(run.ledgers, delivery, false, new Date('2026-11-19T06:00:00Z'));
        expect(await deliver(run.task, [postTo(kind, url)])).toMatchObject([{ state: 'sent' }]);
        expect(standIn.seen).toHaveLength(1);
      }
      await run.close();
      if (kind === 'webhook')
        for (const { headers, body } of standIn.seen) expect(isGenuine(headers, body)).toBe(true);
    },
    { concurrency: 3 },
  );
});
