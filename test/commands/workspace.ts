import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { addDays, dayOf, type Day } from '../../src/day.js';
import { type Sandbox, startSandbox, type WatchedOptions } from '../sandbox/faulty-sandbox.js';
import type { CliResult } from '../run-cli.js';
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

export const liveFile = (directory: string): string => join(directory, 'data', 'warehouse.duckdb');

/** However a command ends, there must be no stack trace, and no key anywhere. */
export async function expectCleanEnd(
  directory: string,
  { stdout, stderr }: CliResult,
  key = KEY,
): Promise<void> {
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
