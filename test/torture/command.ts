import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compiled } from '../compiled.js';
import type { Preloaded } from './preload.js';
import { type KilledChange, killedAt } from './shim.js';

/** What the commands of a trial have in common. */
export interface Task {
  /** The built command. */
  readonly program: string;
  readonly preload: string;
  /** See `buildShim`. */
  readonly shim?: string | undefined;
  readonly directory: string;
  readonly env: Readonly<Record<string, string>>;
}

export type Running = ReturnType<typeof startCommand>;
export type Ended = Awaited<Running['ended']>;

/** Whatever of these a command changes, it may be killed at: both stores, what is written beside them, and the witness. */
const TORN = ['history.duckdb', 'state.db', '.sent'];

/** Starts the built command in a separate process; where there is a shim, it dies at `killed`. */
export function startCommand(
  task: Task,
  args: readonly string[],
  preloaded: Preloaded,
  killed: KilledChange | null = null,
) {
  const { PATH = '', HOME = '' } = process.env;
  const { shim, directory } = task;
  const tearing = shim === undefined || killed === null ? {} : killedAt(shim, killed, directory, TORN);
  const child = spawn(process.execPath, ['--import', task.preload, task.program, ...args], {
    cwd: task.directory,
    env: { PATH, HOME, NO_COLOR: '1', ...task.env, ...tearing, TORTURE_PLAN: JSON.stringify(preloaded) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  /** Of both streams. */
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = once(child, 'close').then(() => ({ code: child.exitCode, signal: child.signalCode, output }));
  return { child, ended };
}

export const runCommand = (task: Task, args: readonly string[], preloaded: Preloaded): Promise<Ended> =>
  startCommand(task, args, preloaded).ended;

/** Compiles `preload.ts` into a file that Node.js can load before the command; returns its URL. */
export async function makePreload(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'readership-torture-'));
  return pathToFileURL(await compiled(new URL('preload.ts', import.meta.url), directory)).href;
}
