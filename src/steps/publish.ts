import { stat } from 'node:fs/promises';
import { exists } from '../files.js';
import { manifestPath } from '../warehouse/lake/directory.js';
import { type LakeChange, publishLake } from '../warehouse/lake/publish-lake.js';
import { publish } from '../warehouse/published.js';
import type { StepContext, StepResult } from './context.js';
import { hasUnpublishedEffects } from './runs.js';

/** What is published now: the size of the history, and what was done to the lake where there is one. */
export interface Published {
  readonly bytes: number;
  readonly lake?: LakeChange;
}

/** Publishes the history, and the lake where there is one, when something changed or when it is not there yet. */
export async function publishStep(context: StepContext, changed: boolean): Promise<StepResult<Published>> {
  const { warehouse, historyFile, lakeDir, shard, now, signal, returnUnused } = context;
  const published = await sizeOf(historyFile);
  const isCurrent = !changed && !(await hasUnpublishedEffects(warehouse, now()));
  if (isCurrent && published !== undefined && (await isLakeThere(context)))
    return { detail: { bytes: published }, summary: 'nothing changed since the last time', changed: false };
  await returnUnused();
  const bytes = await publish(warehouse, historyFile);
  const summary = `${bytes} bytes published`;
  if (lakeDir === undefined) return { detail: { bytes }, summary, changed: false };
  const lake = await publishLake(warehouse, { directory: lakeDir, shard, signal });
  const ofLake = `${lake.written} of the lake's ${lake.files} files written`;
  return { detail: { bytes, lake }, summary: `${summary}, ${ofLake}`, changed: false };
}

const isLakeThere = async ({ lakeDir, shard }: StepContext): Promise<boolean> =>
  lakeDir === undefined || (await exists(manifestPath(lakeDir, shard)));

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    return (await stat(file)).size;
  } catch {
    // Not published yet, or not readable: publishing says which.
    return undefined;
  }
}
