import { execFile } from 'node:child_process';
import { appendFile, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, it } from 'vitest';
import { openState } from '../../src/state/open.js';
import { readJobs } from '../../src/state/jobs.js';
import { readDeliveries } from '../../src/state/emails.js';
import { readMessages } from '../../src/state/messages.js';
import { answerOf, inDuckDb } from '../duckdb.js';
import { inHistory, rowsOf, valuesOf } from '../open-history.js';
import { callCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';

const ARCHIVE = fileURLToPath(new URL('workspace-of-0.4.0.tar.gz', import.meta.url));
const RESTORE = ['restore', '--from', 'data/warehouse.duckdb'];

/** What README.md beside the archive says of it. */
const JOBS = `
  completed eee1c54ff0b2 job_101, completed 30048f80daa0 job_102, completed 63bf211fa922 job_103,
  failed e66cbf7b1ff3 job_104, active f6ca06445f11 job_105, unknown 0c13dbf44d3d null, refused 35d016b6538f null,
  active e2d03088d394 job_106, completed 1dd17211b59f job_107, archived 920f32857c51 job_108,
  planned 8cad7c9059c3 null`;

let cwd: string;
beforeEach(async () => {
  cwd = await tempDir();
  await promisify(execFile)('tar', ['-xzf', ARCHIVE, '-C', cwd]);
});

const run = (...args: string[]) =>
  callCli(args, {
    cwd,
    env: { READERSHIP_API_KEY: 'adm_not-a-real-key', READERSHIP_MACHINE: 'fixture' },
    now: () => new Date('2026-11-28T16:00:00Z'),
  });

const FILES = ['history.duckdb', 'warehouse.duckdb', 'warehouse.duckdb.wal', 'effects.log'];
const contents = () => Promise.all(FILES.map((file) => readFile(join(cwd, 'data', file))));

describe('a workspace of 0.4', () => {
  it.each(['run', 'status'])(
    'is refused by %s in one sentence with the command that takes it over, and left unchanged',
    async (command) => {
      const before = await contents();
      const { code, stderr } = await run(command);
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /^Readership 0\.4 wrote the files in \S+, which were not changed\. To go on with them: readership restore --from \S+warehouse\.duckdb\n$/,
      );
      expect(await contents()).toEqual(before);
    },
  );

  it('is found by doctor, which says how to take it over and nothing else about its files', async () => {
    const { stdout } = await run('doctor');
    const failed = stdout
      .split('\n')
      .filter((line) => /^fail +(history|state|witness|sends from|dataset)/.test(line));
    expect(failed).toHaveLength(2);
    for (const line of failed)
      expect(line).toMatch(/To go on with them: readership restore --from \S+warehouse\.duckdb$/);
  });

  it('is taken over with every day, job, message, email and decision, and its files are kept', async () => {
    const restored = await run(...RESTORE);
    expect(restored.code, restored.stderr).toBe(0);
    expect(restored.stdout).toContain('the next run loads 3 days that may have changed and 1 missing day.');
    expect((await readdir(join(cwd, 'data'))).sort()).toEqual([
      ...['effects.log.0.4', 'history.duckdb', 'history.duckdb.0.4', 'state.db', 'warehouse.duckdb.0.4'],
      ...['warehouse.duckdb.0.4.wal', 'worker.lock'],
    ]);

    const path = join(cwd, 'data/history.duckdb');
    const sums =
      'SELECT project, count(*)::INT AS n, sum(human)::INT AS human, sum(ai)::INT AS ai, sum(total)::INT AS total';
    await inHistory(path, async (history) => {
      expect(await rowsOf(history, `${sums} FROM page_views GROUP BY project ORDER BY project`)).toEqual([
        { project: 'prj_docs', n: 1_008, human: 73_170, ai: 16_299, total: 89_469 },
        { project: 'prj_sdk', n: 57, human: 12_632, ai: 2_372, total: 15_004 },
      ]);
      const states =
        "SELECT concat_ws(' ', project, state, count(*)) AS told FROM days GROUP BY project, state ORDER BY ALL";
      expect(await valuesOf(history, states)).toEqual([
        ...['prj_docs final 54', 'prj_docs provisional 3', 'prj_sdk final 16', 'prj_sdk provisional 3'],
      ]);
      expect(await valuesOf(history, 'SELECT day FROM day_failures')).toEqual(['2026-11-02']);
      expect(
        await valuesOf(history, "SELECT pages FROM days WHERE project = 'prj_docs' AND day = '2026-10-24'"),
      ).toEqual([0]);
      expect(await valuesOf(history, 'SELECT count(*)::INT AS n FROM notes')).toEqual([3]);
    });
    // Every row is the one that 0.4 had.
    await inDuckDb(async (connection) => {
      const columns = 'SELECT project, day, path, page, human, ai, total';
      for (const [name, file] of [
        ['old', join(cwd, 'data/warehouse.duckdb.0.4')],
        ['new', path],
      ])
        await connection.run(`ATTACH '${file}' AS ${name} (READ_ONLY)`);
      const differ = `FROM (${columns} FROM old.page_views EXCEPT ALL ${columns} FROM new.page_views)`;
      expect((await connection.runAndReadAll(differ)).getRows()).toEqual([]);
    });

    const state = (await openState(join(cwd, 'data'))) ?? expect.fail('there is no state');
    const jobs = readJobs(state, null);
    const told = jobs.map((job) => `${job.state} ${job.reference} ${job.remote_id}`);
    expect(told).toEqual(JOBS.trim().split(/,\s+/));
    expect(jobs.map(({ merged_on }) => merged_on).filter((day) => day !== null)).toEqual(['2026-11-28']);
    expect(jobs.filter((job) => job.closed_on !== null).map(({ id }) => id)).toEqual([9]);
    expect(jobs.find((job) => job.state === 'planned')?.is_approved).toBe(true);
    expect(readMessages(state, 'prj_docs').map((one) => one.state)).toEqual(['sent', 'unknown']);
    const emails = readDeliveries(state).map((email) => email.state);
    expect(emails.sort().join(' ')).toBe('failed failed sent sent sent sent unknown unknown written');
    state.close();
    const witness = await readFile(join(cwd, '.readership.yaml.sent'), 'utf8');
    expect(witness).toMatch(/^\{"workspace":"66146842-2696-49d5-b4d7-fb408c452412","attempt":22\}\n/);
    // What is of unknown outcome, everyone is told.
    expect((await run('status')).stdout).toMatch(/settle 6 --sent/);
    const again = await run('restore', '--from', 'data/warehouse.duckdb.0.4');
    expect(again.code).toBe(1);
    expect(again.stderr).toMatch(/already has a history of this version[^]+readership run\n$/);
  });

  it('that is put back and taken over again does not count as the newest state', async () => {
    expect((await run(...RESTORE)).code).toBe(0);
    const witness = join(cwd, '.readership.yaml.sent');
    const later = (await readFile(witness, 'utf8')).replace('"attempt":22', '"attempt":39');
    await rm(join(cwd, 'data'), { recursive: true });
    await promisify(execFile)('tar', ['-xzf', ARCHIVE, '-C', cwd]);
    await writeFile(witness, later);
    expect((await run(...RESTORE)).code).toBe(0);
    expect(await readFile(witness, 'utf8')).toBe(later);
    const { code, stdout } = await run('adopt');
    expect(code).toBe(0);
    expect(stdout).toContain('Attempts 23 to 39 to send something: unknown.');
  });

  it('is not taken over beside what another workspace sent', async () => {
    const witness = join(cwd, '.readership.yaml.sent');
    const other = '{"workspace":"another","attempt":1}\n';
    await writeFile(witness, other);
    const before = await contents();
    const { code, stderr } = await run(...RESTORE);
    expect(code).toBe(1);
    expect(stderr).toContain('belongs to another workspace');
    expect(await contents()).toEqual(before);
    expect(await readFile(witness, 'utf8')).toBe(other);
  });

  it('is not taken over from the copy that 0.4 published, which may be older', async () => {
    const before = await contents();
    for (const from of [[], ['--from', 'data/history.duckdb']]) {
      const { code, stderr } = await run('restore', ...from);
      expect(code).toBe(1);
      expect(stderr).toMatch(/restore --from \S+warehouse\.duckdb\n$/);
    }
    expect(await contents()).toEqual(before);
  });

  it('is not taken over while 0.4 has it open', async () => {
    await inDuckDb(
      async () => {
        // Another process, because the locks of one process do not keep itself out.
        const { stderr } = await promisify(execFile)(
          process.execPath,
          [join(process.cwd(), 'dist/cli.js'), ...RESTORE],
          { cwd },
        ).catch((error: unknown) => error as { stderr: string });
        expect(stderr).toMatch(
          /^Cannot restore from \S+warehouse\.duckdb: .*node \(PID \d+\) has the file open\.\nClose the program that has the file open, then run the command again\.\n$/,
        );
      },
      join(cwd, 'data/warehouse.duckdb'),
    );
    expect((await readdir(join(cwd, 'data'))).filter((name) => name.startsWith('state.db'))).toEqual([]);
  });

  it('is not taken over if its journal has an attempt that its database lacks', async () => {
    const line = { effect: 'email', event: 'sending', attempt: '2026-11-28T15:30:00.000Z', draw: 3 };
    await appendFile(join(cwd, 'data/effects.log'), `${JSON.stringify(line)}\n`);
    const before = await contents();
    const { code, stderr } = await run(...RESTORE);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /effects\.log has an attempt .+ does not have\. Nothing was changed\. First let Readership 0\.4 store it/,
    );
    expect(await contents()).toEqual(before);
  });

  it('that held pages back has no such choices afterwards, and its journal may name draws', async () => {
    const database = join(cwd, 'data/warehouse.duckdb');
    await answerOf(
      database,
      `INSERT INTO page_choices SELECT * REPLACE ('held-out' AS code) FROM page_choices LIMIT 1`,
    );
    await appendFile(join(cwd, 'data/effects.log'), `${JSON.stringify({ effect: 'draw', draw: 1 })}\n`);
    const { code, stderr } = await run(...RESTORE);
    expect(code, stderr).toBe(0);
    const codes = await inHistory(join(cwd, 'data/history.duckdb'), (history) =>
      valuesOf(history, 'SELECT DISTINCT code FROM choices'),
    );
    expect(codes).not.toContain('held-out');
    expect(codes).toContain('flagged');
  });
});
