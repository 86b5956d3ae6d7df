import { stat } from 'node:fs/promises';
import { exists } from '../files.js';
import { bytes } from '../format/numbers.js';
import { isPublished, publish } from '../warehouse/publish.js';
import { loadNotes } from './notes.js';
import { readOutages } from './runs.js';
import { type StepContext, type StepResult, StepRunner, withOutage } from './step.js';

/** The size of the published history. */
export interface Published {
  readonly bytes: number;
}

/** Whether everything stored is published. */
export const isUpToDate = ({ warehouse, historyFile, now }: StepContext): Promise<boolean> =>
  isPublished(warehouse, historyFile, now());

interface PublishOptions {
  /** Whether to write everything again. */
  readonly isWhole?: boolean;
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
 * Publishes the history when readers would see a difference; always with `isWhole`. If the notes cannot be read, the
 * history is published nevertheless, with those published before: the result contains the error, and the next publish
 * retries.
 */
export async function publishStep(
  context: StepContext,
  { isWhole = false }: PublishOptions = {},
): Promise<StepResult<Published>> {
  const { warehouse, historyFile, now } = context;
  const ofNotes = await loadNotes(context);
  const isDue = isWhole || !(await isPublished(warehouse, historyFile, now()));
  const size = isDue ? await publish(warehouse, historyFile, isWhole) : (await stat(historyFile)).size;
  const summary = isDue ? `${bytes(size)} published` : 'nothing changed since the last time';
  return withOutage({ detail: { bytes: size }, summary }, [ofNotes]);
}
