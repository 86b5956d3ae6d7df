import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { ConfigurationError, messageOf } from '../errors.js';
import type { Runtime } from './runtime.js';

/** The query to run: the argument, a file, or what is piped in. Undefined on a terminal without one. */
export async function readQuery(
  argument: string | undefined,
  file: string | undefined,
  { workingDirectory }: Runtime,
): Promise<string | undefined> {
  if (argument !== undefined && file !== undefined)
    throw new ConfigurationError('Give the query as an argument or with --file, not both.');
  if (argument !== undefined) return argument;
  if (file !== undefined) return readQueryFile(resolve(workingDirectory, file));
  if (process.stdin.isTTY) return undefined;
  const piped = await readAll(process.stdin);
  if (piped.trim() === '')
    throw new ConfigurationError(
      'No query. Try: readership sql "FROM site_weeks ORDER BY week DESC LIMIT 8"',
    );
  return piped;
}

async function readQueryFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new ConfigurationError(`Cannot read the query from ${path}: ${messageOf(cause)}`, { cause });
  }
}
