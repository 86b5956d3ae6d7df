import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makePreload } from './command.js';
import { planTrial } from './plan.js';
import type { TrialResult } from './properties.js';
import { buildShim } from './shim.js';
import { growSite } from './site.js';
import { runTrial } from './trial.js';

export interface Session {
  /** The seed of the first trial; the others have the numbers after it. */
  readonly seed: number;
  readonly trials: number;
  /** No trial starts after this time. */
  readonly minutes: number;
  /** Trials at the same time. */
  readonly lanes: number;
  /** No trial starts after it aborts. */
  readonly signal?: AbortSignal;
  readonly onTrial?: (result: TrialResult) => void;
}

const PROGRAM = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

/** Runs trials of the built command, each determined by its seed. */
export async function torture(session: Session): Promise<TrialResult[]> {
  const { seed, trials, minutes, lanes, signal, onTrial } = session;
  const preload = await makePreload();
  const shim = await buildShim();
  const bench = { program: PROGRAM, preload, shim, grown: await growSite(PROGRAM, preload) };
  const endMs = performance.now() + minutes * 60_000;
  const results: TrialResult[] = [];
  let next = seed;
  const lane = async (): Promise<void> => {
    while (next < seed + trials && performance.now() < endMs && signal?.aborted !== true) {
      const result = await runTrial(planTrial(next++), bench);
      results.push(result);
      onTrial?.(result);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  await rm(bench.grown, { recursive: true });
  await rm(dirname(fileURLToPath(preload)), { recursive: true });
  if (shim !== undefined) await rm(dirname(shim), { recursive: true });
  return results;
}
