import { access, constants, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { expectHistory, expectNothingLost } from '../app/state.js';
import type { Runtime, Workspace } from '../app/workspace.js';
import { exists, freeDisk, ignoreMissing } from '../files.js';
import { bytes } from '../format/numbers.js';
import { lockData } from '../state/lock.js';
import { openState } from '../state/open.js';
import { finishedDataset, isSamePlace, placeOf, placeWords, readWorkspaceRow } from '../state/workspace.js';
import { readWitness, whyIncomplete } from '../state/witness.js';
import { expectDataset } from '../history/dataset.js';
import { type History, openOwnHistory } from '../history/history.js';
import type { Reader } from '../history/duckdb.js';
import { futureWords, readFutureDays, readFutureRecords } from '../steps/history.js';
import { readStateSummary } from '../history/state-copy.js';
import { canLockIn, lockless } from '../state/database.js';
import type { State } from '../state/state.js';
import { type CheckResult, fail, found, pass, problemOf, type Verdict, warn } from './findings.js';

const SCARCE_BYTES = 2 ** 30;

/** The state, unless it is missing or cannot be opened, and whether it is intact and in use. */
export async function tryState(
  workspace: Workspace,
  { now, signal }: Runtime,
): Promise<{ state: State | undefined; verdict: Verdict }> {
  const { dataDir } = workspace;
  let state: State | undefined;
  try {
    state = await openState(dataDir);
    if (state === undefined) {
      await expectNothingLost(workspace);
      return { state, verdict: pass('none yet: the first command that writes creates it') };
    }
    state.expectSound();
    const lock = await lockData(dataDir, state, { command: 'readership doctor', now, signal, maxWaitMs: 0 });
    lock.release();
    return { state, verdict: pass(`${state.path} opens, is intact, and is not in use`) };
  } catch (error) {
    return { state, verdict: problemOf(error) };
  }
}

/** The history, unless it is missing, of another version or damaged. */
export async function tryHistory(
  workspace: Workspace,
  state: State | undefined,
): Promise<{ history?: History; verdict: Verdict }> {
  const { historyFile } = workspace;
  try {
    if (state !== undefined) await expectHistory(workspace, state);
    if (!(await exists(historyFile)))
      return { verdict: warn('There is no history yet. Load it: readership export') };
    const history = await openOwnHistory(historyFile);
    return { history, verdict: pass(`${historyFile} opens, and has the current version`) };
  } catch (error) {
    return { verdict: problemOf(error) };
  }
}

/** Whether the witness is there, and knows no attempt that the state does not know. */
export async function checkWitness(
  { dataDir, witness }: Workspace,
  state: State,
  history: History | undefined,
): Promise<Verdict> {
  if (witness === undefined) return pass('none needed in the sandbox');
  const carried = history && (await readStateSummary(history.connection));
  const problem = whyIncomplete({ state, witness, carried });
  if (problem !== undefined) return fail(problem.message);
  if (readWitness(witness) !== undefined) return pass(`${witness} is intact`);
  if (readWorkspaceRow(state).attempt === 0) return pass('none yet: nothing was sent');
  if (await isWritable(dirname(witness)))
    return pass(`${witness} is missing, and is written before the next email or job`);
  return warn(
    `${witness} could not be created, so with an empty ${dataDir} everything would be sent again: let this user write there.`,
  );
}

/** Whether jobs, messages and emails are sent from here. */
export async function checkPlace({ dataDir, machine }: Workspace, state: State): Promise<Verdict> {
  const place = readWorkspaceRow(state);
  if (!isSamePlace(place, await placeOf(dataDir, machine)))
    return warn(`${placeWords(place)}; this copy exports and reports, but sends nothing: readership adopt`);
  return pass(`here, ${placeWords(place)}`);
}

export async function checkDates(reader: Reader, state: State, now: Date): Promise<Verdict> {
  const rows = [...(await readFutureDays(reader, now)), ...readFutureRecords(state, now)];
  return rows.length === 0 ? pass('none in the future') : warn(`In the future: ${futureWords(rows)}.`);
}

const isWritable = (directory: string): Promise<boolean> =>
  access(`${directory}/.`, constants.W_OK).then(
    () => true,
    () => false,
  );

export async function checkDisk({ dataDir, historyFile }: Workspace): Promise<Verdict> {
  let place = dataDir;
  while (!(await exists(place))) place = dirname(place);
  if (!(await isWritable(place)))
    return fail(`This user cannot write to ${place}: change its owner, or set dataDir.`);
  const free = await freeDisk(place);
  // The next version is written beside the last one.
  const needed = (await stat(historyFile).catch(ignoreMissing))?.size ?? 0;
  const words = `${bytes(free)} free in ${dataDir}`;
  if (free < needed)
    return fail(`${words}: the next version of the history needs ${bytes(needed)}. Make room.`);
  if (!canLockIn(place)) return fail(lockless(place).message);
  return free < SCARCE_BYTES ? warn(`${words}: make room before it runs out.`) : pass(words);
}

/** Others have no access to what is in a directory unless they may enter it, and all above it. */
const MAY_ENTER = 0o001;

/**
 * Whether everyone on this machine can read what is stored, as in a directory that existed with other rights. Access for
 * its group is a decision of its owner.
 */
export async function checkPrivacy({ dataDir }: Workspace): Promise<CheckResult[]> {
  if (process.platform === 'win32' || !(await exists(dataDir))) return [];
  const real = await realpath(dataDir);
  for (let place = real; ; place = dirname(place)) {
    if (((await stat(place)).mode & MAY_ENTER) === 0) return [];
    if (place === dirname(place)) break;
  }
  const words = `Everyone on this machine can read the history in ${dataDir}: chmod o= '${dataDir}'`;
  return [{ check: 'privacy', ...warn(words) }];
}

/** Whether the directory of the dataset, if there is one, can be written. Writes nothing. */
export function checkDataset({ dataset }: Workspace, state: State): Promise<CheckResult>[] {
  if (dataset === undefined) return [];
  const examined = async () => {
    if (finishedDataset(state) === null) return pass('nothing was written yet');
    await expectDataset(dataset);
    return pass(`${dataset.location} can be written; nothing was written`);
  };
  return [found('dataset', examined)];
}
