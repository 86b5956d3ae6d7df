import { cp, readdir, readFile, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { inWarehouse, valuesOf } from '../open-warehouse.js';
import { openSite, type Site } from './site.js';
import { daysAgo, endedWith, liveFile, replaceIn } from './workspace.js';

const QUIET = 'improve: { mode: plan }\n';
const ACTIVE = `improve: { mode: apply, minWeeklyViews: 1, maxJobsPerWeek: 2 }
mail: { from: docs@example.com }
reports: { weekly: { to: [known@example.com, unknown@example.com] } }
`;

const statusSchema = z.object({
  unknownJobs: z.array(z.unknown()),
  unknownMessages: z.array(z.unknown()),
  unknownDeliveries: z.array(z.object({ recipient: z.string() })),
});

const OLDER =
  /older than the history published from it: it lacks (?:\d+ loaded days? \(.+\) and )?\d+ recorded steps? since \w+ \d+, \d+ at/;

interface Loss {
  readonly what: string;
  /** Loses it from the data directory `now`, given a copy from `before` any effect. */
  readonly lose: (now: string, before: string) => Promise<void>;
  /** The message with which commands refuse to continue; without it, the journal repairs the loss automatically. */
  readonly refusal?: RegExp;
  /** The commands, besides `run`, whose refusal is tried. */
  readonly refused?: readonly string[][];
}

async function loseDay(now: string, before: string): Promise<void> {
  await rm(join(now, 'warehouse.duckdb.wal'), { force: true });
  await cp(join(before, 'warehouse.duckdb'), join(now, 'warehouse.duckdb'));
  await cp(join(before, 'warehouse.duckdb.wal'), join(now, 'warehouse.duckdb.wal')).catch(() => undefined);
}

// That a database is missing is in backup.slow.test.ts, and that it is damaged, in damaged.slow.test.ts.
const LOSSES: readonly Loss[] = [
  {
    what: 'the live database is yesterday’s copy',
    lose: loseDay,
    refusal: OLDER,
    refused: [['export'], ['publish'], ['doctor']],
  },
  {
    what: 'the live database and its log are yesterday’s, and nothing was published since',
    lose: async (now, before) => {
      await loseDay(now, before);
      await cp(join(before, 'history.duckdb'), join(now, 'history.duckdb'), { force: true });
    },
  },
  { what: 'the log is deleted', lose: (now) => rm(join(now, 'warehouse.duckdb.wal')), refusal: OLDER },
  {
    what: 'the data directory comes from a backup, except for the journal',
    lose: async (now, before) => {
      await cp(join(now, 'effects.log'), `${now}.log`);
      await rm(now, { recursive: true });
      await cp(before, now, { recursive: true });
      await cp(`${now}.log`, join(now, 'effects.log'));
    },
  },
];

describe('no matter what is lost, nothing irreversible happens twice', () => {
  let site: Site;
  let data: string;
  let before: string;
  let after: string;

  /** What has reached the platform and the mail server. */
  const effects = () => ({
    jobs: site.sandbox.inspect().jobs.map(({ prompt, messages }) => ({ prompt, messages: messages.length })),
    emails: [...site.mailServer.accepted].map(([recipient, emails]) => [recipient, emails.length]).sort(),
  });

  /** Puts everything back as it was after the effects. */
  async function startAfter(): Promise<void> {
    await rm(data, { recursive: true });
    await cp(after, data, { recursive: true });
  }

  /** Checks that commands refuse to continue and change nothing, and restores. */
  async function restore(refusal: RegExp, commands: readonly string[][]): Promise<void> {
    const published = () => readFile(join(data, 'history.duckdb'));
    const [history, names] = [await published(), await readdir(data)];
    for (const args of [...commands, ['run']]) {
      const { code, stdout, stderr } = await site.run(...args);
      expect({ args, code }).toEqual({ args, code: 1 });
      expect(stdout + stderr).toMatch(refusal);
      expect(stdout + stderr).toContain('readership restore');
    }
    expect((await published()).equals(history)).toBe(true);
    expect((await readdir(data)).sort()).toEqual(names.sort());

    const restored = endedWith(0, await site.run('restore'));
    expect(restored.stdout).toMatch(/Restored data\/warehouse.duckdb from data\/history.duckdb/);
    expect(restored.stdout).toMatch(/Kept the previous file: data\/warehouse.duckdb.replaced-/);
  }

  beforeAll(async () => {
    site = await openSite({ firstDay: daysAgo(45), pages: 30, jobSeconds: 3600 }, QUIET);
    data = join(site.cwd, 'data');
    [before, after] = [join(site.cwd, 'before'), join(site.cwd, 'after')];
    expect(await site.run('run')).toMatchObject({ code: 0 });
    await cp(data, before, { recursive: true });
    await replaceIn(site.cwd, QUIET, ACTIVE);
    site.sandbox.setFaults([{ on: 'create', kind: 'lost-reply', after: 1, times: 1 }]);
    site.mailServer.behaviors.set('unknown@example.com', [{ on: 'data', do: 'drop-accepted' }]);
    expect(await site.run('run')).toMatchObject({ code: 1 });
    site.sandbox.setFaults([{ on: 'message', kind: 'lost-reply', times: 1 }]);
    expect(await site.run('jobs', 'message', '1', 'Mention the rate limits.')).toMatchObject({ code: 1 });
    site.sandbox.setFaults([]);
    expect(effects()).toMatchObject({
      jobs: [{ messages: 1 }, { messages: 0 }],
      emails: [
        ['known@example.com', 1],
        ['unknown@example.com', 1],
      ],
    });
    await cp(data, after, { recursive: true });
  });

  it.each(LOSSES)('$what', async ({ lose, refusal, refused = [] }) => {
    await startAfter();
    await lose(data, before);
    const sent = effects();

    if (refusal !== undefined) await restore(refusal, refused);
    const resumed = await site.run('run');
    // An email found to have an unknown outcome is a failure once, so that somebody looks at it.
    const isNews = resumed.stderr.includes('may or may not have been sent');
    endedWith(isNews ? 1 : 0, resumed);
    expect(effects()).toEqual(sent);
    const status = statusSchema.parse(JSON.parse((await site.run('status', '--json')).stdout));
    expect(status).toMatchObject({
      unknownJobs: [{ id: 2 }],
      unknownMessages: [{ job: 1 }],
      unknownDeliveries: [{ recipient: 'unknown@example.com' }],
    });
    if (!isNews) return;
    expect(await site.run('run')).toMatchObject({ code: 0 });
    expect(effects()).toEqual(sent);
  });

  it('a log that was cut short is noticed wherever a commit that mattered is gone', async () => {
    const log = await readFile(join(after, 'warehouse.duckdb.wal'));
    const sent = effects();
    const count = `SELECT (SELECT count(*) FROM agent_jobs WHERE state = 'active'),
      (SELECT count(*) FROM deliveries WHERE state = 'sent')`;
    const losses = new Set<string>();
    for (const share of process.env['CI'] === undefined ? [0, 0.3, 0.6, 0.8, 0.9, 0.97, 1] : [0.3, 1]) {
      for (const from of [after, before]) {
        await startAfter();
        await truncate(join(data, 'warehouse.duckdb.wal'), Math.floor(log.length * share));
        await cp(join(from, 'history.duckdb'), join(data, 'history.duckdb'), { force: true });
        const stored = await inWarehouse(liveFile(site.cwd), (warehouse) => valuesOf(warehouse, count));
        const { code, stderr } = await site.run('jobs', 'poll');
        const words = /the database has lost (.+), because its log \(.+\) was cut short/.exec(stderr)?.[1];
        const lost = ['1 job', '1 email'].filter((_, index) => stored[index] === 0);
        const what = `${share} of the log: ${stderr}`;
        // Where the history has what is lost, nothing continues without it.
        if (from === after && share < 0.95) expect(stderr, what).toMatch(/lacks .+or its log .+cut short/s);
        if (code === 1 && stderr.includes('older than the history')) continue;
        expect(words, what).toBe(lost.length === 0 ? undefined : lost.join(', '));
        losses.add(words ?? 'nothing');
      }
      expect(effects()).toEqual(sent);
    }
    expect([...losses]).toEqual(expect.arrayContaining(['1 job, 1 email', 'nothing']));
    expect((await site.run('doctor')).stdout).not.toMatch(/^fail/m);
  });
});
