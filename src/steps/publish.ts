import { counted } from '../format/numbers.js';
import { type DatasetChange, DatasetError, datasetVersion, publishDataset } from '../history/dataset.js';
import { runShell } from '../shell.js';
import { finishedDataset, recordDataset } from '../state/workspace.js';
import type { Parts, StepResult } from './step.js';

/** The longest time that `publish.then` may take. */
const MAX_THEN_MS = 3_600_000;

interface PublishOptions {
  /** Whether to write everything again. */
  readonly isWhole?: boolean;
  /** How long `publish.then` may take. */
  readonly maxThenMs?: number;
}

/**
 * Writes the Parquet dataset, and runs `publish.then`. Only when both succeeded is its version finished, so after a failure
 * or an interruption the next publication does both again. The detail is undefined if there is no dataset, or if it is up
 * to date.
 */
export async function publishStep(
  { workspace, state, sender, store, session }: Parts,
  { isWhole = false, maxThenMs = MAX_THEN_MS }: PublishOptions = {},
): Promise<StepResult<DatasetChange | undefined>> {
  const { dataset } = workspace;
  if (dataset === undefined) return { detail: undefined, summary: 'no dataset is configured' };
  const { location, then } = dataset;
  const { signal, observer } = session;
  const version = await datasetVersion(store, dataset, then?.command);
  const finished = finishedDataset(state);
  if (!isWhole && version === finished)
    return { detail: undefined, summary: 'nothing changed since the last time' };
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
  return { detail: change, summary: datasetSummary(change) };
}

/** The changes to a dataset, without a final period. */
export const datasetSummary = ({ files, written, removed }: DatasetChange): string =>
  `${counted(files, 'file')}, ${written} written, ${removed} removed`;
