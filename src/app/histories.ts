import { formatShard } from '../config/shard.js';
import { type ExitCode, messageOf } from '../errors.js';
import { exists } from '../files.js';
import { copyOfLake } from '../warehouse/lake/copy.js';
import { type History, openHistory, openOwnHistory } from '../warehouse/published.js';
import { openUnited, type Part } from '../warehouse/united.js';
import { partOf, readWorkspace, type Runtime, type Workspace, type WorkspaceOptions } from './workspace.js';

/**
 * The file to read a workspace or a shard from: its published history. If this machine does not have that of a shard, a
 * copy of its days in the lake. Throws a `ReadershipError` if the lake cannot be read.
 */
export async function historyFileOf(
  { historyFile, settings, shard, lake, dataDir, configuration }: Workspace,
  signal: AbortSignal,
  onStale: (words: string) => void = () => undefined,
): Promise<string> {
  if (settings.shards === undefined || lake === undefined || (await exists(historyFile))) return historyFile;
  // Without secrets, the environment is empty.
  const hasCredentials = Object.keys(configuration?.environment ?? {}).length > 0;
  return copyOfLake(dataDir, { place: lake, shard, signal }, hasCredentials, onStale);
}

/** Work with a published history, and the workspace or shard that it belongs to. */
type Work<Result> = (history: History, workspace: Workspace) => Promise<Result>;

/** Runs `work` with the published history, which other processes cannot block. */
export async function withHistory(
  options: WorkspaceOptions,
  runtime: Runtime,
  work: Work<ExitCode>,
): Promise<ExitCode> {
  return withHistoryOf(await readWorkspace(options, runtime, 'optional'), runtime, work);
}

/** The same with a workspace or a shard that was read before. */
export const withHistoryOf = <Result>(
  workspace: Workspace,
  runtime: Pick<Runtime, 'signal' | 'output'>,
  work: Work<Result>,
): Promise<Result> =>
  withHistories(workspace, runtime, async (historyOf) => {
    const opened = await historyOf('');
    return work(opened.history, opened.workspace);
  });

interface Opened {
  readonly history: History;
  /** The workspace or shard, with the file that is read. */
  readonly workspace: Workspace;
}

/** Does some work with the histories of the parts that have its projects, each opened once, when it is first needed. */
export async function withHistories<Result>(
  workspace: Workspace,
  { signal, output }: Pick<Runtime, 'signal' | 'output'>,
  work: (historyOf: (project: string) => Promise<Opened>) => Promise<Result>,
): Promise<Result> {
  const opened = new Map<Workspace, Opened>();
  const historyOf = async (project: string): Promise<Opened> => {
    const part = partOf(workspace, project);
    const known = opened.get(part);
    if (known !== undefined) return known;
    const historyFile = await historyFileOf(part, signal, output.note);
    const found = { history: await openOwnHistory(historyFile), workspace: { ...part, historyFile } };
    opened.set(part, found);
    return found;
  };
  try {
    return await work(historyOf);
  } finally {
    for (const { history } of opened.values()) history.close();
  }
}

/**
 * Opens the history of all parts as one. Says which parts cannot be read, and throws why if none can.
 */
export async function openAllParts(
  workspace: Workspace,
  runtime: Pick<Runtime, 'signal' | 'output'>,
  writable: string | undefined,
  limits: Readonly<Record<string, string>>,
): Promise<History> {
  if (workspace.parts === undefined) {
    const file = await historyFileOf(workspace, runtime.signal, runtime.output.note);
    return openHistory(file, { writable, limits });
  }
  const found: Part[] = [];
  const missing: string[] = [];
  let failure: unknown;
  for (const part of workspace.parts) {
    const { shard } = part;
    if (shard === undefined) continue;
    try {
      const open = (_: History, { historyFile: file }: Workspace) => Promise.resolve({ file, shard });
      found.push(await withHistoryOf(part, runtime, open));
    } catch (error) {
      failure = error;
      const ids = part.projects.map(({ id }) => id).join(', ');
      missing.push(`The answer is without shard ${formatShard(shard)} (${ids}): ${messageOf(error)}`);
    }
  }
  if (found.length === 0) throw failure;
  for (const words of missing) runtime.output.note(words);
  return openUnited(found, { writable, limits });
}
