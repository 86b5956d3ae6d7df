import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import type { Preloaded } from './preload.js';

/** What the commands of a trial have in common. */
export interface Task {
  /** The built command. */
  readonly program: string;
  readonly preload: string;
  readonly directory: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Both streams. */
  readonly output: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

/** Starts the built command in a separate process. */
export function startCommand(task: Task, args: readonly string[], preloaded: Preloaded): Running {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, ['--import', task.preload, task.program, ...args], {
    cwd: task.directory,
    env: { PATH, HOME, NO_COLOR: '1', ...task.env, TORTURE_PLAN: JSON.stringify(preloaded) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = once(child, 'close').then(([code, signal]: unknown[]) => ({
    ...{ code: code as number | null, signal: signal as NodeJS.Signals | null },
    output,
  }));
  return { child, ended };
}

export const runCommand = (task: Task, args: readonly string[], preloaded: Preloaded): Promise<Ended> =>
  startCommand(task, args, preloaded).ended;

/** Compiles `preload.ts` into a file that Node.js can load before the command; returns its URL. */
export async function makePreload(): Promise<string> {
  const source = await readFile(new URL('preload.ts', import.meta.url), 'utf8');
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023 },
  });
  const file = join(await mkdtemp(join(tmpdir(), 'readership-torture-')), 'preload.mjs');
  await writeFile(file, outputText);
  return pathToFileURL(file).href;
}
