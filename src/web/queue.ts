import type { LimitFunction } from 'p-limit';
import { withParts } from '../app/open.js';
import { placeless, type Runtime, waitingAtMost, type Workspace } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import { ConfigurationError, LockedError, messageOf } from '../errors.js';
import type { Parts, WorkspaceView } from '../steps/parts.js';
import { doAndPublish } from '../steps/publish.js';
import { type Action, actionOf } from './actions.js';

/** A requested action and its state. */
export interface Request {
  /** The fields of the form, the same if it is submitted again. */
  readonly form: string;
  readonly words: string;
  readonly project: string;
  readonly at: Date;
  readonly state: 'waiting' | 'done' | 'failed';
  /** What it waits for, what was done, or why not. */
  readonly answer: string;
}

const SHOWN = 8;
const MOST_WAITING = 50;
/** How many requests are remembered. */
const KEPT = 100;

/**
 * Carries out actions one after another, by the same steps as the commands. While another process
 * holds the live database, an action waits. A stop drops those that wait; of one that has begun, the
 * jobs and messages on the page show how far it got.
 */
export class ActionQueue {
  /** The newest first. */
  #requests: readonly Request[] = [];
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(
    private readonly workspace: Workspace,
    private readonly runtime: Runtime,
    private readonly inTurn: LimitFunction,
  ) {}

  /** Requests about a project: those that wait, and the last others, the newest first. */
  requests(project: string): Request[] {
    const all = this.#requests.filter((request) => request.project === project);
    return all.filter(({ state }, index) => index < SHOWN || state === 'waiting');
  }

  /** Queues what a form requests. A form that was submitted before is not carried out again. */
  add(fields: URLSearchParams): void {
    const { words, work } = actionOf(fields);
    const form = new URLSearchParams([...fields].filter(([name]) => name !== 'token')).toString();
    if (this.#requests.some((request) => request.form === form && request.state !== 'failed')) return;
    if (this.#waiting.size >= MOST_WAITING)
      throw new ConfigurationError('Too many actions are waiting already. Try again later.');
    const project = fields.get('project') ?? '';
    const begun = { at: this.runtime.now(), state: 'waiting' as const };
    const request = { form, words, project, ...begun, answer: 'starts after the current action' };
    this.#store(request);
    const done = this.#carryOut(request, work).finally(() => this.#waiting.delete(form));
    this.#waiting.set(form, done);
  }

  /** Waits until the current action has ended, once the signal of this process has aborted. */
  async close(): Promise<void> {
    if (this.runtime.signal.aborted) await Promise.all(this.#waiting.values());
  }

  async #carryOut(request: Request, work: Action['work']): Promise<void> {
    const { signal } = this.runtime;
    const hold = {
      command: 'serve',
      maxWaitMs: 60_000,
      listener: {},
      onHeld: (who: string) => {
        this.#store({ ...request, answer: `waits for ${who}, which holds the database` });
      },
    };
    // An action does not wait for the hourly limit; a later run sends what is planned.
    const workspace = waitingAtMost(0, this.workspace);
    for (;;)
      try {
        const answer = await this.inTurn(async () => {
          signal.throwIfAborted();
          return withParts(workspace, this.runtime, hold, (parts) =>
            published(parts, () => work(parts, projectOf(parts.workspace, request))),
          );
        });
        this.#store({ ...request, state: 'done', answer });
        return;
      } catch (error) {
        if (error instanceof LockedError && !signal.aborted) continue;
        this.#store({ ...request, state: 'failed', answer: messageOf(error) });
        return;
      }
  }

  /** Remembers a request, in place of what was known of it. */
  #store(given: Request): void {
    const request = { ...given, answer: placeless(this.workspace, given.answer) };
    const at = this.#requests.findIndex(({ form }) => form === request.form);
    const all = at === -1 ? [request, ...this.#requests] : this.#requests.with(at, request);
    this.#requests = all.slice(0, KEPT);
  }
}

function projectOf({ projects }: WorkspaceView, { project }: Request): ProjectSettings {
  const found = projects.find(({ id }) => id === project);
  if (found === undefined) throw new ConfigurationError('There is no such project.');
  return found;
}

/** Does some work, publishes what it changed even if it fails halfway, and says what was done. */
async function published(parts: Parts, work: () => Promise<string>): Promise<string> {
  const { result: done, outages } = await doAndPublish(parts, work);
  const [outage] = outages;
  // The work is done even if it could not be published.
  return outage === undefined ? done : `${done}, but could not be published: ${messageOf(outage.error)}`;
}
