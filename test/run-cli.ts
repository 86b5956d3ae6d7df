import { type Command, CommanderError } from 'commander';
import { spawn } from 'node:child_process';
import { setMaxListeners } from 'node:events';
import { existsSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { commandLine } from '../src/commands/program.js';
import type { Runtime } from '../src/app/workspace.js';
import { exitCodeOf } from '../src/errors.js';
import { errorWords } from '../src/storage.js';
import { Output } from '../src/terminal/output.js';
import { afterFile } from './cleanup.js';

export const CLI = fileURLToPath(new URL('../dist/cli.js', import.meta.url));

export interface CliOptions {
  readonly cwd: string;
  /** The whole environment of the process, except for PATH and HOME. */
  readonly env?: Readonly<Record<string, string>>;
  /** What is piped in; nothing by default. */
  readonly stdin?: string;
}

export interface CallOptions extends CliOptions {
  readonly now?: () => Date;
}

/** How a command ended. `code` is null when a signal ended it. */
export interface CliResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The environment of a process that believes that its machine has this many bytes of memory. */
export const withMemory = (bytes: number) => ({
  NODE_OPTIONS: `--import=data:text/javascript,process.constrainedMemory=()=>${bytes}`,
});

/** Starts the built command line in a separate process, with pipes for all its streams. */
export function startCli(args: readonly string[], { cwd, env = {}, stdin = '' }: CliOptions) {
  if (!existsSync(CLI)) throw new Error(`${CLI} is not built: npm run build`);
  const { PATH = '', HOME = '', COVERAGE_OF_PROCESSES: directory } = process.env;
  const coverage = directory === undefined ? {} : { NODE_V8_COVERAGE: directory };
  const child = spawn(process.execPath, [CLI, ...args], { cwd, env: { PATH, HOME, ...coverage, ...env } });
  afterFile(() => child.kill('SIGKILL'));
  child.stdin.on('error', () => undefined);
  child.stdin.end(stdin);
  const written = { stdout: '', stderr: '' };
  const waiting = new Set<() => void>();
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      written[name] += text;
      for (const look of waiting) look();
    });
  const result = new Promise<CliResult>((resolve) => {
    child.on('close', (code, signal) => {
      resolve({ code, signal, ...written });
    });
  });
  /** Resolves when its output on either stream matches; rejects if it ends without a match. */
  const until = (pattern: RegExp) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!pattern.test(written.stdout) && !pattern.test(written.stderr)) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
      void result.then(() => {
        reject(new Error(`it ended without ${pattern.source}:\n${written.stdout}\n${written.stderr}`));
      });
    });
  return { child, result, until };
}

export const runCli = (args: readonly string[], options: CliOptions): Promise<CliResult> =>
  startCli(args, options).result;

/** What a command gets in this process, and the streams to which it writes. */
export function runtimeIn(workingDirectory: string, given: Partial<Runtime> = {}) {
  const [out, err] = [new PassThrough(), new PassThrough()];
  const { signal } = new AbortController();
  // Each waiting request listens to it.
  setMaxListeners(0, signal);
  const output = new Output(out, err, false);
  const runtime: Runtime = {
    ...{ workingDirectory, environment: {}, now: () => new Date(), signal, output, ...given },
  };
  return { out, err, runtime };
}

/** Commands that start processes of their own, wait for a signal or read standard input. */
const NEEDS_PROCESS = new Set(['sql', 'start', 'serve', 'mcp', 'sandbox']);

/**
 * Runs a command in this process, which takes half of the processor time of `runCli`. For tests of what a command does, not of
 * how its process starts, ends or shares files with others. An unexpected error is thrown.
 */
export const callCli = (args: readonly string[], options: CallOptions): Promise<CliResult> =>
  NEEDS_PROCESS.has(args[0] ?? '') ? runCli(args, options) : callHere(args, options);

/** As `callCli`, for any command: also for one that is refused before it needs a process. */
export async function callHere(args: readonly string[], options: CallOptions): Promise<CliResult> {
  const { cwd, env = {}, now = () => new Date() } = options;
  const { PATH = '', HOME = '' } = process.env;
  const { out, err, runtime } = runtimeIn(cwd, { environment: { PATH, HOME, ...env }, now });
  const written = { stdout: '', stderr: '' };
  for (const [name, stream] of [['stdout', out] as const, ['stderr', err] as const])
    stream.setEncoding('utf8').on('data', (text: string) => {
      written[name] += text;
    });
  let code = 0;
  try {
    const program = await commandLine(async (work, { options: given }) => {
      runtime.output.repeatOptions(given);
      code = await work(runtime);
    }, args[0]);
    write(program, out, err);
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    const words = errorWords(error);
    if (error instanceof CommanderError) code = error.exitCode === 0 ? 0 : 2;
    else if (words !== undefined) {
      runtime.output.note(words);
      code = exitCodeOf(error);
    } else throw error;
  }
  return { code, signal: null, ...written };
}

/** Writes help and what is wrong with the arguments. */
function write(command: Command, out: PassThrough, err: PassThrough): void {
  command.configureOutput({ writeOut: (text) => out.write(text), writeErr: (text) => err.write(text) });
  for (const child of command.commands) write(child, out, err);
}
