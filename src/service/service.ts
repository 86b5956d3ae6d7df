import cron, { type Logger } from 'node-cron';
import pLimit from 'p-limit';
import { type Listener, withLiveDatabase } from '../app/open.js';
import { type Runtime, waitingAtMost, type Workspace } from '../app/workspace.js';
import { lastScheduled } from '../config/cron.js';
import { untilAborted } from '../sleep.js';
import { runDue } from './loop.js';

/** What a service calls. */
interface ServiceListener extends Listener {
  /** Called with the error of a tick, which does not end the service. */
  readonly onTickFailed: (error: unknown) => void;
}

export type Service = ReturnType<typeof openService>;

/** The service of a workspace: each of its ticks runs the steps that are due. */
export function openService(workspace: Workspace, runtime: Runtime, listener: ServiceListener) {
  const { signal, now } = runtime;
  const since = now();
  // A step does not wait for the hourly limit or the database; a later tick resumes it.
  const impatient = waitingAtMost(0, workspace);
  const hold = { command: 'start', listener, maxWaitMs: 0 };
  const inTurn = pLimit(1);
  const runSteps = async () => {
    try {
      await withLiveDatabase(impatient, runtime, hold, (context) => runDue(context, since));
    } catch (error) {
      if (!signal.aborted) listener.onTickFailed(error);
    }
  };

  let current: Promise<void> | undefined;
  /**
   * Runs the steps that are due. During another tick, does nothing more: what is due stays due.
   * Never rejects.
   */
  const tick = (): Promise<void> =>
    (current ??= inTurn(runSteps).finally(() => {
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
   * has aborted and the current tick has ended.
   */
  const run = async (logger: Logger): Promise<void> => {
    const minutely = cron.schedule('* * * * *', lookAtClock, { logger, suppressMissedWarning: true });
    try {
      void tick();
      await untilAborted(signal);
    } finally {
      await minutely.destroy();
      await current;
    }
  };
  return {
    tick,
    run,
    /** Does other work with the live database, after a tick and before the next. */
    inTurn,
  };
}
