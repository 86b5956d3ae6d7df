import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { closeNow, newStore } from '../open-history.js';
import { callHere, runCli, startCli, withMemory } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { endedWith, expectCleanEnd, historyFile } from './workspace.js';

/** The child of a process, as soon as it runs. */
async function childOf(pid = 0): Promise<number> {
  for (;;) {
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
    // Until it executes the command, a child is a copy of its parent, environment and stack included.
    for (const child of children.split(' ').filter((text) => text !== ''))
      if ((await stackOf(child)) !== (await stackOf(String(pid))) && (await runsSql(child)))
        return Number(child);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const mapsOf = (pid: string): Promise<string> => readFile(`/proc/${pid}/maps`, 'utf8');

/** The address of a process's stack, which is random for each program executed. */
const stackOf = async (pid: string): Promise<string | undefined> =>
  /^(\S+)-.*\[stack\]$/m.exec(await mapsOf(pid))?.[1];

/** Whether DuckDB is loaded in a process: its query is at hand. */
const runsSql = async (pid: string): Promise<boolean> => (await mapsOf(pid)).includes('duckdb');

/** A directory with a configuration. */
async function configured(project: string, settings = ''): Promise<string> {
  const directory = await tempDir();
  const text = `baseUrl: http://127.0.0.1:9\nprojects: [{ ${project} }]\n${settings}`;
  await writeFile(join(directory, 'readership.yaml'), text);
  return directory;
}

describe('readership sql', () => {
  let cwd: string;
  beforeAll(async () => {
    cwd = await configured('id: prj_1');
    await mkdir(join(cwd, 'data'));
    const history = await newStore(historyFile(cwd));
    await history.write();
    await closeNow(history);
  });
  const sql = (args: readonly string[], stdin = '') => runCli(['sql', ...args], { cwd, stdin });
  const answer = async (args: readonly string[], stdin = '') => {
    const result = await sql(args, stdin);
    expect(result).toMatchObject({ code: 0, stderr: '' });
    return result.stdout;
  };

  it('reads the query from an argument, even one that begins with a comment, a pipe or a file, and answers the last of several statements, with a note', async () => {
    expect(await answer([], 'SELECT 1e400 AS one;\n')).toBe('one\nInfinity\n');
    expect(await answer(['--format', 'json', '--the answer = 42\nSELECT 42 AS one'])).toContain('{"one":42}');
    const directory = await tempDir();
    await writeFile(join(directory, 'top.sql'), '-- the answer\nSELECT 42 AS answer');
    const output = join(directory, 'answer.csv');
    expect(await answer(['--file', join(directory, 'top.sql'), '--output', output])).toBe('');
    expect(await readFile(output, 'utf8')).toBe('answer\n42\n');
    const several = endedWith(0, await sql(['SELECT 1 AS a; SELECT 2 AS b']));
    expect(several.stdout).toBe('b\n2\n');
    expect(several.stderr).toContain('the last of 2 results');
  });

  it('takes the format from the file name, and refuses an unknown one', async () => {
    const beginning = async (file: string) => {
      await answer(['SELECT 1 AS a', '--output', file]);
      return (await readFile(join(cwd, file), 'latin1')).slice(0, 9);
    };
    const files = ['a.json', 'a.ndjson', 'a.md', 'A.PARQUET', 'a.xlsx'];
    expect(await Promise.all(files.map(beginning))).toEqual([
      '[\n  {"a":',
      '{"a":1}\n',
      '| a |\n| -',
      expect.stringMatching(/^PAR1/),
      expect.stringMatching(/^PK/),
    ]);
    const refused = endedWith(2, await sql(['SELECT 1', '--output', 'a.xls']));
    expect(refused.stderr).toMatch(/^a\.xls: use a name that ends in \.csv, \.json.+ or \.xlsx/);
    expect(await readdir(cwd)).not.toContain('a.xls');
  });

  it('exits cleanly when the reader of a long answer stops reading', async () => {
    const { child, result } = startCli(['sql', 'FROM range(200000)'], { cwd });
    child.stdout.once('data', () => child.stdout.destroy());
    expect(await result).toMatchObject({ code: 0, stderr: '' });
  });

  it.each([
    ['SQL that is none', ['SELEC 1'], 1, /The query failed.*syntax error/s],
    [
      'a function of an extension',
      ["FROM read_xlsx('a.xlsx')"],
      1,
      /"read_xlsx" is in DuckDB's extension excel, which queries here cannot load\. .+docs\/readers\.md\n$/,
    ],
    ['a write to a table', ['DELETE FROM days'], 1, /DELETE is not a read-only statement/],
    ['a query twice', ['SELECT 1', '--file', 'x.sql'], 2, /not both/],
    ['a file that is not there', ['--file', 'nowhere.sql'], 2, /nowhere\.sql/],
    ['a format that is none', ['SELECT 1', '--format', 'xml'], 2, /xml.*table, csv, json/],
    [
      'an output path that cannot be written',
      ['SELECT 1', '--output', 'nowhere/answer.csv'],
      1,
      /Cannot write .*nowhere\/answer\.csv: there is no directory .*nowhere$/m,
    ],
    ['no query', [], 2, /No query/],
    ['a timeout that is none', ['SELECT 1', '--timeout', '1e12s'], 2, /--timeout.*not a duration/],
    ['a timeout that is too long', ['SELECT 1', '--timeout', '9999999h'], 2, /--timeout.*not a duration/],
    ['a device as the output', ['SELECT 1', '--output', '/dev/null'], 1, /not a regular file/],
    ['stdout as a file', ['SELECT 1', '--output', '/dev/stdout'], 1, /not a regular file|symbolic link/],
  ] as const)('%s: one clear message', async (_, args, code, words) => {
    // What is wrong with arguments is found before a query runs; without any, standard input is read.
    const isFoundHere = code === 2 && args.length > 0;
    const result = endedWith(code, await (isFoundHere ? callHere(['sql', ...args], { cwd }) : sql(args)));
    expect(result.stderr).toMatch(words);
    expect(result.stdout).toBe('');
    await expectCleanEnd(cwd, result);
  });

  it.each([
    ['time', ['SELECT sleep_ms(60000)', '--timeout', '100ms'], /longer than 0\.1 s \(--timeout/],
    ['memory', ['SELECT list(range) FROM range(2000000000)'], /more memory than 0\.2 GB/],
    [
      'temporary files',
      ['SELECT count(DISTINCT repeat(md5(range::VARCHAR), 60)) FROM range(2000000)'],
      /more temporary files than 1\.0 GB/,
    ],
  ])('is stopped at its limit of %s, and leaves no temporary file', async (_, args, words) => {
    const temp = await tempDir();
    const result = await runCli(['sql', ...args], { cwd, env: { TMPDIR: temp, ...withMemory(300e6) } });
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toMatch(words);
    expect(await readdir(temp)).toEqual([]);
    expect(await readdir(join(cwd, 'data'))).not.toContain('history.duckdb.tmp');
  });

  it.skipIf(process.platform !== 'linux')('runs in a process whose environment held no secret', async () => {
    const dataDir = `dataDir: ${join(cwd, 'data')}\n`;
    const directory = await configured('id: prj_1, apiKeyEnv: OTHER_KEY', dataDir);
    // A line that cannot be parsed: any process that reads the file fails.
    await mkdir(join(directory, '.env'));
    const secrets = { OTHER_KEY: 'adm_1234567890abc', READERSHIP_SMTP_URL: 'smtp://a:adm_1234567890abc@h' };
    const proxies = {
      HTTPS_PROXY: 'http://ann:adm_1234567890abc@proxy.example:3128',
      NO_PROXY: 'docs.example',
    };
    const { child, result } = startCli(['sql', 'SELECT 1 AS one UNION ALL SELECT sleep_ms(30000)'], {
      cwd: directory,
      env: { ...secrets, ...proxies, KEPT: 'yes' },
    });
    const querying = await childOf(child.pid);
    const environment = await readFile(`/proc/${querying}/environ`, 'latin1');
    expect(environment).toContain('KEPT=yes');
    expect(environment).toContain('NO_PROXY=docs.example');
    expect(environment).not.toContain('adm_1234567890abc');
    child.kill('SIGTERM');
    expect(await result).toMatchObject({
      code: 143,
      stderr: expect.not.stringContaining('Readership itself') as string,
    });
  });

  it.each(['csv', 'parquet'])('--output as %s follows no link, and replaces a file whole', async (format) => {
    const directory = await tempDir();
    const [target, link] = [join(directory, 'target'), join(directory, 'link')];
    const output = join(directory, 'output');
    await writeFile(target, 'kept');
    await symlink(target, link);
    const refused = await sql(['SELECT 1 AS one', '--format', format, '--output', link]);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(/link: it is a symbolic link/);
    expect(await readFile(target, 'utf8')).toBe('kept');
    // Where the unfinished file of an older version would have been.
    await symlink(target, `${output}.unfinished`);
    await writeFile(output, 'before');
    endedWith(0, await sql(['SELECT 1 AS one', '--format', format, '--output', output]));
    expect(await readFile(output, 'latin1')).toMatch(format === 'csv' ? /^one\n1\n$/ : /^PAR1/);
    expect(await readFile(target, 'utf8')).toBe('kept');
    expect((await readdir(directory)).sort()).toEqual(['link', 'output', 'output.unfinished', 'target']);
  });

  it('before anything is loaded says how to load data', async () => {
    const result = await runCli(['sql', 'SELECT 1'], { cwd: await configured('id: prj_1') });
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toMatch(/There is no history yet.*readership export/);
  });
});
