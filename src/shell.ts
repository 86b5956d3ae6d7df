import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { timeLimit } from './sleep.js';

/** A command for `sh -c`. */
export interface ShellCommand {
  readonly command: string;
  readonly directory: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** How long a command may take to end after SIGTERM. */
const GRACE_MS = 2_000;

/**
 * Runs a command, and passes the lines of its output to `onLine`. Returns why it failed; undefined if it succeeded. After
 * `timeoutMs`, it is ended with all processes of its group. Also if `signal` aborts: then this throws its reason.
 */
export async function runShell(
  { command, directory, environment }: ShellCommand,
  {
    timeoutMs,
    signal,
    onLine,
  }: { timeoutMs: number; signal: AbortSignal; onLine: ((line: string) => void) | undefined },
): Promise<string | undefined> {
  signal.throwIfAborted();
  const child = spawn('sh', ['-c', command], {
    cwd: directory,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
    // It leads a process group of its own.
    detached: true,
  });
  const outputs = [child.stdout, child.stderr];
  for (const input of outputs) createInterface({ input }).on('line', (line) => onLine?.(line));
  let killing: NodeJS.Timeout | undefined;
  const end = () => {
    signalGroup(child.pid, 'SIGTERM');
    killing = setTimeout(() => {
      signalGroup(child.pid, 'SIGKILL');
      // A process that left the group may still hold them.
      for (const output of outputs) output.destroy();
    }, GRACE_MS);
  };
  const limit = timeLimit(timeoutMs, signal);
  limit.addEventListener('abort', end);
  try {
    const ended = await new Promise<string>((resolve, reject) => {
      child.on('error', reject).on('close', (code, killedBy) => {
        resolve(
          code === null ? `was ended by ${killedBy}` : code === 0 ? '' : `ended with exit code ${code}`,
        );
      });
    });
    signal.throwIfAborted();
    if (limit.aborted) return `took longer than ${timeoutMs / 60_000} minutes and was stopped`;
    return ended === '' ? undefined : ended;
  } finally {
    limit.removeEventListener('abort', end);
    clearTimeout(killing);
  }
}

function signalGroup(leader: number | undefined, name: NodeJS.Signals): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, name);
  } catch {
    // All of them have ended.
  }
}
