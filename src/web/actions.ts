import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { type Listener, withLiveDatabase } from '../app/open.js';
import { type Runtime, waitingAtMost, type Workspace } from '../app/workspace.js';
import { ConfigurationError, LockedError, messageOf } from '../errors.js';
import type { StepContext } from '../steps/step.js';
import { publishStep } from '../steps/publish.js';
import { DEEDS } from './deeds.js';

const requestSchema = z.object({
  words: z.string(),
  state: z.enum(['waiting', 'done', 'failed']),
  /** What it waits for, what was done, or why not. */
  answer: z.string(),
});
/** An action that was asked for, and what became of it. */
type Request = z.infer<typeof requestSchema>;

const KEPT = 8;
const MOST_WAITING = 50;
const STOPPED =
  'readership was stopped in the meantime. Check below whether it was done before you ask for it again';

/** Takes turns with whatever else in this process holds the live database. */
export type InTurn = <Result>(work: () => Promise<Result>) => Promise<Result>;

/**
 * Carries out actions one after another, by the same steps as the commands. While another process holds the live
 * database, an action is kept and waits.
 */
export class Actions {
  /** The newest first. They are stored, so that one that a stop of this process cut short is shown as not done. */
  readonly requests: Request[];
  readonly #file: string;
  readonly #onError: (words: string) => void;
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(
    private readonly workspace: Workspace,
    private readonly runtime: Runtime,
    private readonly inTurn: InTurn,
    { port, onError }: { readonly port: number; readonly onError: (words: string) => void },
  ) {
    // Another server of this workspace has another port.
    this.#file = join(workspace.dataDir, `web-requests-${port}.json`);
    this.#onError = onError;
    this.requests = readRequests(this.#file).map((request) =>
      request.state === 'waiting' ? { ...request, state: 'failed', answer: STOPPED } : request,
    );
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Keeps what a form asks for. Throws a `ConfigurationError` for a form that was not made here. */
  add(form: URLSearchParams): void {
    const action = form.get('action') ?? '';
    const deed = Object.hasOwn(DEEDS, action) ? DEEDS[action] : undefined;
    const parsed = deed?.safeParse(Object.fromEntries(form));
    if (parsed?.success !== true)
      throw new ConfigurationError('This form is incomplete. Nothing was changed.');
    const { words, work } = parsed.data;
    const key = form.toString();
    // A second click.
    if (this.#waiting.has(key)) return;
    if (this.waiting >= MOST_WAITING)
      throw new ConfigurationError('Too many actions are waiting already. Try again later.');
    const request: Request = {
      ...{ words, state: 'waiting' },
      answer: 'its turn comes once what is under way here has ended',
    };
    this.requests.unshift(request);
    while (this.requests.length > KEPT && this.requests.at(-1)?.state !== 'waiting') this.requests.pop();
    const done = this.#carryOut(request, async (context) => {
      const project = context.projects.find(({ id }) => id === form.get('project'));
      if (project === undefined) throw new ConfigurationError('There is no such project.');
      return work(context, project);
    }).finally(() => {
      this.#waiting.delete(key);
      this.#store();
    });
    this.#waiting.set(key, done);
    this.#store();
  }

  /** Waits until the action under way has ended, once the signal of this process has aborted. */
  async close(): Promise<void> {
    if (this.runtime.signal.aborted) await Promise.all(this.#waiting.values());
  }

  async #carryOut(request: Request, work: (context: StepContext) => Promise<string>): Promise<void> {
    const { signal } = this.runtime;
    const hold = {
      command: 'serve',
      maxWaitMs: 60_000,
      listener: SILENT,
      onHeld: (who: string) => {
        request.answer = `waits for ${who}, which holds the database`;
      },
    };
    // A step never sits waiting for the hourly limit: what is planned is sent by a later run.
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

  /** Only the next start needs it, so no action fails for it. */
  #store(): void {
    try {
      mkdirSync(dirname(this.#file), { recursive: true });
      writeFileSync(`${this.#file}.new`, JSON.stringify(this.requests), { mode: 0o600 });
      renameSync(`${this.#file}.new`, this.#file);
    } catch (error) {
      this.#onError(`Cannot write ${this.#file}: ${messageOf(error)}`);
    }
  }
}

/** Those of the process before; none when there was none, or when its file is damaged. */
function readRequests(file: string): Request[] {
  try {
    return z.array(requestSchema).parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return [];
  }
}

const SILENT: Listener = {
  ...{ onWait: () => undefined, onReconciled: () => undefined, onSkew: () => undefined },
  ...{ onRequest: () => undefined, onRetry: () => undefined, observer: {} },
};

/** Does some work, publishes what it changed, and says what was done. */
async function published(
  context: StepContext,
  work: (context: StepContext) => Promise<string>,
): Promise<string> {
  // It was done, whatever becomes of that.
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
