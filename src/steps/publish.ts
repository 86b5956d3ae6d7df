import { stat } from 'node:fs/promises';
import { bytes } from '../format/numbers.js';
import { publishedLake } from '../warehouse/identity.js';
import { type LakeChange, publishLake } from '../warehouse/lake/lake.js';
import { publish, publishChanges } from '../warehouse/publish.js';
import type { StepContext, StepResult } from './context.js';
import { hasUnpublishedEffects } from './runs.js';

/** What is published now: the size of the history, and what was done to the lake where there is one. */
export interface Published {
  readonly bytes: number;
  readonly lake?: LakeChange;
}

/** Why to publish. */
interface Occasion {
  /** Something was stored since the last time. Whether a reader would see it is looked at before publishing. */
  readonly changed: boolean;
  /** A step began to fail, or no longer does: readers are to see that whatever else there is. */
  readonly outageChanged?: boolean;
  /** Somebody asked for it: everything is written again. */
  readonly whole?: boolean;
}

/**
 * Publishes the history, and the lake where there is one, when readers would see a difference or when it was not
 * published yet. A lake that cannot be written does not keep the history from being published: the result has the
 * reason, and the next publish tries again.
 */
export async function publishStep(context: StepContext, occasion: Occasion): Promise<StepResult<Published>> {
  const { warehouse, historyFile, lake: place, shard, settings, now, signal } = context;
  const { outageChanged = false, whole = false } = occasion;
  const before = await sizeOf(historyFile);
  const changed =
    occasion.changed || outageChanged || whole || (await hasUnpublishedEffects(warehouse, now()));
  // Looked at each time: the one published last may be missing, or of another version of Readership.
  const published = whole
    ? await publish(warehouse, historyFile)
    : await publishChanges(warehouse, historyFile, outageChanged);
  const size = published ?? before ?? 0;
  const summary =
    published === undefined ? 'nothing changed since the last time' : `${bytes(published)} published`;
  const hasLake = place === undefined || (await publishedLake(warehouse)) === place.location;
  if (place === undefined || (hasLake && !changed))
    return { detail: { bytes: size }, summary, changed: false };
  try {
    const lake = await publishLake(warehouse, { place, shard, source: settings.baseUrl, now: now(), signal });
    return {
      detail: { bytes: size, lake },
      summary: `${summary}; the lake: ${lakeSummary(lake)}`,
      changed: false,
    };
  } catch (error) {
    return { detail: { bytes: size }, summary, changed: false, error };
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
