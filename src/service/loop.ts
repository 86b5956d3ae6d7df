import { UTCDateMini as UTCDate } from '@date-fns/utc/date/mini';
import { addMinutes, format } from 'date-fns';
import cron, { type Logger, type ScheduledTask } from 'node-cron';
import pLimit from 'p-limit';
import { z } from 'zod';
import { type Listener, withLiveDatabase } from '../app/open.js';
import { type Runtime, waitingAtMost, type Workspace } from '../app/workspace.js';
import { lastScheduled } from '../config/cron.js';
import { messageOf } from '../errors.js';
import { DirectoryChangedError, DirectoryWatch } from '../effects/marker.js';
import { connectionFailure, requestUrl } from '../network.js';
import { timeLimit, untilAborted } from '../sleep.js';
import { exportStep } from '../steps/export.js';
import { isUpToDate, runPublish } from '../steps/publish.js';
import { improveStep } from '../steps/improve.js';
import { pollStep } from '../steps/poll.js';
import { reportStep } from '../steps/report.js';
import { type StepContext, StepRunner } from '../steps/step.js';
import { readLastRuns, type StepName } from '../steps/runs.js';
import { readSql } from '../warehouse/query.js';
import { sendAlerts } from './alerts.js';
import { dueSteps } from './due.js';

/** The results of the five steps. */
export type RunOutcome = Awaited<ReturnType<typeof runOnce>>;

interface RunOptions {
  /** Whether improve creates the jobs it plans. */
  readonly apply: boolean;
  /** How long to keep polling while jobs are active; by default each due job is polled once. */
  readonly waitMs?: number;
  /** The steps to run; by default all. */
  readonly due?: ReadonlySet<StepName>;
}

/**
 * Runs the five steps in order: export, improve, poll, report, publish. Each step finds what is due in
 * stored state, so this may be done at any time, twice, or after a week offline. A step that fails is
 * recorded and does not stop the next; an interruption does.
 */
export async function runOnce(context: StepContext, { apply, waitMs = 0, due }: RunOptions) {
  const run = new StepRunner(context, due);
  const exported = await pinging(context, run, () => run.step('export', () => exportStep(context)));
  const improved = await run.step('improve', () => improveStep(context, apply));
  const isHeldBack = apply && improved !== undefined;
  const polling = waitMs === 0 ? {} : { deadlineMs: performance.now() + waitMs, keepsPolling: true };
  const polled = await run.step('poll', () => pollStep(context, { ...polling, isHeldBack }));
  const reported = await run.step('report', () => reportStep(context));
  // Before publishing, so that the published history has them; after it for a failure of publishing itself.
  const unsent = new Set([await sendAlerts(context)]);
  await runPublish(run, context);
  unsent.add(await sendAlerts(context));
  // Not again what a step says.
  for (const { error } of run.outages) unsent.delete(messageOf(error));
  sayUnsent(context, unsent);
  return { exported: exported ?? [], improved: improved ?? [], polled, reported, outages: run.outages };
}

/** Says why alerts were not sent, if they were not. */
function sayUnsent({ observer }: StepContext, unsent: Iterable<string | undefined>): void {
  for (const why of unsent) if (why !== undefined) observer.onAlertFailed?.(`No alert could be sent: ${why}`);
}

/** How long a monitoring service may take to answer. */
const PING_TIMEOUT_MS = 5_000;

/** Exports between two pings. An export that has to wait sends no second one, so the monitor waits too. */
async function pinging<Detail>(
  { settings, elsewhere, signal, observer }: StepContext,
  run: StepRunner,
  work: () => Promise<Detail>,
): Promise<Detail> {
  const { pingUrl } = settings.alerts;
  if (pingUrl === undefined || elsewhere !== undefined || !run.isToDo('export')) return work();
  // The path of the address is a secret.
  const monitor = `The ping to ${new URL(pingUrl).origin} (alerts.pingUrl)`;
  const ping = async (suffix: '/start' | '/fail' | '') => {
    try {
      const inTime = timeLimit(PING_TIMEOUT_MS, signal);
      const { statusCode, body } = await requestUrl(pingUrl + suffix, { signal: inTime });
      await body.dump();
      if (statusCode >= 400) observer.onAlertFailed?.(`${monitor} got status ${statusCode}.`);
    } catch (error) {
      observer.onAlertFailed?.(`${monitor} failed: ${connectionFailure(error)}`);
    }
  };
  await ping('/start');
  const result = await work().catch(async (error: unknown) => {
    // Not even the failure could be recorded.
    await ping('/fail');
    throw error;
  });
  const outcome = run.outages.find(({ step }) => step === 'export')?.outcome;
  if (outcome === undefined) await ping('');
  if (outcome === 'failed') await ping('/fail');
  return result;
}

const POLL_WAITS = readSql(import.meta.url, 'statements/poll-waits.sql');

/** Runs the steps that are due; undefined if none is. `serviceSince` is when the service began. */
export async function runDue(context: StepContext, serviceSince: Date): Promise<RunOutcome | undefined> {
  const { warehouse, settings, now } = context;
  const at = now();
  const apply = settings.improve.mode === 'apply';
  const [poll] = await warehouse.query(POLL_WAITS, z.object({ waits: z.boolean() }), { apply, now: at });
  const runs = await readLastRuns(warehouse, at);
  const stored = {
    runs,
    pollWaits: poll?.waits ?? false,
    serviceSince,
    // If that cannot be determined, publishing reports why.
    isUpToDate: await isUpToDate(context).catch(() => false),
  };
  const due = dueSteps(settings.schedule, stored, at);
  if (due.size > 0) return runOnce(context, { apply, due });
  sayUnsent(context, [await sendAlerts(context)]);
  return undefined;
}

/** What a service calls. */
interface ServiceListener extends Listener {
  /** Called with the error of a tick, which does not end the service. */
  readonly onTickFailed: (error: unknown) => void;
}

const MINUTE_MS = 60_000;

export type Service = ReturnType<typeof openService>;

/** The service of a workspace: each of its ticks runs the steps that are due. */
export function openService(workspace: Workspace, runtime: Runtime, listener: ServiceListener) {
  const { signal, now } = runtime;
  const since = now();
  // A step does not wait for the hourly limit or the database; a later tick resumes it.
  const impatient = waitingAtMost(0, workspace);
  const hold = { command: 'start', listener, maxWaitMs: 0 };
  const inTurn = pLimit(1);
  const directory = new DirectoryWatch(workspace.dataDir);
  const stop = new AbortController();
  const runTick = async () => {
    try {
      await directory.expectSame();
      await withLiveDatabase(impatient, runtime, hold, (context) => runDue(context, since));
      await directory.expectSame();
    } catch (error) {
      if (error instanceof DirectoryChangedError) stop.abort(error);
      else if (!signal.aborted) listener.onTickFailed(error);
    }
  };

  let current: Promise<void> | undefined;
  /**
   * Runs the steps that are due. During another tick, does nothing more: what is due stays due.
   * Never rejects.
   */
  const tick = (): Promise<void> =>
    (current ??= inTurn(runTick).finally(() => {
      current = undefined;
    }));

  const { timezone, ...expressions } = workspace.settings.schedule;
  let checkedAt = since;
  /** Looks at the clock, and ticks if a scheduled time has passed since the last look. */
  const lookAtClock = async (): Promise<void> => {
    const at = now();
    const isTime = Object.values(expressions).some(
      (expression) => lastScheduled(expression, timezone, at) > checkedAt,
    );
    checkedAt = at;
    if (isTime) await tick();
  };

  /**
   * Ticks at once, and then whenever any of the schedules is due. Returns once the runtime's signal
   * has aborted and the current tick has ended. Throws a `DirectoryChangedError`.
   */
  const run = async (logger: Logger): Promise<void> => {
    let minute: ScheduledTask | undefined;
    // A task for each minute: node-cron counts, one by one, all the times of a task that it missed when
    // the clock was set forward.
    const awaitMinute = () => {
      void minute?.destroy();
      const next = format(new UTCDate(addMinutes(now(), 1)), 'm H d M *');
      minute = cron.schedule(next, onMinute, {
        timezone: 'UTC',
        missedExecutionTolerance: Infinity,
        suppressMissedWarning: true,
        logger,
      });
    };
    const onMinute = () => {
      awaitMinute();
      return lookAtClock();
    };
    // When the clock is set back, node-cron would wait for a minute that is now far away.
    const offset = () => now().getTime() - performance.now();
    let known = offset();
    const watch = setInterval(() => {
      if (Math.abs(offset() - known) < MINUTE_MS) return;
      known = offset();
      awaitMinute();
    }, 1_000);
    try {
      awaitMinute();
      void tick();
      await untilAborted(AbortSignal.any([signal, stop.signal]));
    } finally {
      clearInterval(watch);
      await minute?.destroy();
      await current;
    }
    if (!signal.aborted) stop.signal.throwIfAborted();
  };
  return {
    tick,
    run,
    /** Does other work with the live database, after a tick and before the next. */
    inTurn,
  };
}
