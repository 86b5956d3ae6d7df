import { stat } from 'node:fs/promises';
import { bytes } from '../format/numbers.js';
import { publishedLake, recordLake } from '../warehouse/identity.js';
import { type LakeChange, publishLake } from '../warehouse/lake/lake.js';
import { isPublished, publish } from '../warehouse/publish.js';
import type { StepContext, StepResult } from './step.js';

/** The size of the published history, and the changes to the lake, if there is one. */
export interface Published {
  readonly bytes: number;
  readonly lake?: LakeChange;
}

/** Whether everything stored is published, in the history and in the lake, if there is one. */
export const isUpToDate = async ({ warehouse, historyFile, lake, now }: StepContext): Promise<boolean> =>
  (lake === undefined || (await publishedLake(warehouse)) === lake.location) &&
  isPublished(warehouse, historyFile, now());

/**
 * Publishes the history, and the lake if there is one, when readers would see a difference; always
 * with `isWhole`. If the lake cannot be written, the history is published nevertheless: the result
 * contains the error, and the next publish retries.
 */
export async function publishStep(context: StepContext, isWhole = false): Promise<StepResult<Published>> {
  const { warehouse, historyFile, lake: place, shard, settings, now, signal } = context;
  const isDue = isWhole || !(await isPublished(warehouse, historyFile, now()));
  // Recorded first, because the lake is out of date until it is published too.
  if (isDue) await warehouse.transaction(({ connection }) => recordLake(connection, null));
  const size = isDue ? await publish(warehouse, historyFile, isWhole) : (await stat(historyFile)).size;
  const summary = isDue ? `${bytes(size)} published` : 'nothing changed since the last time';
  if (place === undefined || (await publishedLake(warehouse)) === place.location)
    return { detail: { bytes: size }, summary };
  try {
    const lake = await publishLake(warehouse, { place, shard, source: settings.baseUrl, now: now(), signal });
    return { detail: { bytes: size, lake }, summary: `${summary}; the lake: ${lakeSummary(lake)}` };
  } catch (error) {
    return { detail: { bytes: size }, summary, error };
  }
}

/** The changes to a lake, without a final period. */
export function lakeSummary({ files, written, replaced, sentBytes, receivedBytes }: LakeChange): string {
  const done = `${files} files, ${written} written, ${replaced} replaced`;
  if (sentBytes + receivedBytes === 0) return done;
  const [sent, received] = [sentBytes, receivedBytes].map((bytes) => (bytes / 1e6).toFixed(1));
  return `${done}, ${sent} MB sent, ${received} MB read`;
}
