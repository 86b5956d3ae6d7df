/**
 * Kills at single changes of the state, its journal and the witness. A process sends jobs, and a shim between it and the
 * C library (`tear.c`) kills it at a chosen change: before it, or halfway through it. Nothing may then arrive twice, and
 * the state must be sound, with everything that arrived.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compiled } from '../compiled.js';
import { readState } from './books.js';
import { Choice } from './choice.js';
import { attemptFaults, repeated, type Witness } from './checks/records.js';
import { type KilledChange, killedAt } from './shim.js';

/** After this many processes a new state is started, so that its first changes are tried too. */
const PROCESSES_A_STATE = 12;
/** A new state takes a few changes, and a job two dozen. */
const CHANGES = [20, 60, 150] as const;

/** Kills `kills` processes, as `killAtWrites` does. */
export async function killWhileSending(shim: string, seed: number, kills: number) {
  const choice = new Choice(seed);
  const violations: string[] = [];
  const done = { killed: 0, torn: 0, ended: 0 };
  const programs = await mkdtemp(join(tmpdir(), 'readership-sending-'));
  const program = await compiled(new URL('sending.ts', import.meta.url), programs);
  while (done.killed < kills) {
    const directory = await mkdtemp(join(tmpdir(), 'readership-sends-'));
    const site = new Site(directory, program, shim);
    await mkdir(site.dataDir);
    for (let count = 0; count < PROCESSES_A_STATE && done.killed < kills; count++) {
      const change = choice.whole(1, choice.pick(CHANGES));
      const killed = { change, isTorn: choice.chance(0.5), permille: choice.whole(0, 999) };
      const wasKilled = await site.send(choice.whole(1, 4), killed);
      done.killed += wasKilled ? 1 : 0;
      done.torn += wasKilled && killed.isTorn ? 1 : 0;
      done.ended += wasKilled ? 0 : 1;
      const where = `seed ${seed}, kill ${done.killed} (${JSON.stringify(killed)})`;
      violations.push(...(await site.faults()).map((what) => `${where}: ${what}`));
    }
    // What was planned is still sent, and what is unknown is not.
    await site.send(0);
    violations.push(...(await site.faults()).map((what) => `seed ${seed}, after the last kill: ${what}`));
    await rm(directory, { recursive: true });
  }
  await rm(programs, { recursive: true });
  return { ...done, violations };
}

/** A state, the platform that its processes send to, and the jobs whose outcome they said was stored. */
class Site {
  readonly dataDir: string;
  readonly #witness: string;
  readonly #platform: string;
  readonly #stored: string[] = [];
  #jobs = 0;

  constructor(
    private readonly directory: string,
    private readonly program: string,
    private readonly shim: string,
  ) {
    this.dataDir = join(directory, 'data');
    this.#witness = join(directory, '.readership.yaml.sent');
    this.#platform = join(directory, 'platform');
  }

  /** Runs a process that plans so many jobs, and sends all that are planned. Returns whether it was killed. */
  async send(jobs: number, killed?: KilledChange): Promise<boolean> {
    const values = [this.dataDir, this.#witness, this.#platform, this.#jobs, jobs].map(String);
    this.#jobs += jobs;
    const tearing = killed && killedAt(this.shim, killed, this.directory, ['state.db', '.sent']);
    const child = spawn(process.execPath, [this.program, ...values], {
      env: { PATH: process.env['PATH'], ...tearing },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    if (signal !== 'SIGKILL' && code !== 0)
      throw new Error(`the sending process ended with ${code ?? signal}`);
    this.#stored.push(...output.split('\n').slice(0, -1));
    return signal === 'SIGKILL';
  }

  /** What is wrong with the state now. */
  async faults(): Promise<string[]> {
    const arrived = (await textOf(this.#platform)).split('\n').slice(0, -1);
    try {
      const books = await readState(join(this.dataDir, 'state.db'));
      if (books === undefined) return arrived.map((prompt) => `job ${prompt} arrived, but there is no state`);
      const witness = await textOf(this.#witness);
      const known = witness === '' ? undefined : (JSON.parse(witness.split('\n', 1)[0] ?? '') as Witness);
      const job = (prompt: string) => books.jobs.find((one) => one.prompt === prompt);
      const isKnown = (prompt: string) =>
        ['active', 'sending', 'unknown'].includes(job(prompt)?.state ?? '') &&
        (job(prompt)?.attempt ?? Infinity) <= (known?.attempt ?? 0);
      return [
        ...repeated(arrived.map((prompt) => `job ${prompt}`)),
        ...arrived
          .filter((prompt) => !isKnown(prompt))
          .map((prompt) => `job ${prompt} arrived, but is ${job(prompt)?.state ?? 'not stored'}`),
        ...this.#stored
          .filter((prompt) => job(prompt)?.remote_id !== `job ${prompt}`)
          .map((prompt) => `the outcome of job ${prompt} was stored, and is lost`),
        ...attemptFaults(books, known),
      ];
    } catch (error) {
      return [`the state cannot be read: ${String(error)}`];
    }
  }
}

const textOf = async (file: string): Promise<string> => (existsSync(file) ? readFile(file, 'utf8') : '');
