import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LimitFunction } from 'p-limit';
import { z } from 'zod';
import { type Listener, withLiveDatabase } from '../app/open.js';
import { type Runtime, waitingAtMost, type Workspace } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import { ConfigurationError, LockedError, messageOf } from '../errors.js';
import { writeWhole } from '../files.js';
import type { StepContext } from '../steps/step.js';
import { publishStep } from '../steps/history.js';

/** Something that a form can request. */
export interface Action {
  readonly words: string;
  /** Does it, and says what was done. */
  readonly work: (context: StepContext, project: ProjectSettings) => Promise<string>;
}

const requestSchema = z.object({
  words: z.string(),
  state: z.enum(['waiting', 'done', 'failed']),
  /** What it waits for, what was done, or why not. */
  answer: z.string(),
});
/** A requested action and its state. */
type Request = z.infer<typeof requestSchema>;

const KEPT = 8;
const MOST_WAITING = 50;
const STOPPED =
  'readership was stopped before this finished. Check below whether it was done before you request it again';

/**
 * Carries out actions one after another, by the same steps as the commands. While another process
 * holds the live database, an action waits.
 */
export class ActionQueue {
  /**
   * The newest first. They are stored, so that one cut short by the end of this process is shown as
   * not done.
   */
  readonly requests: Request[];
  readonly #file: string;
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(
    private readonly workspace: Workspace,
    private readonly runtime: Runtime,
    private readonly inTurn: LimitFunction,
    port: number,
    private readonly onError: (words: string) => void,
  ) {
    // Another server of this workspace has another port.
    this.#file = join(workspace.dataDir, `web-requests-${port}.json`);
    this.requests = readRequests(this.#file).map((request) =>
      request.state === 'waiting' ? { ...request, state: 'failed', answer: STOPPED } : request,
    );
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Queues an action about the project `id`. A second click, which has the same `key`, changes nothing. */
  add({ words, work }: Action, id: string | null, key: string): void {
    if (this.#waiting.has(key)) return;
    if (this.waiting >= MOST_WAITING)
      throw new ConfigurationError('Too many actions are waiting already. Try again later.');
    const request: Request = { words, state: 'waiting', answer: 'starts after the current action' };
    this.requests.unshift(request);
    while (this.requests.length > KEPT && this.requests.at(-1)?.state !== 'waiting') this.requests.pop();
    const done = this.#carryOut(request, async (context) => {
      const project = context.projects.find((project) => project.id === id);
      if (project === undefined) throw new ConfigurationError('There is no such project.');
      return work(context, project);
    }).finally(() => {
      this.#waiting.delete(key);
      this.#store();
    });
    this.#waiting.set(key, done);
    this.#store();
  }

  /** Waits until the current action has ended, once the signal of this process has aborted. */
  async close(): Promise<void> {
    if (this.runtime.signal.aborted) await Promise.all(this.#waiting.values());
  }

  async #carryOut(request: Request, work: (context: StepContext) => Promise<string>): Promise<void> {
    const { signal } = this.runtime;
    const hold = {
      ...{ command: 'serve', maxWaitMs: 60_000, listener: SILENT },
      onHeld: (who: string) => {
        request.answer = `waits for ${who}, which holds the database`;
      },
    };
    // An action does not wait for the hourly limit; a later run sends what is planned.
    const workspace = waitingAtMost(0, this.workspace);
    for (;;)
      try {
        request.answer = await this.inTurn(async () => {
          signal.throwIfAborted();
          return withLiveDatabase(workspace, this.runtime, hold, (context) => published(context, work));
        });
        request.state = 'done';
        return;
      } catch (error) {
        if (error instanceof LockedError && !signal.aborted) continue;
        request.state = 'failed';
        request.answer = signal.aborted ? STOPPED : messageOf(error);
        return;
      }
  }

  /** Only the next start needs the file, so an action does not fail without it. */
  #store(): void {
    try {
      writeWhole(this.#file, JSON.stringify(this.requests));
    } catch (error) {
      this.onError(`Cannot write ${this.#file}: ${messageOf(error)}`);
    }
  }
}

/** The requests of the previous process; none if its file is missing or damaged. */
function readRequests(file: string): Request[] {
  try {
    return z.array(requestSchema).parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return [];
  }
}

const ignore = () => undefined;
const SILENT: Listener = { onWait: ignore, onReconciled: ignore, onSkew: ignore, observer: {} };

/** Does some work, publishes what it changed, and says what was done. */
async function published(
  context: StepContext,
  work: (context: StepContext) => Promise<string>,
): Promise<string> {
  // The work is done even if this fails.
  const publish = () =>
    publishStep(context).then(
      () => '',
      (error: unknown) => `, but could not be published: ${messageOf(error)}`,
    );
  const done = await work(context).catch(async (error: unknown) => {
    await publish();
    throw error;
  });
  return done + (await publish());
}
