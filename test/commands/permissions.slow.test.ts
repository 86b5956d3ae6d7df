import { execFile } from 'node:child_process';
import { chmod, mkdir, readdir, readlink, rm, rmdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { describe, expect, it } from 'vitest';
import { callCli, CLI, type CliResult } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { daysAgo, endedWith, env, KEY, historyFile, serveSandbox, workspaceOf } from './workspace.js';
import { useSmallReports } from '../small-reports.js';

const SETTINGS = `
mail: { from: docs@example.com }
reports: { weekly: { to: [lead@example.com] } }
publish: { parquet: dataset }
`;

/** Expected modes of files and directories in a workspace, with every umask; the first match applies. */
const MODES: readonly (readonly [name: RegExp, mode: string])[] = [
  [/^data\/history\.duckdb$/, '444'],
  [/^(data|dataset)$/, '700'],
  [/^dataset\/.+\.parquet$/, '644'],
  [/^dataset\/((views|days)(\/project=\w+(\/month=\d{4}-\d{2})?)?)$/, '755'],
  [/^data\/(outbox|reports|reports\/prj_sandbox|sandbox)$/, '700'],
  [/^data\/.+\.(db|lock|duckdb|html|eml|json)$/, '600'],
];

const failed = z.object({ code: z.int().nullable(), stdout: z.string(), stderr: z.string() });

/** That of most systems, between these, is in the other tests. */
const UMASKS = [0o000, 0o077];

const modeOf = (mode: number): string => (mode & 0o7777).toString(8).padStart(3, '0');
const fileMode = async (...path: string[]): Promise<string> => modeOf((await stat(join(...path))).mode);

async function runWith(umask: number, args: readonly string[], cwd: string): Promise<CliResult> {
  const own = process.umask(umask);
  try {
    return await callCli(args, { cwd, env });
  } finally {
    process.umask(own);
  }
}

async function expectModes(cwd: string, directories: readonly string[]): Promise<string[]> {
  const names: string[] = [];
  for (const directory of directories) {
    const entries = await readdir(join(cwd, directory), { recursive: true, withFileTypes: true });
    names.push(directory, ...entries.map((entry) => relative(cwd, join(entry.parentPath, entry.name))));
  }
  for (const name of names) {
    const [, mode] = MODES.find(([pattern]) => pattern.test(name)) ?? [];
    expect(`${await fileMode(cwd, name)} ${name}`).toBe(`${mode ?? 'unexpected'} ${name}`);
  }
  return names;
}

describe.each(UMASKS.map((umask) => [modeOf(umask), umask] as const))('with the umask %s', (_, umask) => {
  it('what a run writes is private, except the history and the dataset inside their directories', async () => {
    const cwd = await useSmallReports(await workspaceOf(await serveSandbox(), SETTINGS));
    await rmdir(join(cwd, 'data'));
    expect(await runWith(umask, ['run'], cwd)).toMatchObject({ code: 0 });
    const names = await expectModes(cwd, ['data', 'dataset']);
    for (const [pattern] of MODES.filter(([, mode]) => mode !== '700'))
      expect(names.some((name) => pattern.test(name))).toBe(true);
  });

  it('init makes .env private, and lets the umask decide for the configuration', async () => {
    const cwd = await tempDir();
    await runWith(umask, ['init'], cwd);
    expect(await fileMode(cwd, '.env')).toBe('600');
    expect(await fileMode(cwd, 'readership.yaml')).toBe(modeOf(0o666 & ~umask));
  });
});

describe('existing files', () => {
  it('of the history and the state get their modes; directories keep theirs, and those in a dataset follow it', async () => {
    const cwd = await workspaceOf(await serveSandbox(), SETTINGS);
    await mkdir(join(cwd, 'dataset'));
    await chmod(join(cwd, 'dataset'), 0o2770);
    await chmod(join(cwd, 'data'), 0o750);
    endedWith(0, await runWith(0o022, ['export'], cwd));
    for (const name of ['.', 'views/project=prj_sandbox', 'views'])
      expect(await fileMode(cwd, 'dataset', name)).toBe(name === '.' ? '2770' : '2775');
    await chmod(historyFile(cwd), 0o666);
    endedWith(0, await runWith(0o022, ['export', '--reload', '--from', daysAgo(1)], cwd));
    expect(await fileMode(historyFile(cwd))).toBe('444');
    expect(await fileMode(cwd, 'data')).toBe('750');
  });
});

it('doctor warns about a .env that others can read', async () => {
  const cwd = await useSmallReports(await workspaceOf(await serveSandbox()));
  await writeFile(join(cwd, '.env'), `READERSHIP_API_KEY=${KEY}\n`);
  for (const mode of [0o600, 0o640, 0o604]) {
    await chmod(join(cwd, '.env'), mode);
    const { stdout } = endedWith(0, await callCli(['doctor'], { cwd }));
    expect(stdout).toMatch(mode === 0o600 ? /^pass {2}secrets /m : /^warn {2}secrets .+chmod 600/m);
  }
});

describe('for another user', () => {
  const USER = 65_534;
  const isRoot = process.getuid?.() === 0;
  /** Runs a command as an ordinary user, for whom permissions count. */
  const runAs = async (cwd: string, ...args: string[]) => {
    const user = isRoot ? { uid: USER, gid: USER } : {};
    const ended = promisify(execFile)(process.execPath, [CLI, ...args], { cwd, ...user });
    return ended.then(
      (result) => ({ code: 0, ...result }),
      (error: unknown) => failed.parse(error),
    );
  };

  it('an unreadable .env stops only what needs a key, and unreadable data are no bug', async (context) => {
    const cwd = await workspaceOf(await serveSandbox());
    endedWith(0, await runWith(0o022, ['export'], cwd));
    if (isRoot) await promisify(execFile)('chown', ['-R', `${USER}:${USER}`, cwd]);
    if ((await runAs(cwd, '--version')).code !== 0) return context.skip('the program cannot be read');
    await writeFile(join(cwd, '.env'), `READERSHIP_API_KEY=${KEY}\n`);
    await chmod(join(cwd, '.env'), 0o000);
    const history = join('data', 'history.duckdb');
    for (const args of [['adopt'], ['restore'], ['restore', '--from', history], ['report']])
      endedWith(0, await runAs(cwd, ...args));
    // There is nothing to change here, which is all that is wrong.
    for (const args of [
      ['improve', '--skip', '/no-page'],
      ['jobs', 'settle', '1', '--merged'],
      ['report', 'resolve', 'weekly', '--delivered', 'docs@example.com'],
    ])
      expect(endedWith(2, await runAs(cwd, ...args)).stderr, args.join(' ')).not.toContain('.env');
    expect(endedWith(2, await runAs(cwd, 'export')).stderr).toMatch(/Cannot read .*\.env/);

    await chmod(join(cwd, 'data'), 0o000);
    for (const args of [['restore'], ['restore', '--from', join(cwd, 'data', 'x')], ['run'], ['status']]) {
      const { code, stderr } = await runAs(cwd, ...args);
      expect(code, args.join(' ')).not.toBe(0);
      expect(stderr, args.join(' ')).not.toMatch(/bug in Readership|Load it first/);
    }
    await chmod(join(cwd, 'data'), 0o700);
  });

  it('each night replaces the history, which is read-only and behind a link, and removes what a killed one left', async (context) => {
    const cwd = await workspaceOf(await serveSandbox());
    const [data, elsewhere] = [join(cwd, 'data'), join(cwd, 'elsewhere')];
    await writeFile(join(cwd, '.env'), `READERSHIP_API_KEY=${KEY}\n`);
    await mkdir(elsewhere);
    await symlink(join(elsewhere, 'history.duckdb'), historyFile(cwd));
    if (isRoot) await promisify(execFile)('chown', ['-R', `${USER}:${USER}`, cwd]);
    if ((await runAs(cwd, '--version')).code !== 0) return context.skip('the program cannot be read');

    endedWith(0, await runAs(cwd, 'export', '--to', daysAgo(2)));
    const first = await stat(historyFile(cwd));
    expect(modeOf(first.mode)).toBe('444');
    const left = join(elsewhere, 'history.duckdb.next-1');
    await mkdir(`${left}.tmp`);
    for (const name of [left, `${left}.wal`, join(`${left}.tmp`, 'duckdb_temp_storage_DEFAULT-0.tmp')])
      await writeFile(name, 'of a killed process', { mode: 0o444 });
    if (isRoot) await promisify(execFile)('chown', ['-R', `${USER}:${USER}`, elsewhere]);
    endedWith(0, await runAs(cwd, 'export'));

    expect(await readlink(historyFile(cwd))).toBe(join(elsewhere, 'history.duckdb'));
    expect(await readdir(elsewhere)).toEqual(['history.duckdb']);
    expect((await readdir(data)).filter((name) => name.includes('.next-'))).toEqual([]);
    const last = await stat(historyFile(cwd));
    expect({ isNew: last.ino !== first.ino, mode: modeOf(last.mode) }).toEqual({ isNew: true, mode: '444' });
    const { stdout } = await runAs(cwd, 'sql', 'SELECT max(day) AS day FROM days');
    expect(stdout).toBe(`day\n${daysAgo(1)}\n`);
  });
});

it('a data directory that is a file, or a link to nothing, is named as such', async () => {
  const cwd = await workspaceOf(await serveSandbox());
  await rmdir(join(cwd, 'data'));
  const makers = [() => writeFile(join(cwd, 'data'), ''), () => symlink('nowhere', join(cwd, 'data'))];
  for (const make of makers) {
    await make();
    for (const args of [['status'], ['sql', 'SELECT 1'], ['restore'], ['run']]) {
      const { stderr } = endedWith(1, await runWith(0o022, args, cwd));
      expect(stderr).toMatch(
        /The data directory .+ is (not a directory|a link to a directory that does not exist)/,
      );
    }
    await rm(join(cwd, 'data'));
  }
});

it('too few open files to load the program end it with a sentence', async () => {
  const cwd = await workspaceOf(await serveSandbox());
  const ends = [18, 21, 24, 27, 30].map(async (limit) => {
    const line = `ulimit -n ${limit} && exec "${process.execPath}" "${CLI}" status`;
    const { stderr } = failed.parse(
      await promisify(execFile)('sh', ['-c', line], { cwd }).catch((error: unknown) => error),
    );
    return stderr;
  });
  // With less, Node.js itself does not start.
  const ours = (await Promise.all(ends)).filter((words) => /\/dist\/\w+\/\w+-\w+\.js/.test(words));
  expect(ours.length).toBeGreaterThan(0);
  for (const words of ours) {
    expect(words).toMatch(/Too many files are open: raise the limit/);
    expect(words).not.toMatch(/\n {4}at /);
  }
});
