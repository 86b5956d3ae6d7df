import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import type { Sandbox } from '../sandbox/faulty-sandbox.js';
import { expectWhole } from '../export/stored-days.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { type CliResult, runCli } from '../run-cli.js';
import { daysAgo, expectCleanEnd, KEY, liveFile, serveSandbox, workspaceOf } from './workspace.js';

// Each command is a separate process, and a shared machine may be slow.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const SETTINGS = `
history: { requestsPerHour: 400 }
improve: { mode: apply, minWeeklyViews: 1 }
mail: { from: docs@example.com }
reports: { weekly: { to: [docs@example.com] } }
`;

const nameRow = z.object({ name: z.string() });
const anyRow = z.record(z.string(), z.unknown());
type Rows = readonly Readonly<Record<string, unknown>>[];

/** Every table of the live database, row by row. */
async function tablesOf(cwd: string): Promise<Record<string, Rows>> {
  const warehouse = await liveWarehouse(liveFile(cwd));
  await expectWhole(warehouse);
  const tables: Record<string, Rows> = {};
  for (const { name } of await warehouse.query('SELECT table_name AS name FROM duckdb_tables()', nameRow))
    tables[name] = await warehouse.query(`FROM ${name} ORDER BY ALL`, anyRow);
  await closeNow(warehouse);
  return tables;
}

const isFinal = (row: Rows[number]) => row['state'] === 'final';
const requestsOf = (rows: Rows = []) => rows.reduce((sum, { requests }) => sum + Number(requests), 0);

describe('a live database that is lost', () => {
  let sandbox: Sandbox;
  let cwd: string;
  let before: Record<string, Rows>;
  const run = async (...args: string[]): Promise<CliResult> => {
    const result = await runCli(args, { cwd, env: { READERSHIP_API_KEY: KEY } });
    await expectCleanEnd(cwd, result);
    return result;
  };
  const published = () => readFile(join(cwd, 'data', 'history.duckdb'));
  const outbox = () => readdir(join(cwd, 'data', 'outbox'));
  const viewsAsked = () => sandbox.inspect().requests.counts.views?.['200'] ?? 0;

  beforeAll(async () => {
    sandbox = await serveSandbox({ firstDay: daysAgo(60), jobSeconds: 3600 });
    cwd = await workspaceOf(sandbox, SETTINGS);
    expect(await run('run')).toMatchObject({ code: 0 });
    before = await tablesOf(cwd);
    for (const table of ['page_views', 'day_loads', 'agent_jobs', 'deliveries', 'request_uses', 'runs'])
      expect(before[table]?.length, table).toBeGreaterThan(0);
    await rm(liveFile(cwd));
    await writeFile(`${liveFile(cwd)}.wal`, 'what a killed process left');
  });

  it('is not silently created again: every command that writes refuses, and says how to restore it', async () => {
    const [file, asked] = [await published(), viewsAsked()];
    for (const args of [['run'], ['export'], ['improve', '--apply'], ['jobs', 'poll'], ['publish']]) {
      const refused = await run(...args);
      expect(refused.code, args.join(' ')).toBe(1);
      expect(refused.stderr).toMatch(/The live database .+ is missing/);
    }
    expect(viewsAsked()).toBe(asked);
    expect((await published()).equals(file)).toBe(true);
    expect((await run('doctor')).stdout).toMatch(/fail +database +The live database .+ is missing/);
    expect((await run('sql', 'FROM jobs')).code).toBe(0);
  });

  it('is restored by the command in the message, with every ledger', async () => {
    expect((await run('run')).stderr).toContain('readership restore');
    const { code, stderr } = await run('restore');
    expect(code, stderr).toBe(0);
    const restored = await tablesOf(cwd);
    expect(Object.keys(restored)).toEqual(Object.keys(before));
    for (const [table, rows] of Object.entries(before))
      if (table !== 'runs' && table !== 'request_uses') expect(restored[table], table).toEqual(rows);
    // When the copy was made, its publish had not ended, and unused requests had not been returned.
    const lasting = (rows: Rows = []) => rows.filter(({ step }) => step !== 'publish');
    expect(lasting(restored['runs'])).toEqual(lasting(before['runs']));
    expect(requestsOf(restored['request_uses'])).toBeGreaterThanOrEqual(requestsOf(before['request_uses']));
  });

  it('continues as if nothing had happened: no final day reloaded, no duplicate job or email, no request uncounted', async () => {
    const [mails, jobs] = [await outbox(), sandbox.inspect().jobs.length];
    expect(mails).toHaveLength(1);
    expect(jobs).toBeGreaterThan(0);
    expect(await run('run')).toMatchObject({ code: 0 });
    expect(await outbox()).toEqual(mails);
    expect(sandbox.inspect().jobs).toHaveLength(jobs);
    const after = await tablesOf(cwd);
    expect(after['agent_jobs']).toHaveLength(jobs);
    expect(after['deliveries']).toEqual(before['deliveries']);
    expect(after['day_loads']?.filter(isFinal)).toEqual(before['day_loads']?.filter(isFinal));
    expect(requestsOf(after['request_uses'])).toBeGreaterThan(requestsOf(before['request_uses']));
  });
});
