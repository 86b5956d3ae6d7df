import { execFileSync } from 'node:child_process';
import { cp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { shardOf } from '../../src/config/shard.js';
import { answerOf } from '../duckdb.js';
import { inWarehouse, valuesOf } from '../open-warehouse.js';
import { type Platform, rowsOf } from '../platform.js';
import { runCli, startCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { mcpClient } from '../web/mcp-client.js';
import { lakeViews, sorted, storedViews } from '../warehouse/lake/lake.js';
import { callCleanly, daysAgo, endedWith, env, expectCleanEnd, platformOf, replaceIn } from './workspace.js';

const PROJECTS = ['prj_a', 'prj_b', 'prj_c', 'prj_d', 'prj_e', 'prj_ü'];
const SHARDS = 3;
const PROJECTS_STORED = 'SELECT DISTINCT project FROM page_views ORDER BY project';

const statusSchema = z.object({
  shards: z.array(
    z.object({
      shard: z.string(),
      isFromLake: z.boolean().optional(),
      publishedAt: z.string().optional(),
      projects: z
        .array(z.object({ project: z.string(), requests: z.object({ perHour: z.int() }) }))
        .optional(),
    }),
  ),
});

/** Six projects with one key, and a platform that serves the same views for each. */
async function setUp(settings = ''): Promise<{ cwd: string; platform: Platform }> {
  const platform = await platformOf(5, 3);
  const cwd = await tempDir();
  const projects = PROJECTS.map((id) => `  - { id: ${id} }\n`).join('');
  await writeFile(
    join(cwd, 'readership.yaml'),
    `baseUrl: ${platform.baseUrl}\nprojects:\n${projects}history: { start: ${daysAgo(5)}, requestsPerHour: 300 }\n${settings}`,
  );
  return { cwd, platform };
}

const call = (cwd: string, ...args: string[]) => callCleanly(args, { cwd, env });

const start = (cwd: string, ...args: string[]) => runCli(args, { cwd, env });

const shardsOf = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1}/${count}`);

const storedProjects = (file: string) =>
  inWarehouse(file, (warehouse) => valuesOf(warehouse, PROJECTS_STORED));

describe('export --shard', () => {
  it('in several processes at once loads every project once, into a file per shard and one lake for all', async () => {
    const { cwd, platform } = await setUp('shards: 3\npublish: { parquet: lake }\n');
    const ended = await Promise.all(shardsOf(SHARDS).map((shard) => start(cwd, 'export', '--shard', shard)));
    for (const result of ended) await expectCleanEnd(cwd, endedWith(0, result));

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

    const views = [1, 2, 3, 4, 5].flatMap((ago) =>
      rowsOf(daysAgo(ago), 3).map(({ path, human, ai }) => [daysAgo(ago), path, human, ai] as const),
    );
    const expected = PROJECTS.flatMap((project) => views.map((row) => [project, ...row] as const));
    expect(sorted(await lakeViews(join(cwd, 'lake')))).toEqual(sorted(expected));

    // With --shard, the other commands show only the shard's own projects; without it, they read all of them.
    const projectsIn = async (...args: string[]) => {
      const { code, stdout, stderr } = await call(cwd, 'sql', ...args, PROJECTS_STORED, '--format', 'csv');
      return { code, projects: stdout.trim().split('\n').slice(1), stderr };
    };
    expect((await projectsIn('--shard', '1/3')).projects).toEqual(stored[0]);
    expect(await projectsIn()).toEqual({ code: 0, projects: PROJECTS, stderr: '' });
    const statuses = async () => {
      const { stdout } = endedWith(0, await call(cwd, 'status', '--json'));
      return statusSchema.parse(JSON.parse(stdout)).shards;
    };
    const shards = await statuses();
    expect(shards.map(({ shard, isFromLake }) => [shard, isFromLake])).toEqual(
      shardsOf(SHARDS).map((shard) => [shard, false]),
    );
    expect(shards.map(({ projects }) => projects?.map(({ project }) => project))).toEqual(stored);
    expect(shards.flatMap(({ projects }) => projects?.map(({ requests }) => requests.perHour))).toEqual(
      PROJECTS.map(() => 100),
    );
    const published = shards.map(({ publishedAt }) => publishedAt);
    const pages = (await call(cwd, 'report', 'weekly')).stdout.trim().split('\n');
    const places = stored.flatMap((ids, index) =>
      ids.map((id) => `data/shard-${index + 1}-of-3/reports/${encodeURIComponent(String(id))}/weekly-`),
    );
    expect(pages).toEqual(places.map((place) => expect.stringContaining(place) as string));
    // A project names its shard; what changes something needs one.
    expect((await call(cwd, 'export', '--plan', '--project', 'prj_b')).code).toBe(0);
    for (const [args, words] of [
      [['run'], 'split into 3 shards. Choose one: --shard I/3'],
      [['jobs', 'list'], 'Choose one: --shard I/3'],
      [['sql', '--shard', '1/4', 'SELECT 1'], 'no shard 1/4, because the configuration says shards: 3'],
      [['status', '--format', 'prometheus'], 'add --shard'],
    ] as const)
      expect(endedWith(2, await call(cwd, ...args)).stderr).toContain(words);

    await expectOneWebApp(cwd);

    // A shard on another machine is read from the lake, as it was published, and again when it has changed.
    const data = join(cwd, 'data');
    const [here, elsewhere] = [join(data, 'shard-2-of-3'), join(cwd, 'elsewhere')];
    await rename(here, elsewhere);
    expect(await projectsIn()).toEqual({ code: 0, projects: PROJECTS, stderr: '' });
    const later = await statuses();
    expect(later.map(({ isFromLake }) => isFromLake)).toEqual([false, true, false]);
    expect(Math.abs(Date.parse(later[1]?.publishedAt ?? '') - Date.parse(published[1] ?? ''))).toBeLessThan(
      60_000,
    );
    const [copy = '', ...others] = await readdir(here);
    expect(others).toEqual([]);
    // A command that writes would begin a history that is read instead.
    const misplaced = endedWith(1, await call(cwd, 'export', '--shard', '2/3'));
    expect(misplaced.stderr).toContain('has only a copy of what this shard published to the lake');
    expect(await readdir(here)).toEqual([copy]);
    // While assistants or the web app use the copy, a command may replace it.
    const { ask } = await mcpClient(cwd);
    for (const removed of [copy, 'none']) {
      expect(await ask('page', { path: '/page-1', project: 'prj_b' })).toContain('"weeks":[{');
      await rm(join(here, removed), { force: true });
    }
    // Without the lake, its last copy is read; without that, the rest.
    await rename(join(cwd, 'lake'), join(cwd, 'lake-away'));
    const stale = await projectsIn();
    expect(stale.projects).toEqual(PROJECTS);
    const ofShard = await call(cwd, 'sql', '--shard', '2/3', 'SELECT 1');
    for (const { stderr } of [stale, ofShard])
      expect(stderr).toMatch(/lake-copy-\w+\.duckdb is as of .+ UTC, and could not be brought up to date: /);
    await rm(here, { recursive: true });
    const rest = await projectsIn();
    expect(rest.projects).toEqual(PROJECTS.filter((id) => stored[1]?.includes(id) === false));
    expect(rest.stderr).toMatch(/^The answer is without shard 2\/3 \(prj_.\D+\): .*no days of shard 2\/3/);
    // Assistants and visitors need not know where the data is.
    const told = await ask('query', { sql: PROJECTS_STORED });
    expect(told).toMatch(/The answer is without shard 2\/3/);
    expect(told).not.toContain(data);
    const broken = endedWith(1, await call(cwd, 'status'));
    expect(broken.stdout).toMatch(/Shard 2\/3, not readable here\nattention {2}.*no days of shard 2\/3/);

    // Each shard numbers its own jobs, so a command about one names the shard.
    await rename(join(cwd, 'lake-away'), join(cwd, 'lake'));
    const ofA = shardOf('prj_a', 3);
    const lost =
      "INSERT INTO agent_jobs BY NAME SELECT 7 AS id, 'prj_a' AS project, '/' AS path, 'unconfirmed' AS state, '' AS reason, '' AS prompt, now()::TIMESTAMP AS planned_at, 0 AS polls";
    await answerOf(join(data, `shard-${ofA}-of-3`, 'warehouse.duckdb'), lost);
    endedWith(0, await call(cwd, 'publish', '--shard', `${ofA}/3`));
    const { stdout } = endedWith(1, await call(cwd, 'status', '--project', 'prj_a'));
    expect(stdout).toContain(`readership jobs resolve 7 --shard ${ofA}/3 --created`);
    const job = endedWith(0, await call(cwd, 'jobs', 'show', '7', '--shard', `${ofA}/3`));
    expect(job.stdout).toContain(`readership jobs resolve 7 --shard ${ofA}/3 --created`);
    const unknown = endedWith(2, await call(cwd, 'jobs', 'show', '8', '--shard', `${ofA}/3`));
    expect(unknown.stderr).toContain(`readership jobs list --shard ${ofA}/3`);
  });

  it('accepts the index of a Kubernetes indexed job, as in the docs', async () => {
    const { cwd } = await setUp();
    const command = 'echo --shard "$((JOB_COMPLETION_INDEX + 1))/3"';
    const env = { JOB_COMPLETION_INDEX: '2' };
    const said = execFileSync('sh', ['-c', command], { env }).toString().trim();
    expect(said).toBe('--shard 3/3');
    endedWith(0, await call(cwd, 'export', '--plan', ...said.split(' ')));
  });

  it('for a shard without projects finishes at once and says so', async () => {
    const { cwd, platform } = await setUp();
    const empty =
      shardsOf(20).find((_, index) => !PROJECTS.some((id) => shardOf(id, 20) === index + 1)) ?? '';
    const { stderr } = endedWith(0, await call(cwd, 'run', '--shard', empty));
    expect(stderr).toContain(`Shard ${empty} has no projects: nothing to do.`);
    expect(platform.seen).toEqual([]);
    expect((await call(cwd, 'status', '--shard', empty)).code).toBe(0);
  });

  it.each(['0/4', ''])('rejects %j and says how to write it', async (shard) => {
    const { cwd } = await setUp();
    for (const command of ['export', 'run', 'start']) {
      const { stderr } = endedWith(2, await call(cwd, command, '--shard', shard));
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
  it('that was not split is refused to a shard; copied to each shard as documented, it continues where it was', async () => {
    const { cwd, platform } = await setUp('publish: { parquet: lake }\n');
    await call(cwd, 'export');
    const data = join(cwd, 'data');
    const refused = endedWith(2, await call(cwd, 'export', '--shard', '1/2'));
    expect(refused.stderr).toContain('contains one history of all projects');

    const views = await inWarehouse(join(data, 'warehouse.duckdb'), storedViews);
    const files = ['warehouse.duckdb', 'warehouse.duckdb.wal'];
    for (const name of ['shard-1-of-2', 'shard-2-of-2'])
      for (const file of files) await cp(join(data, file), join(data, name, file));
    for (const file of files) await rename(join(data, file), join(cwd, file));
    const requests = platform.seen.length;
    const copied = await call(cwd, 'publish', '--shard', '1/2');
    expect(copied.stderr).toContain('stop it there and run: readership adopt --shard 1/2');
    for (const shard of shardsOf(2))
      expect((await call(cwd, 'adopt', '--shard', shard)).stderr).toContain('written by no shards');
    await replaceIn(cwd, 'parquet: lake', 'parquet: split-lake');
    for (const shard of shardsOf(2))
      for (const command of ['adopt', 'export', 'publish'])
        endedWith(0, await call(cwd, command, '--shard', shard));
    // Days that may still change are read again; final days stay final.
    const asked = platform.seen.slice(requests).map(({ url }) => Object.fromEntries(url.searchParams));
    const finalDays = new Set<string>([daysAgo(5), daysAgo(4)]);
    expect(asked.filter(({ limit, dateFrom = '' }) => limit === '250' && finalDays.has(dateFrom))).toEqual(
      [],
    );
    expect(sorted(await lakeViews(join(cwd, 'split-lake')))).toEqual(sorted(views));
  });
});

/** The web app and the tools of assistants show every project from its shard, and act in it. */
async function expectOneWebApp(cwd: string): Promise<void> {
  const app = startCli(['serve', '--port', '0'], { cwd, env });
  let link = '';
  app.child.stdout.on('data', (text: string) => {
    link += text;
  });
  await app.until(/Press Ctrl-C/);
  const { origin, searchParams } = new URL(link.trim());
  const authorization = `Bearer ${searchParams.get('token') ?? ''}`;
  const look = async (path: string) => {
    const { statusCode, body } = await request(origin + path, { headers: { authorization } });
    return { status: statusCode, text: await body.text() };
  };
  for (const id of PROJECTS) {
    const named = `project=${encodeURIComponent(id)}`;
    const { status, text } = await look(`/pages?${named}&range=all`);
    expect([status, text.match(/>\/page-[012]</g)?.length], id).toEqual([200, 3]);
    const health = await look(`/health?${named}`);
    expect([health.status, health.text.includes('data/shard-')], id).toEqual([200, true]);
    const links = (await look(`/reports?${named}`)).text.matchAll(/href="(\/reports\/[^"]+)"/g);
    const opened = await Promise.all([...links].map(async ([, href = '']) => (await look(href)).status));
    expect(opened, id).toEqual([200, 200]);
  }
  const answer = await look(`/ask.json?sql=${encodeURIComponent(PROJECTS_STORED)}`);
  expect(JSON.parse(answer.text)).toEqual(PROJECTS.map((project) => ({ project })));
  expect(await look('/metrics')).toMatchObject({
    status: 400,
    text: expect.stringContaining('--shard I/N') as string,
  });

  const { ask } = await mcpClient(cwd);
  expect(await ask('projects')).toContain('"id":"prj_ü","name":"prj_ü","site":null,"coverage":{');
  expect(await ask('page', { path: '/page-1', project: 'prj_b' })).toContain('"weeks":[{');
  expect(await ask('query', { sql: 'SELECT count(DISTINCT project) AS n FROM page_views' })).toContain(
    '{"n":6}',
  );

  const form = (await look('/agents?project=prj_b')).text;
  const [, token = ''] = /name="token" value="([\w-]+)"/.exec(form) ?? [];
  const fields = { action: 'skip', project: 'prj_b', path: '/page-1', days: '28', token };
  const { statusCode } = await request(`${origin}/agents`, {
    method: 'POST',
    body: new URLSearchParams(fields).toString(),
    headers: { authorization, origin },
  });
  expect(statusCode).toBe(303);
  await vi.waitFor(async () => {
    const { stdout } = await call(cwd, 'sql', '--shard', '2/3', 'SELECT project, path FROM page_skips');
    expect(stdout).toBe('project,path\nprj_b,/page-1\n');
  }, 60_000);
  app.child.kill('SIGTERM');
  expect((await app.result).stderr).toBe('Press Ctrl-C to stop.\n');
}
