import { z } from 'zod';
import { timestampColumn } from '../columns.js';
import { isSamePlace, OtherPlaceError, placeRow, type SendingPlace } from './place.js';
import type { State } from './state.js';

const workspaceRow = placeRow.extend({
  id: z.string(),
  /** The number of the last attempt to send something, and when it began. */
  attempt: z.int(),
  attempted_at: timestampColumn.nullable(),
  /** How often jobs, messages, emails or skips have changed. */
  changes: z.int(),
  locks_work_on: z.string().nullable(),
  /** The history that was last written, as `stampOf` has it; null before there was one. */
  history: z.string().nullable(),
  /** The version of the Parquet dataset that was last finished; null if none was. */
  dataset: z.string().nullable(),
});
/** The workspace that a state belongs to. */
export type WorkspaceRow = Readonly<z.infer<typeof workspaceRow>>;

export function readWorkspaceRow(state: State): WorkspaceRow {
  const row = state.get('SELECT * FROM workspace', workspaceRow);
  if (row === undefined) throw new Error(`${state.path} has no workspace`);
  return row;
}

/** The error that says which place sends, if it is another one; undefined if it is this one. */
export function otherPlace(state: State, here: SendingPlace): OtherPlaceError | undefined {
  const recorded = readWorkspaceRow(state);
  return isSamePlace(recorded, here) ? undefined : new OtherPlaceError(recorded, here, recorded.attempted_at);
}

/** The version of the Parquet dataset that was last finished; null if none was. The dataset itself is not read. */
export const finishedDataset = (state: State): string | null => readWorkspaceRow(state).dataset;

/** Remembers the version that is finished; null lets the next publication look at the dataset. */
export const recordDataset = (state: State, version: string | null): Promise<number> =>
  state.transaction(() => state.run('UPDATE workspace SET dataset = $version', { version }));

/** Remembers which history was last written, inside a transaction. */
export const setHistory = (state: State, stamp: string | undefined): number =>
  state.run('UPDATE workspace SET history = $stamp', { stamp: stamp ?? null });

/** Whether a history was ever written. */
export const hasHistory = (state: State): boolean =>
  state.get('SELECT history FROM workspace', workspaceRow.pick({ history: true }))?.history != null;
