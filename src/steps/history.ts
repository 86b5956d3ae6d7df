import { addHours, max } from 'date-fns';
import { z } from 'zod';
import { readSql, timestampColumn } from '../columns.js';
import { dayRun, readDayRuns, readSettling, recentSince, settlingRow } from '../export/day-records.js';
import { exists, stampOf } from '../files.js';
import { inSequence, moment } from '../format/days.js';
import { thousands } from '../format/numbers.js';
import type { Reader } from '../history/duckdb.js';
import { readKnownDays, storeKnownDays } from '../state/days.js';
import type { State } from '../state/state.js';
import { readWorkspaceRow } from '../state/workspace.js';
import { StepRunner, type Parts, type WorkspaceView } from './step.js';

/**
 * Writes the history again if jobs, messages, emails or skips have changed since it was written, so that it stays a backup
 * of the state, and remembers what is known of its days. Before anything was loaded, there is no history.
 */
export async function updateHistory(parts: Parts): Promise<void> {
  const { workspace, state, store } = parts;
  if (!(await exists(workspace.historyFile))) return;
  const carried = await store.carried();
  if (carried?.changes !== readWorkspaceRow(state).changes) await store.write();
  await rememberDays(parts);
}

/** Does some work, and writes the history again if the work changed what it carries, even if it failed halfway. */
export async function doAndStore<Result>(parts: Parts, work: (runner: StepRunner) => Promise<Result>) {
  const runner = new StepRunner(parts);
  const result = await work(runner).finally(() => updateHistory(parts));
  return { result, outages: runner.outages };
}

const projectDays = z.object({ runs: z.array(dayRun), settling: settlingRow });
/** What the history says of the days of a project: their states, and how long they took to settle. */
type ProjectDays = z.infer<typeof projectDays>;

/** The same for all projects asked for, and the records that a wrong clock dated in the future. */
export interface KnownDays {
  readonly projects: ReadonlyMap<string, ProjectDays>;
  readonly datedInFuture: readonly FutureRows[];
}

/** Reads them from the history. */
export async function readDays(reader: Reader, projects: Iterable<string>, now: Date): Promise<KnownDays> {
  const known = new Map<string, ProjectDays>();
  for (const project of projects)
    known.set(project, {
      runs: await readDayRuns(reader, project, recentSince(now)),
      settling: await readSettling(reader, project, now),
    });
  return { projects: known, datedInFuture: await readFutureDays(reader, now) };
}

const storedDays = projectDays.extend({ read_at: timestampColumn });

/**
 * What the worker stored of the history; undefined if that has changed since, or if a project is not among it.
 * Before the time at which it was read, other days are recent, and dates may be in the future that were not then.
 */
export async function recallDays(
  { historyFile, projects }: Pick<WorkspaceView, 'historyFile' | 'projects'>,
  state: State,
  now: Date,
): Promise<KnownDays | undefined> {
  const stored = readKnownDays(state, await historyStamp(historyFile));
  const known = new Map<string, ProjectDays>();
  for (const { id } of projects) {
    const text = stored.get(id);
    const days = text === undefined ? undefined : storedDays.parse(JSON.parse(text));
    if (days === undefined || days.read_at > now) return undefined;
    known.set(id, days);
  }
  return { projects: known, datedInFuture: [] };
}

/** Stores what is known of the history, so that it need not be opened, unless that was done when it was written. */
export async function rememberDays({ workspace, state, store, session }: Parts): Promise<void> {
  const stamp = await historyStamp(workspace.historyFile);
  const stored = readKnownDays(state, stamp);
  if (workspace.settings.projects.every(({ id }) => stored.has(id))) return;
  const storeDays = await daysToStore(workspace, state, store.file, session.now());
  await state.transaction(() => {
    storeDays(stamp);
  });
}

/**
 * Reads what is known of a version of the history. Returns what stores it, inside a transaction, with the stamp of that
 * version; nothing if some of it is dated in the future.
 */
export async function daysToStore(
  { settings }: Pick<WorkspaceView, 'settings'>,
  state: State,
  reader: Reader,
  now: Date,
): Promise<(stamp: string) => void> {
  const projects = settings.projects.map(({ id }) => id);
  const { projects: known, datedInFuture } = await readDays(reader, projects, now);
  const texts = [...known].map(([id, days]) => [id, JSON.stringify({ ...days, read_at: now })] as const);
  return (stamp) => {
    if (datedInFuture.length === 0) storeKnownDays(state, stamp, new Map(texts));
  };
}

/** What changes when the history is replaced. */
export const historyStamp = async (historyFile: string): Promise<string> =>
  (await stampOf(historyFile)) ?? '';

const OF_HISTORY = readSql(import.meta.url, 'statements/dated-in-future.sql');
const OF_STATE = readSql(import.meta.url, '../state/statements/dated-in-future.sql');
const futureRow = z.object({ kind: z.string(), rows: z.int(), latest: timestampColumn });

/** Records of a kind that a wrong clock dated in the future, and the furthest of their times. They delay nothing for longer than their own delay. */
type FutureRows = z.infer<typeof futureRow>;

/** Of the history: days and restatements. */
export const readFutureDays = (reader: Reader, now: Date): Promise<FutureRows[]> =>
  reader.query(OF_HISTORY, futureRow, { now });

/** Of the state. */
export const readFutureRecords = (state: State, now: Date): FutureRows[] =>
  state.all(OF_STATE, futureRow, { since: addHours(now, 1) });

/** What they are, and what that means. */
export function futureWords(found: readonly FutureRows[]): string {
  const kinds = inSequence(found.map(({ kind, rows }) => `${thousands(rows)} × ${kind}`));
  return `${kinds}, up to ${moment(max(found.map(({ latest }) => latest)))}, by a clock that was wrong; this delays nothing`;
}
