import { execFileSync } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { dayOf } from '../../src/day.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { type Platform, rowsOf, servePlatform } from '../platform.js';
import { runCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { lakeViews, sorted, storedViews } from '../warehouse/lake/lake.js';
import { daysAgo, expectCleanEnd, KEY } from './workspace.js';

const PROJECTS = ['prj_a', 'prj_b', 'prj_c', 'prj_d', 'prj_e', 'prj_f'];
const SHARDS = 3;

/** Six projects with one key, and a platform that serves the same views for each. */
async function setUp(settings = ''): Promise<{ cwd: string; platform: Platform }> {
  const platform = await servePlatform({
    now: () => new Date(),
    rowsOf: (day) => (day < daysAgo(5) || day >= dayOf(new Date()) ? [] : rowsOf(day, 3)),
  });
  const cwd = await tempDir();
  const projects = PROJECTS.map((id) => `  - { id: ${id} }\n`).join('');
  await writeFile(
    join(cwd, 'readership.yaml'),
    `baseUrl: ${platform.baseUrl}\nprojects:\n${projects}history: { start: ${daysAgo(5)}, requestsPerHour: 100 }\n${settings}`,
  );
  return { cwd, platform };
}

const call = async (cwd: string, ...args: string[]) => {
  const result = await start(cwd, ...args);
  await expectCleanEnd(cwd, result);
  return result;
};

const start = (cwd: string, ...args: string[]) => runCli(args, { cwd, env: { READERSHIP_API_KEY: KEY } });

const shardsOf = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1}/${count}`);

const storedProjects = async (file: string): Promise<string[]> => {
  const warehouse = await liveWarehouse(file);
  const rows = await warehouse.query(
    'SELECT DISTINCT project FROM day_loads ORDER BY project',
    z.object({ project: z.string() }),
  );
  await closeNow(warehouse);
  return rows.map(({ project }) => project);
};

describe('export --shard', () => {
  it('in several processes at once loads every project once, into a file per shard and one lake for all', async () => {
    const { cwd, platform } = await setUp('publish: { parquet: lake }\n');
    const ended = await Promise.all(shardsOf(SHARDS).map((shard) => start(cwd, 'export', '--shard', shard)));
    for (const result of ended) {
      expect(result.code, result.stderr).toBe(0);
      await expectCleanEnd(cwd, result);
    }

    const stored = await Promise.all(
      shardsOf(SHARDS).map((shard) =>
        storedProjects(join(cwd, 'data', `shard-${shard.replace('/', '-of-')}`, 'warehouse.duckdb')),
      ),
    );
    expect(stored.flat().sort()).toEqual(PROJECTS);
    const asked = platform.seen.flatMap(({ url }) => {
      const { dateFrom, dateTo } = Object.fromEntries(url.searchParams);
      return dateTo === undefined ? [] : `${url.pathname} ${dateFrom} ${dateTo}`;
    });
    expect(new Set(asked).size).toBe(asked.length);

    const lake = await lakeViews(join(cwd, 'lake'));
    const expected = PROJECTS.flatMap((project) =>
      [1, 2, 3, 4, 5].flatMap((ago) =>
        rowsOf(daysAgo(ago), 3).map(
          ({ path, human, ai }) => [project, daysAgo(ago), path, human, ai] as const,
        ),
      ),
    );
    expect(sorted(lake)).toEqual(sorted(expected));

    // The other commands show only the shard's own projects.
    const answer = await call(
      cwd,
      'sql',
      '--shard',
      '1/3',
      'SELECT DISTINCT project FROM page_views',
      '--format',
      'json',
    );
    expect(
      z
        .array(z.object({ project: z.string() }))
        .parse(JSON.parse(answer.stdout))
        .map(({ project }) => project)
        .sort(),
    ).toEqual(stored[0]);
    const status = await call(cwd, 'status', '--shard', '1/3', '--json');
    const { projects } = z
      .object({
        projects: z.array(z.object({ project: z.string(), requests: z.object({ perHour: z.int() }) })),
      })
      .parse(JSON.parse(status.stdout));
    expect(projects.map(({ project }) => project)).toEqual(stored[0]);
    expect(new Set(projects.map(({ requests }) => requests.perHour))).toEqual(new Set([33]));
  });

  it('accepts the index of a Kubernetes indexed job, as in the docs', async () => {
    const { cwd } = await setUp();
    const command = 'echo --shard "$((JOB_COMPLETION_INDEX + 1))/3"';
    const said = [0, 1, 2].map((index) =>
      execFileSync('sh', ['-c', command], { env: { JOB_COMPLETION_INDEX: String(index) } })
        .toString()
        .trim(),
    );
    expect(said).toEqual(shardsOf(3).map((shard) => `--shard ${shard}`));
    expect((await call(cwd, 'export', '--plan', ...(said[2] ?? '').split(' '))).code).toBe(0);
  });

  it('for a shard without projects finishes at once and says so', async () => {
    const { cwd, platform } = await setUp();
    const empty = await emptyShard(cwd);
    const { code, stderr } = await call(cwd, 'run', '--shard', empty);
    expect(stderr).toContain(`Shard ${empty} contains none of the configured projects: nothing to do.`);
    expect(code).toBe(0);
    expect(platform.seen).toEqual([]);
    expect((await call(cwd, 'status', '--shard', empty)).code).toBe(0);
  });

  it.each(['0/4', '5/4', 'x', ''])('rejects %j and says how to write it', async (shard) => {
    const { cwd } = await setUp();
    for (const command of ['export', 'run', 'start']) {
      const { code, stderr } = await call(cwd, command, '--shard', shard);
      expect(code).toBe(2);
      expect(stderr).toContain('Write I/N, counted from 1, such as 2/8 for the second of eight.');
    }
    expect(await readdir(cwd)).toEqual(['readership.yaml']);
  });

  it('with a project of another shard names that shard', async () => {
    const { cwd } = await setUp();
    const plans = await Promise.all(
      shardsOf(SHARDS).map((shard) => start(cwd, 'export', '--plan', '--shard', shard, '--project', 'prj_a')),
    );
    const [right] = shardsOf(SHARDS).filter((_, index) => plans[index]?.code === 0);
    const wrong = plans.filter(({ code }) => code === 2);
    expect(wrong).toHaveLength(SHARDS - 1);
    for (const { stderr } of wrong) expect(stderr).toContain(`is in another shard: --shard ${right}.`);
  });
});

describe('a data directory', () => {
  it('that was split is refused with another split or none: nothing is loaded or done twice', async () => {
    const { cwd, platform } = await setUp();
    await call(cwd, 'export', '--shard', '1/3');
    const requests = platform.seen.length;
    for (const args of [['export'], ['run', '--shard', '1/4'], ['sql', 'SELECT 1']]) {
      const { code, stderr } = await call(cwd, ...args);
      expect(code).toBe(2);
      expect(stderr).toContain('contains the histories of 3 shards');
    }
    expect(platform.seen).toHaveLength(requests);
  });

  it('that was not split is refused to a shard; copied to each shard as documented, it continues where it was', async () => {
    const { cwd, platform } = await setUp('publish: { parquet: lake }\n');
    await call(cwd, 'export');
    const data = join(cwd, 'data');
    const refused = await call(cwd, 'export', '--shard', '1/2');
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('contains one history of all projects');

    const live = await liveWarehouse(join(data, 'warehouse.duckdb'));
    const views = await storedViews(live);
    await closeNow(live);
    for (const name of ['shard-1-of-2', 'shard-2-of-2']) {
      await mkdir(join(data, name));
      for (const file of ['warehouse.duckdb', 'warehouse.duckdb.wal'])
        await cp(join(data, file), join(data, name, file));
    }
    await rename(join(data, 'warehouse.duckdb'), join(cwd, 'warehouse-before.duckdb'));
    await rename(join(data, 'warehouse.duckdb.wal'), join(cwd, 'warehouse-before.duckdb.wal'));
    const requests = platform.seen.length;
    const config = join(cwd, 'readership.yaml');
    const yaml = await readFile(config, 'utf8');
    for (const shard of shardsOf(2))
      expect((await call(cwd, 'adopt', '--shard', shard)).stderr).toContain('written by no shards');
    await writeFile(config, yaml.replace('parquet: lake', 'parquet: split-lake'));
    for (const shard of shardsOf(2)) {
      const adopted = await call(cwd, 'adopt', '--shard', shard);
      expect(adopted.code, adopted.stderr).toBe(0);
      const exported = await call(cwd, 'export', '--shard', shard);
      expect(exported.code, exported.stderr).toBe(0);
      const published = await call(cwd, 'publish', '--shard', shard);
      expect(published.code, published.stderr).toBe(0);
    }
    // Days that may still change are read again; final days stay final.
    const asked = platform.seen.slice(requests).map(({ url }) => Object.fromEntries(url.searchParams));
    const finalDays = new Set<string>([daysAgo(5), daysAgo(4)]);
    expect(asked.filter(({ limit, dateFrom = '' }) => limit === '250' && finalDays.has(dateFrom))).toEqual(
      [],
    );
    expect(sorted(await lakeViews(join(cwd, 'split-lake')))).toEqual(sorted(views));
  });
});

/** A shard, out of many, without projects. */
async function emptyShard(cwd: string): Promise<string> {
  for (const shard of shardsOf(20)) {
    const { stdout } = await call(cwd, 'export', '--plan', '--json', '--shard', shard);
    if (stdout.trim() === '[]') return shard;
  }
  throw new Error('every shard has a project');
}
