import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readJobs } from '../../src/agents/job.js';
import { planJob } from '../../src/agents/ledger.js';
import { OPEN_STATES } from '../../src/agents/lifecycle.js';
import { planMessage, readMessages } from '../../src/agents/messages.js';
import { submitPrompts } from '../../src/agents/submit.js';
import { Transport } from '../../src/api/transport.js';
import { reconcileEffects } from '../../src/app/janitor.js';
import { EffectsJournal } from '../../src/effects/journal.js';
import { deliver, readDeliveries } from '../../src/mail/ledger.js';
import { smtpTransport } from '../../src/mail/transport.js';
import { publish } from '../../src/warehouse/publish.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { EVIDENCE } from '../agents/reading.js';
import { openClient } from '../api/open-client.js';
import { compiled } from '../compiled.js';
import { letter } from '../mail/letters.js';
import { type MailServer, startMailServer } from '../mail/mail-server.js';
import { closeNow, liveWarehouse, rowsOf } from '../open-warehouse.js';
import { reply, serve, type TestServer } from '../serve.js';
import { tempDir } from '../temp-dir.js';

const KINDS = ['job', 'message', 'email'] as const;
type Kind = (typeof KINDS)[number];

/** The moments between two writes, and what is known of the effect when the process ends there. */
const MOMENTS = [
  ['journaled', 'unknown', 0],
  ['begun', 'unknown', 0],
  ['answered', 'unknown', 1],
  ['outcome journaled', 'sent', 1],
  ['ended', 'sent', 1],
] as const;

const LOSSES = {
  'nothing else': () => Promise.resolve(),
  'the live file put back as it was yesterday': async (directory: string) => {
    await rm(join(directory, 'warehouse.duckdb.wal'), { force: true });
    await copyFile(join(directory, 'yesterday.duckdb'), join(directory, 'warehouse.duckdb'));
  },
  'its log': (directory: string) => rm(join(directory, 'warehouse.duckdb.wal'), { force: true }),
  'the live file, restored from the published history': async (directory: string) => {
    await rm(join(directory, 'warehouse.duckdb.wal'), { force: true });
    await rm(join(directory, 'warehouse.duckdb'));
    await copyFile(join(directory, 'history.duckdb'), join(directory, 'warehouse.duckdb'));
    await chmod(join(directory, 'warehouse.duckdb'), 0o600);
  },
};

const NOW = new Date('2026-11-18T05:00:00Z');
const DAY_LATER = new Date('2026-11-19T05:00:00Z');
const plan = (warehouse: Warehouse, number: number, now: Date) => {
  const page = { path: `/page-${number}`, reason: 'much read', evidence: EVIDENCE };
  return planJob(warehouse, { project: 'prj_1', page, prompt: `Improve ${page.path}`, now });
};

let platform: TestServer;
/** What the platform received, in order. */
const posts: string[] = [];
let mailServer: MailServer;
let program: string;
let base: string;

beforeAll(async () => {
  platform = await serve(({ url, body }, response) => {
    posts.push((JSON.parse(body) as { prompt: string }).prompt);
    const [, messaged] = /\/job\/([^/]+)\/message$/.exec(url.pathname) ?? [];
    reply(response, 200, { id: messaged ?? `job_${posts.length}`, status: 'active' });
  });
  mailServer = await startMailServer();
  base = await tempDir();
  program = await compiled(new URL('./sending-process.ts', import.meta.url), base);
  const file = join(base, 'warehouse.duckdb');
  await closeNow(await liveWarehouse(file));
  await copyFile(file, join(base, 'yesterday.duckdb'));
  // A job that is running on the platform, for the message; then what is about to be sent.
  const warehouse = await liveWarehouse(file);
  await plan(warehouse, 0, NOW);
  await withTask(warehouse, base, NOW, (task) => submitPrompts(task, 'job'));
  const [job = expect.fail()] = await readJobs(warehouse, 'prj_1');
  await planMessage(warehouse, job, { origin: 'typed', prompt: 'Mention the limits', now: NOW });
  await plan(warehouse, 1, NOW);
  await publish(warehouse, join(base, 'history.duckdb'));
  await closeNow(warehouse);
});

async function withTask<Result>(
  warehouse: Warehouse,
  directory: string,
  now: Date,
  work: (task: Parameters<typeof submitPrompts>[0]) => Promise<Result>,
): Promise<Result> {
  const transport = new Transport();
  const client = openClient(platform.baseUrl, { now: () => now, transport });
  const journal = await EffectsJournal.open(directory);
  try {
    return await work({ warehouse, journal, client, project: 'prj_1', now: () => now });
  } finally {
    await journal.close();
    await transport.close();
  }
}

/** How often the effect was sent: for a job by its page, for an email by its recipient. */
const arrivals = (kind: Kind): number =>
  kind === 'email'
    ? (mailServer.accepted.get('docs@example.com')?.length ?? 0)
    : posts.filter((prompt) => prompt === (kind === 'job' ? 'Improve /page-1' : 'Mention the limits')).length;

/** Opens the database as a command does, and sends what is due. Returns what is stored about the effect. */
async function nextRun(directory: string, kind: Kind) {
  const warehouse = await liveWarehouse(join(directory, 'warehouse.duckdb'));
  const states = await withTask(warehouse, directory, DAY_LATER, async (task) => {
    const { words } = await reconcileEffects(task.journal, warehouse, DAY_LATER);
    const jobs = await readJobs(warehouse, 'prj_1');
    // As `improve` would: a page without an open job is planned again, and the next page as well.
    for (const number of [1, 2])
      if (!jobs.some(({ path, state }) => path === `/page-${number}` && OPEN_STATES.has(state)))
        await plan(warehouse, number, DAY_LATER);
    await submitPrompts(task, 'job');
    await submitPrompts(task, 'message');
    const transport = smtpTransport(`smtp://127.0.0.1:${mailServer.port}`);
    const { signal } = new AbortController();
    const mail = { ...task, transport, admission: 'due', signal } as const;
    await deliver(mail, await Promise.all(['docs@example.com', 'next@example.com'].map((to) => letter(to))));
    const ofKind = {
      job: (await readJobs(warehouse, 'prj_1')).filter(({ path }) => path === '/page-1'),
      message: await readMessages(warehouse, 'prj_1'),
      email: (await readDeliveries(warehouse)).filter(({ recipient }) => recipient === 'docs@example.com'),
    }[kind];
    return { words, states: ofKind.map(({ state }) => state) };
  });
  const again = await withTask(warehouse, directory, DAY_LATER, ({ journal }) =>
    reconcileEffects(journal, warehouse, DAY_LATER),
  );
  const broken =
    'FROM job_transitions QUALIFY from_state IS DISTINCT FROM lag(to_state) OVER (PARTITION BY job, message ORDER BY number)';
  expect(await rowsOf(warehouse, broken)).toEqual([]);
  await closeNow(warehouse);
  return { ...states, again: again.words };
}

const STATE_OF = {
  job: { unknown: 'unconfirmed', sent: 'active' },
  message: { unknown: 'unconfirmed', sent: 'sent' },
  email: { unknown: 'unknown', sent: 'sent' },
};

describe.each(KINDS)('a process killed while it sends a %s', (kind) => {
  it.each(MOMENTS)('%s: it is %s, whatever else is lost, and not sent twice', async (moment, known, sent) => {
    const killed = await tempDir();
    await cp(base, killed, { recursive: true });
    const before = arrivals(kind);
    const file = join(killed, 'warehouse.duckdb');
    const smtp = `smtp://127.0.0.1:${mailServer.port}`;
    const child = spawn(process.execPath, [program, file, kind, moment, platform.baseUrl, smtp], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
    expect(arrivals(kind) - before).toBe(sent);
    // A reply that arrives changes no file, so losses are those of the moment before.
    const losses = Object.entries(LOSSES).slice(0, moment === 'answered' ? 1 : undefined);
    for (const [loss, lose] of losses) {
      const directory = await tempDir();
      await cp(killed, directory, { recursive: true });
      await lose(directory);
      const others = posts.length;
      const start = arrivals(kind);
      const { words, states, again } = await nextRun(directory, kind);
      expect(states, loss).toEqual([STATE_OF[kind][known]]);
      expect(arrivals(kind) - start, loss).toBe(0);
      expect(again, loss).toBeUndefined();
      if (known === 'unknown') expect(words, loss).toContain(`1 ${kind}`);
      // A process that is killed loses no commit.
      if (loss === 'nothing else') expect(words ?? '').not.toContain('has lost');
      else if (known === 'sent') expect(words, loss).toMatch(new RegExp(`has lost .*\\d ${kind}`));
      // The rest continues.
      expect(posts.slice(others), loss).toContain('Improve /page-2');
    }
  });
});
