import { isSameMinute } from 'date-fns';
import pLimit from 'p-limit';
import { type Listener, withParts } from '../app/open.js';
import { type Runtime, waitingAtMost, type Workspace } from '../app/workspace.js';
import { lastScheduled } from '../config/cron.js';
import { DirectoryChangedError, DirectoryWatch } from '../effects/marker.js';
import { untilAborted } from '../sleep.js';
import { runDue } from './run.js';

/** How often the service looks at the clock, which may have been set: a timer for a later time would keep to the old one. */
const LOOK_EVERY_MS = 1_000;

/** What a service calls. */
interface ServiceListener extends Listener {
  /** Called with the error of a tick, which does not end the service. */
  readonly onTickFailed: (error: unknown) => void;
}

/** The service of a workspace: each of its ticks runs the steps that are due. */
export class Service {
  /** Does other work with the live database, after a tick and before the next. */
  readonly inTurn = pLimit(1);
  readonly #since: Date;
  readonly #directory: DirectoryWatch;
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
    this.#directory = new DirectoryWatch(workspace.dataDir);
  }

  /**
   * Ticks at once, and then whenever any of the schedules is due. Returns once the runtime's signal
   * has aborted and the current tick has ended. Throws a `DirectoryChangedError`.
   */
  async run(): Promise<void> {
    const { signal } = this.runtime;
    const stop = this.#stop.signal;
    const timer = setInterval(() => this.#lookAtClock(), LOOK_EVERY_MS);
    try {
      void this.tick();
      await untilAborted(AbortSignal.any([signal, stop]));
    } finally {
      clearInterval(timer);
      await this.#current;
    }
    if (!signal.aborted) stop.throwIfAborted();
  }

  /**
   * Runs the steps that are due. During another tick, does nothing more: what is due stays due.
   * Never rejects.
   */
  tick(): Promise<void> {
    return (this.#current ??= this.inTurn(() => this.#tick()).finally(() => {
      this.#current = undefined;
    }));
  }

  async #tick(): Promise<void> {
    const { runtime, listener } = this;
    // A step does not wait for the hourly limit or the database; a later tick resumes it.
    const impatient = waitingAtMost(0, this.workspace);
    const hold = { command: 'start', listener, maxWaitMs: 0 };
    try {
      await this.#directory.expectSame();
      await withParts(impatient, runtime, hold, (parts) => runDue(parts, this.#since));
      await this.#directory.expectSame();
    } catch (error) {
      if (error instanceof DirectoryChangedError) this.#stop.abort(error);
      else if (!runtime.signal.aborted) listener.onTickFailed(error);
    }
  }

  /** Ticks if a scheduled time, which is always the beginning of a minute, has passed since the last look. */
  #lookAtClock(): void {
    const { timezone, ...expressions } = this.workspace.settings.schedule;
    const before = this.#checkedAt;
    const at = this.runtime.now();
    if (isSameMinute(before, at)) return;
    this.#checkedAt = at;
    if (Object.values(expressions).some((expression) => lastScheduled(expression, timezone, at) > before))
      void this.tick();
  }
}
