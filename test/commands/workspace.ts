import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { addDays, dayOf, type Day } from '../../src/day.js';
import { type Sandbox, startSandbox, type WatchedOptions } from '../sandbox/faulty-sandbox.js';
import { type PlatformOptions, rowsOf, servePlatform } from '../platform.js';
import { callCli, type CallOptions, type CliResult } from '../run-cli.js';
import type { TestServer } from '../serve.js';
import { tempDir } from '../temp-dir.js';

/** A key that must never be shown. */
export const KEY = 'adm_secret-Key/0123456789';
export const env = { READERSHIP_API_KEY: KEY };

/** The UTC day this many days ago. */
export const daysAgo = (days: number): Day => addDays(dayOf(new Date()), -days);

/** A small sandbox in real time. */
export const serveSandbox = (options: Partial<WatchedOptions> = {}): Promise<Sandbox> =>
  startSandbox({ now: () => new Date(), apiKey: KEY, firstDay: daysAgo(12), pages: 40, ...options });

/** A directory with a configuration for a sandbox from `serveSandbox`. */
export async function workspaceOf(
  { baseUrl, projectId }: Pick<Sandbox, 'baseUrl' | 'projectId'>,
  settings = '',
): Promise<string> {
  const directory = await tempDir();
  await mkdir(join(directory, 'data'));
  await writeFile(
    join(directory, 'readership.yaml'),
    `baseUrl: ${baseUrl}\nprojects: [{ id: ${projectId}, name: Acme Docs }]\n${settings}`,
  );
  return directory;
}

/** Changes the configuration of a workspace. */
export async function replaceIn(directory: string, from: string | RegExp, to: string): Promise<void> {
  const file = join(directory, 'readership.yaml');
  await writeFile(file, (await readFile(file, 'utf8')).replace(from, to));
}

/** Keeps a copy of a workspace: its configuration, its data and its witness. Returns the directory of the copy. */
export async function keep(directory: string): Promise<string> {
  const kept = await tempDir();
  await cp(directory, kept, { recursive: true });
  return kept;
}

/** Puts a workspace back as it was kept. Made once and put back, it costs a test a hundredth of running commands. */
export async function putBack(directory: string, kept: string): Promise<void> {
  for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true });
  await cp(kept, directory, { recursive: true });
}

/** A platform in real time that has the same number of pages on each of the last days, except for what has changed. */
export const platformOf = (
  days: number,
  pages: number,
  options: Partial<PlatformOptions> = {},
  changed: ReadonlyMap<Day, ReturnType<typeof rowsOf>> = new Map(),
) =>
  servePlatform({
    now: () => new Date(),
    rowsOf: (at) => changed.get(at) ?? (at < daysAgo(days) || at >= daysAgo(0) ? [] : rowsOf(at, pages)),
    ...options,
  });

/** What `platformOf` serves. */
export const platformWorkspace = ({ baseUrl }: TestServer, settings = ''): Promise<string> =>
  workspaceOf({ baseUrl, projectId: 'prj_1' }, settings);

export const historyFile = (directory: string): string => join(directory, 'data', 'history.duckdb');

/** The result of a command that must have ended with this code; its notes say why it did not. */
export function endedWith<Result extends Pick<CliResult, 'code' | 'stderr'>>(code: number, result: Result) {
  expect(result.code, result.stderr).toBe(code);
  return result;
}

/** Runs a command in this process, and checks how it ends. */
export async function callCleanly(args: readonly string[], options: CallOptions): Promise<CliResult> {
  const result = await callCli(args, options);
  await expectCleanEnd(options.cwd, result);
  return result;
}

/** However a command ends, there must be no stack trace, and no key anywhere. */
export async function expectCleanEnd(directory: string, { stdout, stderr }: CliResult, key = KEY) {
  const written = stdout + stderr;
  expect(written).not.toMatch(/^\s+at .+:\d+:\d+\)?$/m);
  expect(written).not.toContain('bug in Readership');
  expect(written).not.toContain(key);
  for (const file of await readdir(directory, { recursive: true, withFileTypes: true }))
    if (file.isFile() && file.name !== '.env') {
      const content = await readFile(join(file.parentPath, file.name));
      expect(content.includes(key), `the key in ${file.name}`).toBe(false);
    }
}
