import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

export const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

const usageSchema = z.object({ peakMb: z.number(), calls: z.int().optional() });

/** What a process used, from start to end: its memory without its children, and its processor time with them. */
export interface Measured extends z.infer<typeof usageSchema> {
  readonly elapsedS: number;
  readonly processorS: number;
  /** Number of fsync calls; undefined without strace. */
  readonly fsyncs?: number;
}

export interface Program {
  /** The program and its arguments. */
  readonly command: readonly string[];
  /** Exit codes that are not failures; 0 by default. */
  readonly exits?: readonly number[];
}

/** Node.js with a script, whose use of the machine is measured. */
export const node = (script: string, ...values: readonly (string | number)[]): Program => ({
  command: [process.execPath, '--import', here('usage.js'), script, ...values.map(String)],
});

/** The built command line of a checkout in a workspace. */
export const readershipOf = (checkout: string, directory: string, ...values: readonly string[]): Program =>
  node(join(checkout, 'dist/cli.js'), ...values, '--config', join(directory, 'readership.yaml'));

/** The built command line of this checkout in a workspace. */
export const readership = (directory: string, ...values: readonly string[]): Program =>
  readershipOf(here('..'), directory, ...values);

/** Clock ticks of Linux in a second, for programs. */
const TICKS = 100;

/** The processor time of all children of this process that have ended, and of theirs, in seconds. */
function childrenS(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  // The name, in parentheses, may contain spaces; fields are counted from 1.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[16 - 3]) + Number(fields[17 - 3])) / TICKS;
}

/** Runs a program to its end. Throws if it fails. */
export async function measure({ command, exits = [0] }: Program, counts = false): Promise<Measured> {
  return inTemporaryDirectory(async (directory) => {
    const [usage, trace] = [join(directory, 'usage.json'), join(directory, 'strace.txt')];
    const strace = counts ? ['strace', '-f', '-o', trace, '-e', 'trace=fsync,fdatasync'] : [];
    const [program = '', ...values] = [...strace, ...command];
    const [startedMs, usedS] = [performance.now(), childrenS()];
    const env = { ...process.env, READERSHIP_API_KEY: 'bench-key', BENCH_USAGE: usage };
    const child = spawn(program, values, {
      env: counts ? { ...env, BENCH_CALLS: '1' } : env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const words: Buffer[] = [];
    child.stderr.on('data', (piece: Buffer) => words.push(piece));
    const [code] = (await once(child, 'close')) as [number];
    const elapsedS = (performance.now() - startedMs) / 1000;
    if (!exits.includes(code))
      throw new Error(`${command.join(' ')} ended with ${code}: ${Buffer.concat(words).toString()}`);
    const processorS = childrenS() - usedS;
    const measured = { elapsedS, processorS, ...usageSchema.parse(JSON.parse(readFileSync(usage, 'utf8'))) };
    if (!counts) return measured;
    return { ...measured, fsyncs: readFileSync(trace, 'utf8').match(/^\d+ +f(data)?sync\(/gm)?.length ?? 0 };
  });
}

/** What a server serves: see fill-history.sql, to which `first` and `daily` belong. By default, all paths are viewed daily. */
export interface Served {
  readonly paths: number;
  readonly daily?: number;
  /** 1 by default; then all projects have the same paths. */
  readonly projects?: number;
  readonly first?: string;
  readonly latencyMs?: number;
}

/** Runs `work` with the address of a server in its own process. */
export async function withServer<Result>(
  served: Served,
  work: (baseUrl: string) => Promise<Result>,
): Promise<Result> {
  const server = fork(here('server.ts'), [JSON.stringify(served)]);
  const [baseUrl] = (await once(server, 'message')) as [string];
  try {
    return await work(baseUrl);
  } finally {
    server.disconnect();
    // Its processor time is not that of the next program.
    await once(server, 'exit');
  }
}

export async function inTemporaryDirectory<Result>(
  work: (directory: string) => Promise<Result>,
): Promise<Result> {
  const directory = await mkdtemp(join(tmpdir(), 'readership-bench-'));
  try {
    return await work(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
