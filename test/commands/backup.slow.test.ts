import { chmod, copyFile, cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { inDuckDb } from '../duckdb.js';
import { expectWhole } from '../export/stored-days.js';
import { changeHistory, inHistory, rowsOf, valuesOf } from '../open-history.js';
import { startCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { openSite, type Site } from './site.js';
import { callCleanly, daysAgo, endedWith, historyFile } from './workspace.js';

const SETTINGS = `
history: { requestsPerHour: 400 }
improve: { mode: apply, minWeeklyViews: 1, maxJobsPerWeek: 3 }
mail: { from: docs@example.com }
reports: { weekly: { to: [docs@example.com] } }
`;

const TABLES =
  "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND schema_name = 'main' ORDER BY ALL";

type Rows = Awaited<ReturnType<typeof rowsOf>>;

/** Every table of the history, row by row. */
const contentOf = (cwd: string): Promise<Record<string, Rows>> =>
  inHistory(historyFile(cwd), async (history) => {
    await expectWhole(history);
    const tables: Record<string, Rows> = {};
    for (const name of await valuesOf(history, TABLES).then((names) => names.map(String)))
      tables[name] = await rowsOf(history, `FROM ${name} ORDER BY ALL`);
    return tables;
  });

/** As a kill during DuckDB's own checkpoint left it: some of a block's pages are new, the others old. */
const torn = (bytes: Buffer): Buffer => Buffer.from(bytes).fill(0, 12_288, 12_288 + 32 * 4_096);

describe('a workspace with a backup', () => {
  let site: Site;
  let before: Record<string, Rows>;
  let backup: string;

  const runIn = (cwd: string, args: readonly string[], machine = 'old') =>
    callCleanly(args, { cwd, env: { ...site.env, READERSHIP_MACHINE: machine } });
  /** An empty machine, with the configuration. */
  async function newMachine(dataDir = 'data'): Promise<string> {
    const cwd = await tempDir();
    const text = await readFile(join(site.cwd, 'readership.yaml'), 'utf8');
    await writeFile(join(cwd, 'readership.yaml'), `${text}dataDir: ${dataDir}\n`);
    await copyFile(join(site.cwd, '.readership.yaml.sent'), join(cwd, '.readership.yaml.sent'));
    return cwd;
  }
  /** What arrived at the platform and the mail server. */
  const effects = () => [site.sandbox.inspect().jobs.length, site.emails()];

  /** Checks that every table is as before. */
  async function expectRestored(cwd: string): Promise<void> {
    const restored = await contentOf(cwd);
    expect(Object.keys(restored)).toEqual(Object.keys(before));
    const others = ['runs', 'workspace'];
    for (const [table, rows] of Object.entries(before))
      if (!others.includes(table)) expect(restored[table], table).toEqual(rows);
    expect(restored['runs']).toEqual(before['runs']);
  }

  beforeAll(async () => {
    backup = await tempDir();
    site = await openSite({ firstDay: daysAgo(60), pages: 40 }, SETTINGS);
    endedWith(0, await runIn(site.cwd, ['run']));
    before = await contentOf(site.cwd);
    for (const table of ['days', 'jobs', 'emails', 'runs'])
      expect(before[table]?.length, table).toBeGreaterThan(0);
    await cp(join(site.cwd, 'data', 'history.duckdb'), join(backup, 'history.duckdb'));
    expect(effects()).toEqual([3, 1]);
  });

  it('is restored on an empty machine as docs/backup.md says, sentence by sentence', async () => {
    const page = await readFile(join(import.meta.dirname, '../../docs/backup.md'), 'utf8');
    const [, section = ''] = /## A new machine\n([^]*?)\n## /.exec(page) ?? [];
    const commands = [...section.matchAll(/^(?:mkdir|cp|readership) .+$/gm)].map(([line]) => line);
    const restoring = 'readership restore --from /backup/history-2026-11-20.duckdb';
    expect(commands).toEqual([restoring, 'readership adopt', 'readership run']);
    let unproved = section.replaceAll(/```[^]*?```/g, '').replaceAll(/\s+/g, ' ');
    const says = (sentence: string) => {
      expect(unproved).toContain(sentence);
      unproved = unproved.replace(sentence, '');
    };

    says(
      'Install Readership, and copy `readership.yaml`, `.readership.yaml.sent`, `.env`, `reports/` and `templates/` into an empty directory. Then:',
    );
    const cwd = await newMachine();
    const run = (...args: string[]) => runIn(cwd, args, 'new');
    const restored = endedWith(0, await run('restore', '--from', join(backup, 'history.duckdb')));
    expect(restored.stdout).toMatch(/the next run loads .+\.$/m);
    await expectRestored(cwd);
    // It can be read at once.
    expect((await run('sql', 'SELECT count(*) AS days FROM site_days')).stdout).toContain('60');
    expect((await run('status')).stdout).toMatch(/sends from +old:/);
    const serving = startCli(['serve', '--port', '0'], { cwd, env: site.env });
    await serving.until(/http:\/\//);
    serving.child.kill();
    await serving.result;
    const end =
      /^Nothing is sent from new:.+ sends from old:.+ stop it there and run: readership adopt.*\nThen: readership run$/m;
    expect(restored.stdout).toMatch(end);
    says('The workspace still belongs to the old machine, so nothing is sent before `adopt`.');
    expect(await run('run')).toMatchObject({ code: 1 });
    expect(effects()).toEqual([3, 1]);
    expect(await run('adopt')).toMatchObject({ code: 0 });
    endedWith(0, await run('run'));
    expect(effects()).toEqual([3, 1]);
    const after = await contentOf(cwd);
    const isFinal = (row: Rows[number]) => row['state'] === 'final';
    expect(after['days']?.filter(isFinal)).toEqual(before['days']?.filter(isFinal));
    expect(unproved.trim()).toBe('');
  });

  it('changes nothing, here or on an empty machine, if the backup is missing, unusable or a directory', async () => {
    const [empty, files] = [await newMachine('nested/data'), await tempDir()];
    const history = await readFile(join(backup, 'history.duckdb'));
    const at = (name: string) => join(files, name);
    await mkdir(at('empty'));
    await writeFile(at('text'), 'no database at all'.repeat(2_000));
    await writeFile(at('cut'), history.subarray(0, 90_000));
    await writeFile(at('torn'), torn(history));
    await cp(join(site.cwd, 'data', 'state.db'), at('state.db'));
    await inDuckDb((connection) => connection.run('CREATE TABLE sales AS SELECT 1 AS id'), at('sales'));
    await writeFile(at('without'), history);
    await cp(join(backup, 'history.duckdb'), at('logged'));
    await chmod(at('logged'), 0o644);
    await inDuckDb(
      (connection) => connection.run('PRAGMA disable_checkpoint_on_shutdown; CREATE TABLE mine (id INT)'),
      at('logged'),
    );
    await changeHistory(at('without'), 'DELETE FROM internal.saved_state');
    const contents = async () => {
      const names = await readdir(join(site.cwd, 'data'));
      return [names, await readFile(historyFile(site.cwd))];
    };
    const unchanged = await contents();
    for (const [from, words, machines] of [
      [[], /There is no history .+history\.duckdb to restore from/, [empty]],
      [['--from', at('absent')], /There is no .+absent to restore from/, [empty, site.cwd]],
      [['--from', at('text')], /Cannot restore from .+text/, [empty, site.cwd]],
      [['--from', at('cut')], /Cannot restore from .+cut/, [empty, site.cwd]],
      [['--from', at('torn')], /Cannot restore from .+torn/, [empty, site.cwd]],
      [
        ['--from', at('state.db')],
        /state\.db is a file of SQLite, as a state is, and not a history\..+ with a history\.duckdb$/m,
        [empty, site.cwd],
      ],
      [['--from', at('sales')], /sales is not a history.+Use another file: readership restore/, [empty]],
      [['--from', at('without')], /without carries no state, and the one in .+ is missing/, [empty]],
      [['--from', at('empty')], /empty is not a file, so not a history/, [empty, site.cwd]],
    ] as const)
      for (const cwd of machines) {
        const { stderr } = endedWith(1, await runIn(cwd, ['restore', ...from]));
        expect(stderr).toMatch(words);
        expect(stderr).toContain('Nothing was changed');
      }
    const logged = endedWith(1, await runIn(empty, ['restore', '--from', at('logged')]));
    expect(logged.stderr).toMatch(/left a log that does not belong to it\..+: rm '.+logged\.wal'$/m);
    expect(await readdir(empty)).toEqual(['.readership.yaml.sent', 'readership.yaml']);
    expect(await contents()).toEqual(unchanged);
  });
});
