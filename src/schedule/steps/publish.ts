import { stat } from 'node:fs/promises';
import { publish } from '../../warehouse/publish.js';
import type { StepContext, StepResult } from '../context.js';

/** Publishes the history when something changed, or when there is none yet. The detail is its size in bytes. */
export async function publishStep(context: StepContext, changed: boolean): Promise<StepResult<number>> {
  const { warehouse, historyFile, returnUnused } = context;
  const published = await sizeOf(historyFile);
  if (!changed && published !== undefined)
    return { detail: published, summary: 'nothing changed since the last time', changed: false };
  await returnUnused();
  const bytes = await publish(warehouse, historyFile);
  return { detail: bytes, summary: `${bytes} bytes published`, changed: false };
}

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    return (await stat(file)).size;
  } catch {
    // Not published yet, or not readable: publishing says which.
    return undefined;
  }
}
