import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { runCli } from '../run-cli.js';
import { page, store, storedViews } from '../warehouse/lake/lake.js';
import { liveFile, workspaceOf } from './workspace.js';

const AWAY = { baseUrl: 'http://127.0.0.1:1', projectId: 'prj_1' };

async function published(): Promise<string> {
  const cwd = await workspaceOf(AWAY, 'publish: { parquet: lake }\n');
  const warehouse = await liveWarehouse(liveFile(cwd));
  await store(warehouse, 'prj_1', { '2026-10-31': [page('/a', 3, 1)], '2026-11-01': [page('/b', 2)] });
  await closeNow(warehouse);
  expect(await runCli(['publish'], { cwd })).toMatchObject({ code: 0 });
  return cwd;
}

it('a lost data directory is restored from the lake, and publishes there again', async () => {
  const cwd = await published();
  await rm(join(cwd, 'data'), { recursive: true });
  const { code, stdout } = await runCli(['restore', '--from', 'lake'], { cwd });
  expect(code).toBe(0);
  expect(stdout).toContain('Restored data/warehouse.duckdb from lake.');
  const restored = await liveWarehouse(liveFile(cwd));
  expect(await storedViews(restored)).toEqual([
    ['prj_1', '2026-10-31', '/a', 3, 1],
    ['prj_1', '2026-11-01', '/b', 2, 0],
  ]);
  await closeNow(restored);
  expect((await runCli(['publish'], { cwd })).stdout).toContain('4 files, 0 written, 0 replaced');
});

it('a directory that is not a lake is refused, and nothing changes', async () => {
  const cwd = await published();
  const before = (await readdir(join(cwd, 'data'))).sort();
  const { code, stderr } = await runCli(['restore', '--from', 'data'], { cwd });
  expect(code).toBe(2);
  expect(stderr).toContain('has no days of this workspace. Nothing was changed.');
  expect((await readdir(join(cwd, 'data'))).sort()).toEqual(before);
});
