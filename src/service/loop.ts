import { UTCDateMini as UTCDate } from '@date-fns/utc/date/mini';
import { addMinutes, format } from 'date-fns';
import { stat } from 'node:fs/promises';
import cron, { type Logger, type ScheduledTask } from 'node-cron';
import { type Listener, withParts } from '../app/open.js';
import { withState } from '../app/state.js';
import type { Runtime, Workspace } from '../app/workspace.js';
import { lastScheduled } from '../config/cron.js';
import { StorageError } from '../errors.js';
import { ignoreMissing } from '../files.js';
import { untilAborted } from '../sleep.js';
import { isSendDue, runDue } from './run.js';
import { readUnsettled, type Unsettled } from './status.js';

/** What a service calls. */
interface ServiceListener extends Listener {
  /** Called with the error of a tick, which does not end the service. */
  readonly onTickFailed: (error: unknown) => void;
  /** Called after each report step with what may or may not have been sent. */
  readonly onUnsettled: (unsettled: Unsettled) => void;
}

/** The service of a workspace: each of its ticks runs the steps that are due. */
export class Service {
  readonly #since: Date;
  /** Which directory the data directory is, once it exists. */
  #directory: string | undefined;
  /** Aborted when the data directory is another one. */
  readonly #stop = new AbortController();
  #current: Promise<void> | undefined;
  #checkedAt: Date;

  constructor(
    private readonly workspace: Workspace,
    private readonly runtime: Runtime,
    private readonly listener: ServiceListener,
  ) {
    this.#since = this.#checkedAt = runtime.now();
  }

  /**
   * Ticks at once, and then whenever any of the schedules is due, or within a minute after a person approved a job or
   * wrote a message. Returns once the runtime's signal has aborted and the current tick has ended. Throws a
   * `DirectoryChangedError`.
   */
  async run(logger: Logger): Promise<void> {
    const { signal, now } = this.runtime;
    const stop = this.#stop.signal;
    const stopMinutes = eachMinute(now, logger, () => this.#lookAtClock());
    try {
      void this.tick();
      await untilAborted(AbortSignal.any([signal, stop]));
    } finally {
      await stopMinutes();
      await this.#current;
    }
    if (!signal.aborted) stop.throwIfAborted();
  }

  /**
   * Runs the steps that are due. During another tick, does nothing more: what is due stays due.
   * Never rejects.
   */
  tick(): Promise<void> {
    return (this.#current ??= this.#tick().finally(() => {
      this.#current = undefined;
    }));
  }

  async #tick(): Promise<void> {
    const { runtime, listener } = this;
    // A tick does not wait for another worker; a later one resumes what is due.
    const hold = { command: 'start', listener, maxWaitMs: 0 };
    try {
      await this.#expectSameDirectory();
      await withParts(this.workspace, runtime, hold, async (parts) => {
        const outcome = await runDue(parts, this.#since);
        if (outcome?.reported === undefined) return;
        listener.onUnsettled(readUnsettled(parts.state, this.workspace.projects, parts.session.now()));
      });
      await this.#expectSameDirectory();
    } catch (error) {
      if (error instanceof DirectoryChangedError) this.#stop.abort(error);
      else if (!runtime.signal.aborted) listener.onTickFailed(error);
    }
  }

  /** Ticks if a scheduled time has passed since the last look at the clock, or if something is to be sent. */
  async #lookAtClock(): Promise<void> {
    const { timezone, ...expressions } = this.workspace.settings.schedule;
    const before = this.#checkedAt;
    const at = (this.#checkedAt = this.runtime.now());
    const isScheduled = Object.values(expressions).some(
      (expression) => lastScheduled(expression, timezone, at) > before,
    );
    if (isScheduled || (await this.#isSendDue(at))) await this.tick();
  }

  /** What is wrong with the state, the next tick says. */
  #isSendDue(at: Date): Promise<boolean> {
    const { settings } = this.workspace;
    return withState(this.workspace, (state) => isSendDue(state, settings, this.#since, at)).catch(
      () => false,
    );
  }

  /** Throws a `DirectoryChangedError` if the data directory is no longer the first one that was seen. */
  async #expectSameDirectory(): Promise<void> {
    const { dataDir } = this.workspace;
    const found = await stat(dataDir).catch(ignoreMissing);
    const directory = found && `${found.dev} ${found.ino}`;
    this.#directory ??= directory;
    if (this.#directory === directory) return;
    throw new DirectoryChangedError(
      `The data directory ${dataDir} is ${directory === undefined ? 'gone' : 'another one now'}, so its disk may not be mounted. ` +
        'Nothing was changed. Bring it back, then start again.',
    );
  }
}

/** The data directory of a running service is another one than before, or gone. */
class DirectoryChangedError extends StorageError {}

const MINUTE_MS = 60_000;

/** Calls `onMinute` each minute, however the clock is set meanwhile, until the function that it returns is called. */
function eachMinute(now: () => Date, logger: Logger, onMinute: () => Promise<void>): () => Promise<void> {
  let next: ScheduledTask | undefined;
  // A task for each minute: node-cron counts, one by one, all the times of a task that it missed when the clock was set
  // forward.
  const awaitNext = (): void => {
    void next?.destroy();
    const minute = format(new UTCDate(addMinutes(now(), 1)), 'm H d M *');
    const onTime = () => {
      awaitNext();
      return onMinute();
    };
    next = cron.schedule(minute, onTime, {
      timezone: 'UTC',
      missedExecutionTolerance: Infinity,
      suppressMissedWarning: true,
      logger,
    });
  };
  awaitNext();
  // When the clock is set back, node-cron would wait for a minute that is now far away.
  const offset = () => now().getTime() - performance.now();
  let known = offset();
  const watch = setInterval(() => {
    if (Math.abs(offset() - known) < MINUTE_MS) return;
    known = offset();
    awaitNext();
  }, 1_000);
  return async () => {
    clearInterval(watch);
    await next?.destroy();
  };
}
