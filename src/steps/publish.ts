import { stat } from 'node:fs/promises';
import { exists } from '../files.js';
import { bytes, counted } from '../format/numbers.js';
import { runShell } from '../shell.js';
import { type DatasetChange, datasetVersion, publishDataset } from '../warehouse/dataset/dataset.js';
import { DatasetError } from '../warehouse/dataset/files.js';
import { isPublished, publish } from '../warehouse/publish.js';
import { loadNotes } from './notes.js';
import { readOutages } from '../state/runs.js';
import { saveState } from '../state/saved.js';
import { finishedDataset, recordDataset } from '../state/workspace.js';
import type { Using } from './parts.js';
import { rememberDays } from './known-days.js';
import { copyStateTables } from './state-tables.js';
import { type StepResult, StepRunner, withOutage } from './step.js';

type PublishParts = Using<'workspace' | 'state' | 'sender' | 'store' | 'session'>;

/** The size of the published history, and the changes to the dataset, if there are any. */
export interface Published {
  readonly bytes: number;
  readonly dataset?: DatasetChange | undefined;
}

/** The longest time that `publish.then` may take. */
const MAX_THEN_MS = 3_600_000;

interface PublishOptions {
  /** Whether to write everything again. */
  readonly isWhole?: boolean;
  /** How long `publish.then` may take. */
  readonly maxThenMs?: number;
}

/**
 * Runs the publish step. How it ends is known only after it has published, so if that begins or ends an
 * outage, the history is published once more, with that.
 */
export async function runPublish(
  runner: StepRunner,
  parts: PublishParts,
  options?: PublishOptions,
): Promise<Published | undefined> {
  const { workspace, state, store, session } = parts;
  const isOut = () =>
    readOutages(state, session.now()).some(({ step, over_at }) => step === 'publish' && over_at === null);
  const wasOut = isOut();
  const published = await runner.step('publish', () => publishStep(parts, options));
  if (published !== undefined && isOut() !== wasOut) {
    await copyStateTables(parts);
    await publish(store, workspace.historyFile, { state: saveState(state, workspace.historyFile) });
  }
  if (published !== undefined) await rememberDays(parts);
  return published;
}

/**
 * Does some work and publishes what it changed, even if it failed halfway, unless nothing was published yet. The
 * publication is recorded like any other: without that, nobody would notice if the change were lost later.
 */
export async function doAndPublish<Result>(
  parts: PublishParts,
  work: (runner: StepRunner) => Promise<Result>,
) {
  const runner = new StepRunner(parts);
  const result = await work(runner).catch(async (error: unknown) => {
    // Before the first publication, the database may be empty, which readers would take for a site without views.
    if (await exists(parts.workspace.historyFile)) await runPublish(runner, parts);
    throw error;
  });
  await runPublish(runner, parts);
  return { result, outages: runner.outages };
}

/**
 * Publishes the history, and the dataset if there is one, when readers would see a difference; always with `isWhole`. If
 * the dataset cannot be written or the notes cannot be read, the history is published nevertheless: the result contains
 * the error, and the next publish retries.
 */
export async function publishStep(
  parts: PublishParts,
  { isWhole = false, maxThenMs = MAX_THEN_MS }: PublishOptions = {},
): Promise<StepResult<Published>> {
  const { workspace, state, sender, store, session } = parts;
  const { historyFile } = workspace;
  await sender.expectMayPublish();
  // With the notes published before, if these have problems.
  const ofNotes = await loadNotes(parts);
  await copyStateTables(parts);
  const isDue = isWhole || !(await isPublished(store, historyFile, session.now()));
  const size = isDue
    ? await publish(store, historyFile, { isWhole, state: saveState(state, historyFile) })
    : (await stat(historyFile)).size;
  const summary = isDue ? `${bytes(size)} published` : 'nothing changed since the last time';
  try {
    const dataset = await updateDataset(parts, { isWhole, maxThenMs });
    const words = dataset === undefined ? summary : `${summary}; the dataset: ${datasetSummary(dataset)}`;
    return withOutage({ detail: { bytes: size, dataset }, summary: words }, [ofNotes]);
  } catch (error) {
    return withOutage({ detail: { bytes: size }, summary }, [error, ofNotes]);
  }
}

/**
 * Writes the dataset, and runs `publish.then`. Only when both succeeded is the version finished, so after a failure or an
 * interruption the next publication does both again. Undefined if there is no dataset, or if it is up to date.
 */
async function updateDataset(
  { workspace, state, sender, store, session }: PublishParts,
  { isWhole, maxThenMs }: Required<PublishOptions>,
): Promise<DatasetChange | undefined> {
  const { dataset } = workspace;
  if (dataset === undefined) return undefined;
  const { location, then } = dataset;
  const { signal, observer } = session;
  const version = await datasetVersion(store, dataset, then?.command);
  const finished = finishedDataset(state);
  if (!isWhole && version === finished) return undefined;
  // The original publishes there.
  const otherPlace = sender.otherPlace();
  if (otherPlace !== undefined) throw otherPlace;
  const change = await publishDataset(store, dataset, { isWhole, mayCreate: finished === null, signal });
  if (then !== undefined) {
    const failure = await runShell(then, { timeoutMs: maxThenMs, signal, onLine: observer.onThenOutput });
    if (failure !== undefined)
      throw new DatasetError(
        `The Parquet dataset ${location} is written, but publish.then ${failure}; it is run again with the next publication.`,
      );
  }
  await recordDataset(state, version);
  return change;
}

/** The changes to a dataset, without a final period. */
export const datasetSummary = ({ files, written, removed }: DatasetChange): string =>
  `${counted(files, 'file')}, ${written} written, ${removed} removed`;
