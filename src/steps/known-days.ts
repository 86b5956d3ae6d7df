import { z } from 'zod';
import { timestampColumn } from '../columns.js';
import { dayRun, readDayRuns, recentSince } from '../export/ledger.js';
import { readSettling, settlingRow } from '../export/settling.js';
import { stampOf } from '../files.js';
import { readKnownDays, storeKnownDays } from '../state/known-days.js';
import type { State } from '../state/state.js';
import type { Reader } from '../history/query.js';
import { type FutureRows, readFutureDays } from './dated-in-future.js';
import type { Using, WorkspaceView } from './parts.js';

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

/** Stores what is known of the history, so that it need not be opened; nothing if some of it is dated in the future. */
export async function rememberDays({
  workspace: { historyFile, settings },
  state,
  store,
  session,
}: Using<'workspace' | 'state' | 'store' | 'session'>): Promise<void> {
  const stamp = await historyStamp(historyFile);
  const projects = settings.projects.map(({ id }) => id);
  const stored = readKnownDays(state, stamp);
  if (projects.every((id) => stored.has(id))) return;
  const now = session.now();
  const { projects: known, datedInFuture } = await readDays(store.file, projects, now);
  if (datedInFuture.length > 0) return;
  const texts = [...known].map(([id, days]) => [id, JSON.stringify({ ...days, read_at: now })] as const);
  await storeKnownDays(state, stamp, new Map(texts));
}

/** What changes when the history is replaced. */
export const historyStamp = async (historyFile: string): Promise<string> =>
  (await stampOf(historyFile)) ?? '';
