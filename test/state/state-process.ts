// A process with the state of a data directory, which does what it is told on its standard input, one line at a time.
// Started by other-process.ts. When it runs, it imports dist instead of src.
import { createInterface } from 'node:readline';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { z } from 'zod';
import { type Database, openDatabase } from '../../src/state/database.js';
import { acquireWorker, expectLocks, type Worker } from '../../src/state/lock.js';
import { createState, openState } from '../../src/state/open.js';
import { Sender } from '../../src/state/sender.js';
import type { State } from '../../src/state/state.js';

const [dataDir = '', witness] = process.argv.slice(2);
const here = { machine: 'm', host: 'h', path: dataDir };
const now = () => new Date('2026-11-18T05:00:00Z');
let opened: State | undefined;
let worker: Worker | undefined;
const readers: Database[] = [];

async function state(): Promise<State> {
  opened ??= await openState(dataDir);
  if (opened === undefined) throw new Error('no state');
  return opened;
}

async function sender(): Promise<Sender> {
  worker ??= await acquireWorker(dataDir, await state(), { command: 'readership run', now, maxWaitMs: 0 });
  return new Sender({
    state: await state(),
    worker,
    here,
    witness,
    whyNot: () => Promise.resolve(undefined),
  });
}

const kill = () => process.kill(process.pid, 'SIGKILL');

const COMMANDS = {
  create: async () => {
    opened = await createState(dataDir, here);
    return opened.get('SELECT id FROM workspace', z.object({ id: z.string() }))?.id;
  },
  acquire: async (maxWaitMs: number) => {
    worker = await acquireWorker(dataDir, await state(), { command: 'readership export', now, maxWaitMs });
    return worker.token;
  },
  release: () => worker?.release(),
  expectCurrent: () => worker?.expectCurrent(),
  expectLocks: async () => expectLocks(dataDir, await state()),
  /** Claims all rows of `claims`, one a transaction. */
  claim: async () => {
    const claimed: number[] = [];
    for (;;) {
      const row = await (
        await state()
      ).transaction(() =>
        opened?.get(
          'UPDATE claims SET by = $by WHERE id = (SELECT min(id) FROM claims WHERE by IS NULL) RETURNING id',
          z.object({ id: z.int() }),
          { by: process.pid },
        ),
      );
      if (row === undefined) return claimed;
      claimed.push(row.id);
    }
  },
  run: async (sql: string) => (await state()).transaction(() => opened?.run(sql)),
  holdRead: () => {
    const database = openDatabase(`${dataDir}/state.db`);
    readers.push(database);
    database.exec('BEGIN');
    database.prepare('SELECT * FROM workspace').get();
  },
  // Closing alone would keep the lock until the statement is garbage.
  endRead: () => readers.pop()?.exec('ROLLBACK'),
  /** Changes so much in one transaction that pages are written before it ends, and dies. */
  dieInTransaction: async () =>
    (await state()).transaction(() => {
      opened?.run('PRAGMA cache_size = 1');
      for (let number = 0; number < 2_000; number++)
        opened?.run('INSERT INTO requests VALUES ($key, $minute, 1, 0)', {
          key: 'k'.repeat(200),
          minute: number,
        });
      kill();
    }),
  /** Marks job 1 as being sent, and dies before the witness knows it. */
  dieBeforeWitness: async () => {
    const ready = await sender();
    const transaction = (await state()).transaction.bind(opened);
    if (opened !== undefined)
      opened.transaction = async (work) => {
        const result = await transaction(work);
        kill();
        return result;
      };
    await ready.begin(now(), mark, () => undefined);
  },
  attempts: async () =>
    (await state()).get('SELECT attempt FROM workspace', z.object({ attempt: z.int() }))?.attempt,
  /** Writes part of a new state to disk, and dies before it is committed. */
  dieInCreation: () => {
    const database = openDatabase(`${dataDir}/state.db`);
    database.exec('PRAGMA cache_size = 1; BEGIN IMMEDIATE');
    for (let table = 0; table < 50; table++) database.exec(`CREATE TABLE t${table} (a TEXT)`);
    kill();
  },
  begin: async () => (await (await sender()).begin(now(), mark, () => undefined))?.number,
  collectGarbage: () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    for (let round = 0; round < 5; round++) collect();
  },
};

const mark = (attempt: number): boolean =>
  opened?.run(`UPDATE jobs SET state = 'sending', attempt = $attempt WHERE id = 1 AND state = 'planned'`, {
    attempt,
  }) === 1;

for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...values] = JSON.parse(line) as [keyof typeof COMMANDS, ...unknown[]];
  const command: (...values: never[]) => unknown = COMMANDS[name];
  let answer: unknown;
  try {
    answer = { value: (await command(...(values as never[]))) ?? null };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    answer = { error: error.name, message: error.message };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit();
