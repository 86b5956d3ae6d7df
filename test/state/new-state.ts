import { join } from 'node:path';
import { z } from 'zod';
import { acquireWorker, type Worker } from '../../src/state/lock.js';
import { createState, openState } from '../../src/state/open.js';
import { Sender } from '../../src/state/sender.js';
import type { State } from '../../src/state/state.js';
import { witnessOf } from '../../src/state/witness.js';
import { readWorkspaceRow } from '../../src/state/workspace.js';
import { afterTest } from '../cleanup.js';
import { tempDir } from '../temp-dir.js';

export const NOW = new Date('2026-11-18T05:00:00Z');
export const now = () => NOW;
export const placeIn = (path: string) => ({ machine: 'm', host: 'h', path });

/** The data directory and the new state of a workspace, closed after the test. */
export async function newState(dataDir?: string): Promise<{ dataDir: string; state: State }> {
  const directory = dataDir ?? join(await tempDir(), 'data');
  const state = await createState(directory, placeIn(directory));
  afterTest(() => {
    state.close();
  });
  return { dataDir: directory, state };
}

/** The state of a data directory, opened again. */
export async function reopened(dataDir: string): Promise<State> {
  const state = await openState(dataDir);
  if (state === undefined) throw new Error(`there is no state in ${dataDir}`);
  afterTest(() => {
    state.close();
  });
  return state;
}

export async function newWorker(dataDir: string, state: State, maxWaitMs = 30_000): Promise<Worker> {
  const worker = await acquireWorker(dataDir, state, { command: 'readership run', now, maxWaitMs });
  afterTest(() => worker.release());
  return worker;
}

export const senderOf = (dataDir: string, state: State, worker: Worker, witness?: string): Sender =>
  new Sender({ state, worker, here: placeIn(dataDir), witness, whyNot: () => Promise.resolve(undefined) });

/** Adds a planned job, and returns its id. */
export function addJob(state: State, path = '/guide'): Promise<number> {
  return state.transaction(() => {
    const sql = `INSERT INTO jobs (reference, project, path, state, reason, prompt, planned_at, weekly_human, weekly_ai, weeks)
      VALUES ($path, 'prj_1', $path, 'planned', 'much read', 'Improve it', $now, 90, 9, '[]') RETURNING id`;
    return state.get(sql, z.object({ id: z.int() }), { path, now: NOW })?.id ?? 0;
  });
}

/** A state with a planned job, and what sends it, with a witness beside the data directory or at another path. */
export async function newSender({
  dataDir: given,
  witness: path,
}: { dataDir?: string; witness?: string } = {}) {
  const { dataDir, state } = await newState(given);
  await addJob(state);
  const worker = await newWorker(dataDir, state);
  const witness = path ?? witnessOf(join(dataDir, '..', 'readership.yaml'));
  const sender = senderOf(dataDir, state, worker, witness);
  /** Begins to send the job, whatever its state, and returns the number of the attempt. */
  const begin = async () => {
    const mark = (attempt: number) =>
      state.run(`UPDATE jobs SET state = 'sending', attempt = $attempt`, { attempt }) === 1;
    const unmark = () => state.run(`UPDATE jobs SET state = 'planned', attempt = NULL`);
    return (await sender.begin(NOW, mark, unmark))?.number;
  };
  return { dataDir, state, worker, witness, sender, begin, id: readWorkspaceRow(state).id };
}

/** The only value of the only row. */
export function valueOf(state: State, sql: string, parameters?: Record<string, unknown>): unknown {
  const row = state.get(sql, z.record(z.string(), z.unknown()), parameters);
  return Object.values(row ?? {})[0];
}

export const change = (state: State, sql: string, parameters?: Record<string, unknown>): Promise<number> =>
  state.transaction(() => state.run(sql, parameters));
