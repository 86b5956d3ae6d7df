import { stat } from 'node:fs/promises';
import { exists } from '../files.js';
import { bytes, counted } from '../format/numbers.js';
import { type DatasetChange, isDatasetCurrent, publishDataset } from '../warehouse/dataset/dataset.js';
import { isPublished, publish } from '../warehouse/publish.js';
import { loadNotes } from './notes.js';
import { readOutages } from './runs.js';
import { type StepContext, type StepResult, StepRunner, withOutage } from './step.js';

/** The size of the published history, and the changes to the dataset, if there are any. */
export interface Published {
  readonly bytes: number;
  readonly dataset?: DatasetChange | undefined;
}

/** Whether everything stored is published. A copy of the workspace publishes to no dataset. */
export async function isUpToDate({
  warehouse,
  historyFile,
  dataset: place,
  settings: { projects },
  elsewhere,
  now,
}: StepContext): Promise<boolean> {
  const isCurrent =
    place === undefined ||
    elsewhere !== undefined ||
    (await isDatasetCurrent(warehouse, { place, projects }));
  return isCurrent && isPublished(warehouse, historyFile, now());
}

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
 * Publishes the history, and the dataset if there is one, when readers would see a difference; always with `isWhole`. If
 * the dataset cannot be written or the notes cannot be read, the history is published nevertheless: the result contains
 * the error, and the next publish retries.
 */
export async function publishStep(
  context: StepContext,
  { isWhole = false }: PublishOptions = {},
): Promise<StepResult<Published>> {
  const { warehouse, historyFile, now } = context;
  // With the notes published before, if these have problems.
  const ofNotes = await loadNotes(context);
  const isDue = isWhole || !(await isPublished(warehouse, historyFile, now()));
  const size = isDue ? await publish(warehouse, historyFile, isWhole) : (await stat(historyFile)).size;
  const summary = isDue ? `${bytes(size)} published` : 'nothing changed since the last time';
  try {
    const dataset = await updateDataset(context, isWhole);
    const words = dataset === undefined ? summary : `${summary}; the dataset: ${datasetSummary(dataset)}`;
    return withOutage({ detail: { bytes: size, dataset }, summary: words }, [ofNotes]);
  } catch (error) {
    return withOutage({ detail: { bytes: size }, summary }, [error, ofNotes]);
  }
}

/** Undefined if there is no dataset, or if it is up to date. */
async function updateDataset(context: StepContext, isWhole: boolean): Promise<DatasetChange | undefined> {
  const { warehouse, dataset: place, settings, elsewhere, signal } = context;
  const { projects } = settings;
  if (place === undefined) return undefined;
  if (!isWhole && (await isDatasetCurrent(warehouse, { place, projects }))) return undefined;
  // The original publishes there.
  if (elsewhere !== undefined) throw elsewhere;
  return publishDataset(warehouse, { place, projects, isWhole, signal });
}

/** The changes to a dataset, without a final period. */
export const datasetSummary = ({ files, written, removed }: DatasetChange): string =>
  `${counted(files, 'file')}, ${written} written, ${removed} removed`;
