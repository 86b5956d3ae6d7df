import pLimit from 'p-limit';
import { withParts } from '../app/open.js';
import { withoutDirectories, type Runtime, type Workspace } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import { messageOf } from '../errors.js';
import { readHolder } from '../state/lock.js';
import type { State } from '../state/state.js';
import { submitWaiting } from '../steps/poll.js';
import { doAndStore } from '../steps/history.js';
import { byBothClocks } from '../steps/step.js';

/** Sends what people approved and wrote, in the background: at once, or after the process that works now. */
export class Sending {
  readonly #oneAtATime = pLimit(1);

  constructor(
    private readonly workspace: Workspace,
    private readonly runtime: Runtime,
    private readonly onError: (words: string) => void,
  ) {}

  /** Whether something is being sent, or waits for another process. */
  get isUnderWay(): boolean {
    return this.#oneAtATime.activeCount + this.#oneAtATime.pendingCount > 0;
  }

  /** Begins to send the prompts of a project that wait. What a stop cuts short stays planned, and the next run sends it. */
  begin(project: ProjectSettings): void {
    const report = (problem: unknown): void => {
      if (problem !== undefined && !this.runtime.signal.aborted)
        this.onError(withoutDirectories(this.workspace, messageOf(problem)));
    };
    void this.#oneAtATime(() => this.#send(project)).then(report, report);
  }

  /** Waits until nothing is being sent anymore, once the signal of this process has aborted. */
  async close(): Promise<void> {
    if (this.runtime.signal.aborted) await this.#oneAtATime(() => undefined);
  }

  /** Resolves with what kept a prompt from being sent, if anything did. */
  #send(project: ProjectSettings): Promise<unknown> {
    const hold = { command: 'serve', maxWaitMs: Infinity, listener: {} };
    this.runtime.signal.throwIfAborted();
    return withParts(this.workspace, this.runtime, hold, async (given) => {
      const parts = await byBothClocks(given);
      const { result } = await doAndStore(parts, () => submitWaiting(parts, project));
      return result.stopped;
    });
  }
}

/** Who sends what was just stored. */
export function whoSends(state: State): string {
  const holder = readHolder(state);
  if (holder === undefined) return 'it is being sent';
  if (holder.command === 'readership start') return '`readership start` sends it within a minute';
  return `it is sent after \`${holder.command}\``;
}
