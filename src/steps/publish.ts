import { stat } from 'node:fs/promises';
import { exists } from '../files.js';
import { bytes } from '../format/numbers.js';
import { readWorkspaceRow, setWorkspace } from '../warehouse/identity.js';
import { type LakeChange, prepareLake, publishLake } from '../warehouse/lake/lake.js';
import type { LakeOptions } from '../warehouse/lake/actions.js';
import { isPublished, publish } from '../warehouse/publish.js';
import { readerOf } from '../warehouse/query.js';
import { loadNotes } from './notes.js';
import { readOutages } from './runs.js';
import { byBothClocks, type StepContext, type StepResult, StepRunner, withOutage } from './step.js';

/** The size of the published history, and the changes to the lake, if there is one. */
export interface Published {
  readonly bytes: number;
  readonly lake?: LakeChange;
}

/** Whether everything stored is published, in the history and in the lake, if there is one. */
export const isUpToDate = async ({ warehouse, historyFile, lake, now }: StepContext): Promise<boolean> =>
  (lake === undefined || (await readWorkspaceRow(warehouse)).lake === lake.location) &&
  isPublished(warehouse, historyFile, now());

interface PublishOptions {
  readonly isWhole?: boolean;
  readonly isRebuild?: boolean | undefined;
}

/**
 * Runs the publish step. How it ends is known only after it has published, so if that begins or ends an
 * outage, the history is published once more, with that.
 */
export async function runPublish(
  runner: StepRunner,
  context: StepContext,
  options?: PublishOptions,
): Promise<Published | undefined> {
  const { warehouse, historyFile, now } = context;
  const isOut = async () =>
    (await readOutages(warehouse, now())).some(({ step, over_at }) => step === 'publish' && over_at === null);
  const wasOut = await isOut();
  const published = await runner.step('publish', () => publishStep(context, options));
  if (published !== undefined && (await isOut()) !== wasOut) await publish(warehouse, historyFile);
  return published;
}

/**
 * Does some work and publishes what it changed, even if it failed halfway, unless nothing was published yet. The
 * publication is recorded like any other: without that, nobody would notice if the change were lost later.
 */
export async function doAndPublish<Result>(
  context: StepContext,
  work: (runner: StepRunner) => Promise<Result>,
) {
  const runner = new StepRunner(context);
  const result = await work(runner).catch(async (error: unknown) => {
    // Before the first publication, the database may be empty, which readers would take for a site without views.
    if (await exists(context.historyFile)) await runPublish(runner, context);
    throw error;
  });
  await runPublish(runner, context);
  return { result, outages: runner.outages };
}

/**
 * Publishes the history, and the lake if there is one, when readers would see a difference; always
 * with `isWhole`. If the lake cannot be written or the notes cannot be read, the history is published
 * nevertheless: the result contains the error, and the next publish retries.
 */
export async function publishStep(
  context: StepContext,
  { isWhole = false, isRebuild }: PublishOptions = {},
): Promise<StepResult<Published>> {
  const { warehouse, journal, historyFile, lake: place, elsewhere, now } = context;
  // The history is published even if the notes have problems; those published before are kept.
  const ofNotes = await loadNotes(context);
  const isDue = isWhole || !(await isPublished(warehouse, historyFile, now()));
  const isLakeDue =
    place !== undefined && (isDue || (await readWorkspaceRow(warehouse)).lake !== place.location);
  // A clock that is ahead would remove replaced files that readers still need.
  const at = isLakeDue ? (await byBothClocks(context)).now() : now();
  const options = isLakeDue ? lakeOptions({ ...context, now: () => at }, isRebuild) : undefined;
  const refusal =
    options && (elsewhere ?? (await prepareLake(warehouse, options).catch((error: unknown) => error)));
  // Recorded first, because the lake is out of date until it is published too.
  if (isDue) {
    // A copy of this publication does not know what is sent after it.
    journal.claimAgain();
    await warehouse.transaction(async ({ connection }) => {
      await setWorkspace(connection, { lake: null });
      // Counted before publishing, so that a restored history has the number too. An older state does not
      // count: it could reach the newest number and be taken for the newest.
      const { publications } = await readWorkspaceRow(readerOf(connection));
      if (options !== undefined && refusal === undefined)
        await setWorkspace(connection, { publications: publications + 1 });
    });
  }
  const size = isDue ? await publish(warehouse, historyFile, isWhole) : (await stat(historyFile)).size;
  const summary = isDue ? `${bytes(size)} published` : 'nothing changed since the last time';
  const history = { detail: { bytes: size }, summary };
  if (options === undefined || refusal !== undefined) return withOutage(history, [refusal, ofNotes]);
  try {
    const lake = await publishLake(warehouse, options);
    const both = { detail: { bytes: size, lake }, summary: `${summary}; the lake: ${lakeSummary(lake)}` };
    return withOutage(both, [ofNotes]);
  } catch (error) {
    return withOutage(history, [error, ofNotes]);
  }
}

/** How the lake is read and published; undefined if there is none. */
export function lakeOptions(
  context: Pick<StepContext, 'lake' | 'shard' | 'settings' | 'here' | 'now' | 'signal'>,
  isRebuild?: boolean,
): LakeOptions | undefined {
  const { lake, shard, settings, here, now, signal } = context;
  return lake && { place: lake, shard, source: settings.baseUrl, here, now: now(), signal, isRebuild };
}

/** The changes to a lake, without a final period. */
export function lakeSummary(lake: LakeChange): string {
  const { files, written, replaced, rebuilt, sentBytes, receivedBytes } = lake;
  const again =
    rebuilt.length === 0 ? '' : `, ${rebuilt.join(', ')} restored, which another program had changed`;
  const done = `${files} files, ${written} written, ${replaced} replaced${again}`;
  if (sentBytes + receivedBytes === 0) return done;
  const [sent, received] = [sentBytes, receivedBytes].map((bytes) => (bytes / 1e6).toFixed(1));
  return `${done}, ${sent} MB sent, ${received} MB read`;
}
