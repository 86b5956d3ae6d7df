import { execFile, spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { cp, readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { z } from 'zod';
import { afterFile } from '../cleanup.js';
import type { CliResult } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const run = promisify(execFile);

const packed = z.tuple([
  z.object({
    filename: z.string(),
    files: z.array(z.object({ path: z.string() })),
  }),
]);
const manifest = z.object({ files: z.array(z.string()) });

/** The digest of each file in a directory, but for databases: DuckDB gives each its own id. */
async function digests(directory: string): Promise<Record<string, string>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.name.endsWith('.duckdb'));
  const found = files.map(async ({ parentPath, name }) => {
    const path = join(parentPath, name);
    return [relative(directory, path), hash('sha256', await readFile(path))] as const;
  });
  return Object.fromEntries(await Promise.all(found));
}

/** What a process gets besides `PATH` and `HOME`. */
export interface InstalledOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** The package, installed from its tarball in an empty directory, and used from there. */
export type Installed = Awaited<ReturnType<typeof install>>;

/** Packs and installs the package once, until the tests of the file are over. */
export async function install() {
  const [source, home] = [await tempDir(), await tempDir()];
  const { files: listed } = manifest.parse(JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')));
  const names = listed.filter((name) => !/^!|^dist$/.test(name)).map((name) => name.replace(/\/\*.*/, ''));
  for (const name of ['package.json', 'README.md', 'LICENSE', ...names])
    await cp(join(ROOT, name), join(source, name), { recursive: true });
  const dist = join(source, 'dist');
  const build = () => run(process.execPath, ['esbuild.config.js', dist], { cwd: ROOT });
  await build();
  const before = await digests(dist);
  await build();
  expect(await digests(dist), 'a build is reproducible byte for byte').toEqual(before);
  const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json'], { cwd: source });
  const [tarball] = packed.parse(JSON.parse(stdout));
  const options = [
    '--global',
    '--ignore-scripts',
    '--prefix',
    home,
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
  ];
  const { stderr } = await run('npm', ['install', ...options, join(source, tarball.filename)], { cwd: home });
  expect(stderr, 'it asks nobody about scripts').toBe('');
  const program = join(home, 'bin/readership');
  const environment = { PATH: `${join(home, 'bin')}:${process.env['PATH'] ?? ''}`, HOME: home };
  const start = (args: readonly string[], { cwd = home, env = {} }: InstalledOptions = {}) => {
    const child = spawn(program, args, { cwd, env: { ...environment, ...env } });
    afterFile(() => child.kill('SIGKILL'));
    return child;
  };
  /** How a command ended. */
  const call = (args: readonly string[], options?: InstalledOptions): Promise<CliResult> => {
    const child = start(args, options);
    child.stdin.end();
    const written = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => (written[name] += text));
    return new Promise((resolve) => {
      child.on('close', (code, signal) => resolve({ code, signal, ...written }));
    });
  };
  /** What a command that must succeed writes to standard output. */
  const output = async (args: readonly string[], options?: InstalledOptions): Promise<string> => {
    const { code, stdout, stderr } = await call(args, options);
    expect(code, `readership ${args.join(' ')}: ${stderr}`).toBe(0);
    return stdout;
  };
  return {
    home,
    program,
    environment,
    files: new Set(tarball.files.map(({ path }) => path)),
    start,
    call,
    output,
  };
}
