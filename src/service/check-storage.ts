import { access, constants, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Runtime, Workspace } from '../app/workspace.js';
import { EffectsJournal } from '../effects/journal.js';
import { isSamePlace, placeOf, placeWords, readPlace } from '../effects/place.js';
import { LockedError, messageOf } from '../errors.js';
import { exists, freeDisk, ignoreMissing } from '../files.js';
import { bytes } from '../format/numbers.js';
import { storageFailure } from '../storage.js';
import { expectDataset, finishedVersion } from '../warehouse/dataset/dataset.js';
import { tryLock } from '../warehouse/duckdb.js';
import { openWarehouse, refuseToForget } from '../warehouse/open.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { type CheckResult, fail, found, pass, type Verdict, warn } from './findings.js';
import { futureWords, readFutureRows } from './status.js';

const SCARCE_BYTES = 2 ** 30;
/** Publishing everything writes the live file again, and a copy of it. */
const COPIES = 2;

/** The database, to count requests in, unless it is missing, in use, of another version or damaged. */
export async function openDatabase(
  { liveFile, historyFile }: Workspace,
  { now, signal }: Runtime,
): Promise<{ warehouse?: Warehouse; verdict: Verdict }> {
  try {
    await refuseToForget(liveFile, historyFile);
    if (!(await exists(liveFile)))
      return { verdict: warn(`There is no database yet. Load the history: readership export`) };
    const warehouse = await openWarehouse(liveFile, {
      command: 'readership doctor',
      now,
      signal,
      maxWaitMs: 0,
      historyFile,
      mustNotChange: true,
    });
    return { warehouse, verdict: pass(`${liveFile} opens, has the current version, and is not in use`) };
  } catch (error) {
    return { verdict: (error instanceof LockedError ? warn : fail)(messageOf(error)) };
  }
}

/** Whether the effects journal is intact. Changes nothing, because another process may be writing it. */
export async function checkJournal({ dataDir, marker }: Workspace): Promise<Verdict> {
  if (!(await exists(dataDir))) return pass('none yet');
  const { found, path, lastSentAt } = await EffectsJournal.open(dataDir, 'reader');
  if (marker !== undefined && lastSentAt !== undefined && !(await exists(marker)))
    return warn(
      `${marker} could not be created, so with an empty ${dataDir} everything would be sent again: let this user write there.`,
    );
  return pass(found ? `${path} is intact` : 'none yet');
}

/** Whether jobs, messages and emails are sent from here. */
export async function checkPlace({ dataDir, machine }: Workspace, warehouse: Warehouse): Promise<Verdict> {
  const place = await readPlace(warehouse);
  if (place === undefined) return pass('not recorded yet: the first command that writes records it');
  const here = await placeOf(dataDir, machine);
  if (!isSamePlace(place, here))
    return warn(`${placeWords(place)}; this copy exports and reports, but sends nothing: readership adopt`);
  return pass(`here, ${placeWords(place)}`);
}

export async function checkDates(warehouse: Warehouse, now: Date): Promise<Verdict> {
  const rows = await readFutureRows(warehouse, now);
  return rows.length === 0 ? pass('none in the future') : warn(`In the future: ${futureWords(rows)}.`);
}

export async function checkDisk({ dataDir, liveFile }: Workspace): Promise<Verdict> {
  let place = dataDir;
  while (!(await exists(place))) place = dirname(place);
  const isWritable = await access(`${place}/.`, constants.W_OK).then(
    () => true,
    () => false,
  );
  if (!isWritable) return fail(`This user cannot write to ${place}: change its owner, or set dataDir.`);
  const free = await freeDisk(place);
  const needed = COPIES * ((await stat(liveFile).catch(ignoreMissing))?.size ?? 0);
  const words = `${bytes(free)} free in ${dataDir}`;
  if (free < needed) return fail(`${words}: publishing needs ${bytes(needed)}. Make room.`);
  try {
    await tryLock(place);
  } catch (error) {
    return fail(storageFailure(`lock a file in ${place}`, error).message);
  }
  return free < SCARCE_BYTES ? warn(`${words}: make room before it runs out.`) : pass(words);
}

/** Whether the directory of the dataset, if there is one, can be written. Writes nothing. */
export function checkDataset({ dataset }: Workspace, warehouse: Warehouse): Promise<CheckResult>[] {
  if (dataset === undefined) return [];
  const examined = async () => {
    if ((await finishedVersion(warehouse)) === null) return pass('nothing was published yet');
    await expectDataset(dataset);
    return pass(`${dataset.location} can be written; nothing was written`);
  };
  return [found('dataset', examined)];
}
