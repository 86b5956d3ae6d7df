import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { StorageError } from '../../src/errors.js';
import { OtherPlaceError, readWorkspaceRow } from '../../src/state/workspace.js';
import { recover, Sender, storeOutcome } from '../../src/state/sender.js';
import type { State } from '../../src/state/state.js';
import { adopt, readWitness } from '../../src/state/witness.js';
import { smallDisk } from '../small-disk.js';
import { tempDir } from '../temp-dir.js';
import {
  addJob,
  change,
  newSender,
  newState,
  newWorker,
  NOW,
  placeIn,
  reopened,
  senderOf,
  valueOf,
} from './new-state.js';
import { otherProcess } from './other-process.js';

const markIn = (state: State) => (attempt: number) =>
  state.run(`UPDATE jobs SET state = 'sending', attempt = $attempt WHERE state = 'planned'`, { attempt }) ===
  1;
const nothing = () => undefined;
const jobState = (state: State) => valueOf(state, 'SELECT state FROM jobs');

describe('beginning to send', () => {
  it('stores the attempt with its number before anything is sent', async () => {
    const { dataDir, begin } = await newSender();
    expect(await begin()).toBe(1);
    const other = await reopened(dataDir);
    const jobs = other.all('SELECT state, attempt FROM jobs', z.unknown());
    expect(jobs).toEqual([{ state: 'sending', attempt: 1 }]);
    expect(readWorkspaceRow(other)).toMatchObject({ attempt: 1, attempted_at: NOW });
  });

  it('changes nothing if what is sent must not be, or if that fails', async () => {
    const { state, sender, witness } = await newSender();
    const before = readWorkspaceRow(state);
    const refusing = () => {
      state.run(`INSERT INTO skips VALUES ('prj_1', '/a', '2026-11-18', NULL)`);
      return false;
    };
    const failing = () => {
      throw new Error('no');
    };
    expect(await sender.begin(NOW, refusing, nothing)).toBeUndefined();
    await expect(sender.begin(NOW, failing, nothing)).rejects.toThrow('no');
    expect(readWorkspaceRow(state)).toEqual(before);
    expect(valueOf(state, 'SELECT count(*) FROM skips')).toBe(0);
    expect(readWitness(witness)).toBeUndefined();
  });

  it('by two processes at once is one attempt', async () => {
    const { dataDir, state } = await newState();
    await addJob(state);
    const processes = await Promise.all([1, 2, 3].map(() => otherProcess(dataDir)));
    const answers = await Promise.all(processes.map(({ told }) => told('begin')));
    expect(answers.filter((answer) => answer !== undefined && 'value' in answer)).toEqual([{ value: 1 }]);
    expect(answers.filter((answer) => answer !== undefined && 'error' in answer)).toEqual(
      Array(2).fill({
        error: 'LockedError',
        message: expect.stringContaining('worker.lock is held by') as string,
      }),
    );
    // Nor is it sent by one that comes later.
    await Promise.all(processes.map(({ kill }) => kill()));
    const sender = senderOf(dataDir, state, await newWorker(dataDir, state));
    expect(await sender.begin(NOW, markIn(state), nothing)).toBeUndefined();
    expect(readWorkspaceRow(state).attempt).toBe(1);
  });

  it('is refused in a copy, until it is adopted', async () => {
    const { dataDir, state, worker, witness } = await newSender();
    for (const other of [{ machine: 'other' }, { host: 'clone' }, { path: '/elsewhere' }]) {
      const here = { ...placeIn(dataDir), ...other };
      const sender = new Sender({ state, worker, here, witness, whyNot: () => Promise.resolve(undefined) });
      await expect(sender.begin(NOW, markIn(state), nothing)).rejects.toThrow(OtherPlaceError);
      expect(await sender.refusal()).toBeInstanceOf(OtherPlaceError);
    }
    expect(readWorkspaceRow(state).attempt).toBe(0);
    const here = { ...placeIn(dataDir), host: 'clone' };
    expect(await adopt({ state, worker, witness }, here)).toBeUndefined();
    expect(readWitness(witness)?.attempt).toBe(0);
    const sender = new Sender({ state, worker, here, witness, whyNot: () => Promise.resolve(undefined) });
    expect((await sender.begin(NOW, markIn(state), nothing))?.number).toBe(1);
    await expect(
      senderOf(dataDir, state, worker, witness).begin(NOW, markIn(state), nothing),
    ).rejects.toThrow(/sends from clone:.* where it last sent something on Nov 18, 2026/);
  });
});

describe('a process that is killed after the attempt was stored, and before the witness was written', () => {
  it('leaves a job that the next worker finds of unknown outcome, and nobody sends again', async () => {
    const { dataDir, state } = await newState();
    await addJob(state);
    const witness = join(dataDir, '..', '.readership.yaml.sent');
    const dying = await otherProcess(dataDir, { witness });
    expect(await dying.told('dieBeforeWitness')).toBeUndefined();
    expect(await dying.ended).toEqual([null, 'SIGKILL']);
    expect(readWitness(witness)).toBeUndefined();
    expect(jobState(state)).toBe('sending');
    const worker = await newWorker(dataDir, state);
    expect(await recover(state, worker, NOW)).toEqual({ jobs: 1, messages: 0, emails: 0 });
    expect(jobState(state)).toBe('unknown');
    const sender = senderOf(dataDir, state, worker, witness);
    expect(await sender.refusal()).toBeUndefined();
    expect(await sender.begin(NOW, markIn(state), nothing)).toBeUndefined();
    expect(await recover(state, worker, NOW)).toEqual({ jobs: 0, messages: 0, emails: 0 });
  });
});

describe('an outcome', () => {
  const active = (state: State) => () => state.run(`UPDATE jobs SET state = 'active', remote_id = 'job_1'`);

  it('is stored by its owner, also when another worker has called it unknown', async () => {
    const { state, begin } = await newSender();
    await begin();
    await change(state, `UPDATE jobs SET state = 'unknown'`);
    await storeOutcome(state, active(state), undefined);
    expect(jobState(state)).toBe('active');
  });

  it('is stored when a full disk has space again', async (context) => {
    const mounted = await tempDir();
    const disk = await smallDisk(context, mounted);
    const { state } = await newState(join(mounted, 'data'));
    await addJob(state);
    await disk.leaveRoom(0);
    const tried: (() => void)[] = [];
    const firstTry = new Promise<void>((resolve) => tried.push(resolve));
    const storing = storeOutcome(
      state,
      () => {
        tried[0]?.();
        // A long reply needs more pages than the file has.
        return state.run(`UPDATE jobs SET state = 'active', note = $note`, { note: 'n'.repeat(20_000) });
      },
      undefined,
    );
    await firstTry;
    expect(jobState(await reopened(join(mounted, 'data')))).toBe('planned');
    await disk.makeRoom();
    expect(await storing).toBe(1);
    expect(jobState(state)).toBe('active');
  });

  it('that cannot be stored before the process must end is said to be unknown', async (context) => {
    const mounted = await tempDir();
    const disk = await smallDisk(context, mounted);
    const { state } = await newState(join(mounted, 'data'));
    await addJob(state);
    await disk.leaveRoom(0);
    const error = await storeOutcome(
      state,
      () => state.run('UPDATE jobs SET note = $note', { note: 'n'.repeat(20_000) }),
      AbortSignal.abort(),
    ).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(StorageError);
    expect(error).toMatchObject({
      message: expect.stringMatching(/could not be stored: .*full.* It counts as unknown/s) as string,
    });
  });

  it('that is wrong in itself is not tried again', async () => {
    const { state } = await newState();
    let tries = 0;
    const failing = storeOutcome(
      state,
      () => {
        tries++;
        throw new TypeError('a mistake');
      },
      undefined,
    );
    await expect(failing).rejects.toThrow('a mistake');
    expect(tries).toBe(1);
  });
});

it('a new worker records what a killed process was doing', async () => {
  const { dataDir, state } = await newState();
  const job = await addJob(state);
  await addJob(state, '/other');
  await state.transaction(() => {
    state.run(`UPDATE jobs SET state = 'sending', attempt = 1 WHERE id = $job`, { job });
    for (const [number, found] of ['planned', 'sending', 'sent'].entries())
      state.run(
        `INSERT INTO messages (reference, job, state, origin, prompt, planned_at) VALUES ($number, $job, $found, 'typed', 'Go on', $now)`,
        { number: `${number}`, job, found, now: NOW },
      );
    for (const [number, found] of ['sending', 'waiting', 'sent', 'sending'].entries())
      state.run(
        `INSERT INTO emails (report, project, period, recipient, state, via, message_id, attempt, attempts, tried_at)
        VALUES ('weekly', 'prj_1', '2026-W46', $to, $found, 'smtp', '<a@b>', $number, 1, $now)`,
        { to: `reader-${number}@example.com`, found, number, now: NOW },
      );
    for (const outcome of ['running', 'done'])
      state.run(`INSERT INTO runs VALUES ('r', 'export', $now, NULL, $outcome, NULL, NULL)`, {
        outcome,
        now: NOW,
      });
  });
  const worker = await newWorker(dataDir, state);
  expect(await recover(state, worker, NOW)).toEqual({ jobs: 1, messages: 1, emails: 2 });
  const changed = { changed_at: NOW.toISOString(), from_state: 'sending', to_state: 'unknown' };
  const cause = 'the process ended before the reply was recorded';
  expect(state.all('SELECT * FROM job_changes ORDER BY message', z.unknown())).toEqual([
    { ...changed, job, message: null, cause },
    { ...changed, job, message: 2, cause },
  ]);
  const statesOf = (table: string, column = 'state') =>
    state
      .all(`SELECT ${column} AS found FROM ${table} ORDER BY rowid`, z.object({ found: z.string() }))
      .map(({ found }) => found);
  expect(statesOf('jobs')).toEqual(['unknown', 'planned']);
  expect(statesOf('messages')).toEqual(['planned', 'unknown', 'sent']);
  expect(statesOf('emails')).toEqual(['unknown', 'waiting', 'sent', 'unknown']);
  expect(statesOf('runs', 'outcome')).toEqual(['interrupted', 'done']);
  expect(valueOf(state, `SELECT ended_at FROM runs WHERE outcome = 'interrupted'`)).toBe(NOW.toISOString());
});

it('only the latest worker records it', async () => {
  const { state, worker } = await newSender();
  await change(state, 'UPDATE worker SET token = token + 1');
  await change(state, `UPDATE jobs SET state = 'sending'`);
  await expect(recover(state, worker, NOW)).rejects.toThrow(/has taken over/);
  expect(jobState(state)).toBe('sending');
});
