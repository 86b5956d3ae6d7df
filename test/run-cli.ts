import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterFile } from './cleanup.js';

const CLI = fileURLToPath(new URL('../dist/cli.js', import.meta.url));

export interface CliOptions {
  readonly cwd: string;
  /** The whole environment of the process, except for PATH and HOME. */
  readonly env?: Readonly<Record<string, string>>;
  /** What is piped in; nothing by default. */
  readonly stdin?: string;
}

/** How a command ended. `code` is null when a signal ended it. */
export interface CliResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running command. */
export interface CliProcess {
  readonly child: ChildProcess;
  readonly result: Promise<CliResult>;
  /** Resolves when its output on either stream matches; rejects if it ends without a match. */
  until(pattern: RegExp): Promise<void>;
}

/** Starts the built command line in a separate process, with pipes for all its streams. */
export function startCli(args: readonly string[], { cwd, env = {}, stdin = '' }: CliOptions): CliProcess {
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
