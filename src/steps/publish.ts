import { stat } from 'node:fs/promises';
import { publishedLake } from '../warehouse/identity.js';
import { type LakeChange, publishLake } from '../warehouse/lake/publish-lake.js';
import { publish } from '../warehouse/published.js';
import type { StepContext, StepResult } from './context.js';
import { hasUnpublishedEffects } from './runs.js';

/** What is published now: the size of the history, and what was done to the lake where there is one. */
export interface Published {
  readonly bytes: number;
  readonly lake?: LakeChange;
}

/**
 * Publishes the history, and the lake where there is one, when something changed or when it was not published yet. A
 * lake that cannot be written does not keep the history from being published: the result has the reason, and the next
 * publish tries again.
 */
export async function publishStep(context: StepContext, changed: boolean): Promise<StepResult<Published>> {
  const { warehouse, historyFile, lake: place, shard, settings, now, signal, returnUnused } = context;
  const published = await sizeOf(historyFile);
  const isCurrent = !changed && !(await hasUnpublishedEffects(warehouse, now()));
  const hasLake = place === undefined || (await publishedLake(warehouse)) === place.location;
  if (isCurrent && published !== undefined && hasLake)
    return { detail: { bytes: published }, summary: 'nothing changed since the last time', changed: false };
  await returnUnused();
  const bytes = await publish(warehouse, historyFile);
  const summary = `${bytes} bytes published`;
  if (place === undefined) return { detail: { bytes }, summary, changed: false };
  try {
    const lake = await publishLake(warehouse, { place, shard, source: settings.baseUrl, now: now(), signal });
    return { detail: { bytes, lake }, summary: `${summary}; the lake: ${lakeSummary(lake)}`, changed: false };
  } catch (error) {
    return { detail: { bytes }, summary, changed: false, error };
  }
}

/** What was done to a lake, without a period. */
export function lakeSummary({ files, written, replaced, sentBytes, receivedBytes }: LakeChange): string {
  const done = `${files} files, ${written} written, ${replaced} replaced`;
  if (sentBytes + receivedBytes === 0) return done;
  const [sent, received] = [sentBytes, receivedBytes].map((bytes) => (bytes / 1e6).toFixed(1));
  return `${done}, ${sent} MB sent, ${received} MB read`;
}

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    return (await stat(file)).size;
  } catch {
    // Not published yet, or not readable: publishing says which.
    return undefined;
  }
}
