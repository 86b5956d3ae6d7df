import { type ClientOptions, VIEWS_OPERATION } from '../api/client.js';
import { nextMinute } from '../format/days.js';
import type { Observer, StepContext } from '../schedule/context.js';
import { reconcileEffects } from '../app/reconcile-effects.js';
import { EffectsJournal } from '../warehouse/effects.js';
import { openWarehouse } from '../warehouse/open.js';
import { refuseToForget } from '../warehouse/behind.js';
import { openBudgets } from './budgets.js';
import { jobLine } from './job-lines.js';
import { ExportProgress } from './export-progress.js';
import type { Output } from '../terminal/output.js';
import { retryNotes } from '../terminal/log.js';
import type { Runtime } from './runtime.js';
import {
  connect,
  readWorkspace,
  transportOf,
  waitingAtMost,
  type Workspace,
  type WorkspaceOptions,
} from './workspace.js';

/** How long a command waits for another process to let go of the live database. */
export const MAX_LOCK_WAIT_MS = 30_000;

type StepWork<Result> = (
  context: StepContext,
  workspace: Workspace,
  progress: ExportProgress,
) => Promise<Result>;

/**
 * Runs `work` with everything that steps need, and lets go of it all again, however it ends. One that `waits` does so for
 * the budget as long as it takes.
 */
export async function withSteps<Result>(
  command: string,
  { waits = false, ...options }: WorkspaceOptions & { readonly waits?: boolean },
  runtime: Runtime,
  work: StepWork<Result>,
): Promise<Result> {
  const configured = await readWorkspace(options, runtime);
  const workspace = waits ? waitingAtMost(Infinity, configured) : configured;
  const progress = new ExportProgress(runtime.output);
  const listener = showing(progress, runtime.output);
  const onHeld = (who: string) => {
    runtime.output.note(`The database is held by ${who}; waiting for up to ${MAX_LOCK_WAIT_MS / 1000} s.`);
  };
  const hold = { command, listener, onHeld, maxWaitMs: MAX_LOCK_WAIT_MS };
  try {
    return await withLiveDatabase(workspace, runtime, hold, (context) => work(context, workspace, progress));
  } finally {
    progress.end();
  }
}

/** Told of what happens while the live database is held. */
export interface Listener extends Pick<ClientOptions, 'onRequest' | 'onRetry'> {
  readonly observer: Observer;
  /** Told when requests wait for their turn, until when, and why. */
  readonly onWait: (until: Date, why: string) => void;
  /** Called when the effects journal and the database did not agree. */
  readonly onReconciled: (words: string) => void;
  /** Called when the clocks of this machine and of the platform are far apart. */
  readonly onSkew: (words: string) => void;
}

/** Who holds the live database, and how long that waits for whoever held it before. */
interface Hold {
  readonly command: string;
  readonly listener: Listener;
  readonly maxWaitMs: number;
  /** Told, once, who it waits for. */
  readonly onHeld?: (who: string) => void;
}

/**
 * Runs `work` while holding the live database. Throws a `LockedError` when another process does not let go of it, and a
 * `StorageError` when it is to be restored first.
 */
export async function withLiveDatabase<Result>(
  workspace: Workspace,
  runtime: Runtime,
  { command, listener, maxWaitMs, onHeld }: Hold,
  work: (context: StepContext) => Promise<Result>,
): Promise<Result> {
  const { now, signal } = runtime;
  const { liveFile, historyFile } = workspace;
  refuseToForget(liveFile, historyFile);
  const warehouse = await openWarehouse(liveFile, {
    command: `readership ${command}`,
    ...{ historyFile, now, signal, maxWaitMs },
    ...(onHeld === undefined ? {} : { onHeld }),
  });
  let journal: EffectsJournal | undefined;
  try {
    journal = await EffectsJournal.open(workspace.dataDir);
    const { words, unknownDeliveries } = await reconcileEffects(journal, warehouse, now());
    if (words !== undefined) listener.onReconciled(words);
    const ledgers = { warehouse, journal, unknownDeliveries };
    return await withConnection(workspace, ledgers, runtime, listener, work);
  } finally {
    await journal?.close();
    await warehouse.close();
  }
}

async function withConnection<Result>(
  workspace: Workspace,
  ledgers: Pick<StepContext, 'warehouse' | 'journal' | 'unknownDeliveries'>,
  runtime: Runtime,
  { observer, onWait, ...callbacks }: Listener,
  work: (context: StepContext) => Promise<Result>,
): Promise<Result> {
  const { now, signal } = runtime;
  const { settings, projects, shard, directory: workspaceDir } = workspace;
  const { historyFile, reportsDir, lakeDir } = workspace;
  const budgets = await openBudgets(ledgers.warehouse, settings, now, onWait);
  const { clientOf, clock, close } = await connect(workspace, runtime, callbacks, budgets.paceOf);
  try {
    const transport = () => transportOf(workspace);
    const places = { workspaceDir, historyFile, reportsDir, lakeDir };
    return await work({
      ...{ settings, projects, shard, ...ledgers, clientOf, clock, transport },
      ...{ ...places, now, signal, observer },
      returnUnused: budgets.close,
    });
  } finally {
    await close();
    await budgets.close();
  }
}

const showing = (progress: ExportProgress, output: Output): Listener => ({
  onWait: (until, why) => {
    output.note(`${why} Waiting until ${nextMinute(until)}.`);
  },
  onReconciled: (words) => {
    output.note(words);
  },
  onSkew: (words) => {
    output.note(words);
  },
  onRequest: ({ name }) => {
    if (name === VIEWS_OPERATION) progress.countRequest();
  },
  onRetry: retryNotes((text) => {
    output.note(text);
  }),
  observer: {
    onExportPlan: (project, plan) => {
      progress.begin(project, plan);
    },
    onDay: (_, result) => {
      progress.advance(result);
    },
    onAlertFailed: (words) => {
      output.note(words);
    },
    onJob: (job) => {
      output.note(jobLine(job));
    },
  },
});
