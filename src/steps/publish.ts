import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { counted } from '../format/numbers.js';
import { type DatasetChange, DatasetError, datasetVersion, publishDataset } from '../history/dataset.js';
import { timeLimit } from '../sleep.js';
import { finishedDataset, recordDataset } from '../state/workspace.js';
import type { Parts, ShellCommand, StepResult } from './step.js';

/** The longest time that `publish.then` may take. */
const MAX_THEN_MS = 3_600_000;

interface PublishOptions {
  /** Whether to write everything again. */
  readonly isWhole?: boolean;
  /** How long `publish.then` may take. */
  readonly maxThenMs?: number;
}

/**
 * Writes the Parquet dataset, and runs `publish.then`. Only when both succeeded is its version finished, so after a failure
 * or an interruption the next publication does both again. The detail is undefined if there is no dataset, or if it is up
 * to date.
 */
export async function publishStep(
  { workspace, state, sender, store, session }: Parts,
  { isWhole = false, maxThenMs = MAX_THEN_MS }: PublishOptions = {},
): Promise<StepResult<DatasetChange | undefined>> {
  const { dataset } = workspace;
  if (dataset === undefined) return { detail: undefined, summary: 'no dataset is configured' };
  const { location, then } = dataset;
  const { signal, observer } = session;
  const version = await datasetVersion(store, dataset, then?.command);
  const finished = finishedDataset(state);
  if (!isWhole && version === finished)
    return { detail: undefined, summary: 'nothing changed since the last time' };
  // The original publishes there.
  const otherPlace = sender.otherPlace();
  if (otherPlace !== undefined) throw otherPlace;
  const change = await publishDataset(store, dataset, { isWhole, mayCreate: finished === null, signal });
  if (then !== undefined) {
    const failure = await runShell(then, { timeoutMs: maxThenMs, signal, onLine: observer.onThenOutput });
    if (failure !== undefined)
      throw new DatasetError(
        `The Parquet dataset ${location} is written, but publish.then ${failure}; it is run again with the next publication.`,
      );
  }
  await recordDataset(state, version);
  return { detail: change, summary: datasetSummary(change) };
}

/** The changes to a dataset, without a final period. */
export const datasetSummary = ({ files, written, removed }: DatasetChange): string =>
  `${counted(files, 'file')}, ${written} written, ${removed} removed`;

/** How long a command may take to end after SIGTERM. */
const GRACE_MS = 2_000;

/**
 * Runs a command, and passes the lines of its output to `onLine`. Returns why it failed; undefined if it succeeded. After
 * `timeoutMs`, it is ended with all processes of its group. Also if `signal` aborts: then this throws its reason.
 */
async function runShell(
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
