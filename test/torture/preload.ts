/**
 * Loaded into a command before its first line (`node --import`): gives it the clock of the trial, and kills it at the
 * point that the trial has chosen. The command itself is unchanged, exactly as users run it.
 */
import { createRequire, syncBuiltinESMExports } from 'node:module';
import files from 'node:fs/promises';
import timers from 'node:timers';
import timerPromises from 'node:timers/promises';
import type { ClockSetting } from './clock.js';

/** The `point`-th statement or change of a file, counted from 1: before it begins, or so long after. */
export interface KillPoint {
  readonly point: number;
  readonly delayMs: number | null;
  readonly signal: 'SIGKILL' | 'SIGTERM';
}

export interface Preloaded {
  readonly clock: ClockSetting;
  readonly kill: KillPoint | null;
}

type Call = (this: unknown, ...args: unknown[]) => unknown;
/** Something whose functions are replaced; only their callers know their types. */
type Patched = Record<string, unknown>;

const { clock, kill } = JSON.parse(process.env['TORTURE_PLAN'] ?? '') as Preloaded;
const realDate = Date;
const realTimeout = setTimeout;

const nowMs = (): number =>
  Math.floor(clock.originSimulatedMs + (realDate.now() - clock.originRealMs) * clock.rate);

globalThis.Date = new Proxy(realDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [nowMs()] : args, newTarget) as object,
  apply: () => new realDate(nowMs()).toString(),
  get: (target, name, receiver) =>
    name === 'now' ? nowMs : (Reflect.get(target, name, receiver) as unknown),
});

const sooner = (ms: unknown): unknown => (typeof ms === 'number' ? ms / clock.rate : ms);

const fastTimeout = (work: () => void, ms?: unknown, ...args: []) =>
  realTimeout(work, sooner(ms) as number, ...args);
globalThis.setTimeout = fastTimeout as unknown as typeof setTimeout;
timers.setTimeout = globalThis.setTimeout;
const realWait = timerPromises.setTimeout;
timerPromises.setTimeout = (ms, value, options) => realWait(sooner(ms) as number, value, options);

let points = 0;

function counted(target: Patched, name: string): void {
  const call = target[name] as Call;
  target[name] = function (this: unknown, ...args: unknown[]): unknown {
    points += 1;
    if (points === kill?.point) die(kill);
    return call.apply(this, args);
  };
}

function die({ delayMs, signal }: KillPoint): void {
  if (delayMs === null) process.kill(process.pid, signal);
  else realTimeout(() => process.kill(process.pid, signal), delayMs);
}

const duckdb = createRequire(process.argv[1] ?? '')('@duckdb/node-api') as Record<
  string,
  { prototype: Patched }
>;
for (const [owner, name] of [
  ['DuckDBConnection', 'run'],
  ['DuckDBConnection', 'createAppender'],
  ['DuckDBPreparedStatement', 'runAndReadAll'],
  ['DuckDBAppender', 'flushSync'],
] as const) {
  const prototype = duckdb[owner]?.prototype;
  if (prototype === undefined) throw new Error(`@duckdb/node-api has no ${owner} any more`);
  counted(prototype, name);
}
for (const name of ['open', 'rename', 'rm', 'writeFile', 'chmod', 'mkdir']) counted(files, name);
syncBuiltinESMExports();
