import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LimitFunction } from 'p-limit';
import { z } from 'zod';
import { withParts } from '../app/open.js';
import { placeless, type Runtime, type Workspace } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import { codeOf, ConfigurationError, LockedError, messageOf } from '../errors.js';
import { writeWhole } from '../files.js';
import type { Parts, WorkspaceView } from '../steps/parts.js';
import { doAndPublish } from '../steps/publish.js';
import { type Action, actionOf } from './actions.js';

const requestSchema = z.object({
  /** The fields of the form, the same if it is submitted again. */
  form: z.string(),
  words: z.string(),
  project: z.string(),
  at: z.coerce.date(),
  /** The process that carries it out. */
  pid: z.int(),
  state: z.enum(['waiting', 'done', 'failed']),
  /** What it waits for, what was done, or why not. */
  answer: z.string(),
});
/** A requested action and its state. */
export type Request = z.infer<typeof requestSchema>;

const SHOWN = 8;
const MOST_WAITING = 50;
/** How many requests are remembered. */
const KEPT = 100;
const CUT_SHORT = 'Readership was stopped meanwhile. Nothing was sent; see below whether it was recorded';
const STOPPED = 'Readership was stopped before this finished. What was sent is looked up at the next start';

/**
 * Carries out actions one after another, by the same steps as the commands. While another process
 * holds the live database, an action waits. Requests are kept in one file for all servers of a
 * workspace, so that what a stop cut short is looked up by the next one.
 */
export class ActionQueue {
  readonly #file: string;
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(
    private readonly workspace: Workspace,
    private readonly runtime: Runtime,
    private readonly inTurn: LimitFunction,
    private readonly onError: (words: string) => void,
  ) {
    this.#file = join(workspace.dataDir, 'web-requests.json');
  }

  /** Requests about a project: those that wait, and the last others, the newest first. */
  requests(project: string): Request[] {
    const all = this.#read().filter((request) => request.project === project);
    return all.filter(({ state }, index) => index < SHOWN || state === 'waiting');
  }

  /** Looks up what became of the requests that a stopped process left waiting. */
  resume(): void {
    const isLeft = ({ form, pid, state }: Request) =>
      // After a restart, a container has the same process number.
      state === 'waiting' && (pid === process.pid ? !this.#waiting.has(form) : !isRunning(pid));
    const answer = 'Readership was stopped before this finished. Looking up what was sent';
    for (const request of this.#read().filter(isLeft).toReversed())
      this.#begin({ ...request, answer }, async (...on) => {
        const { lookUp } = actionOf(new URLSearchParams(request.form));
        if (lookUp === undefined) throw new ConfigurationError(CUT_SHORT);
        return lookUp(...on);
      });
  }

  /** Queues what a form requests. A form that was submitted before is not carried out again. */
  add(fields: URLSearchParams): void {
    const { words, work } = actionOf(fields);
    const form = new URLSearchParams([...fields].filter(([name]) => name !== 'token')).toString();
    if (this.#read().some((request) => request.form === form && request.state !== 'failed')) return;
    if (this.#waiting.size >= MOST_WAITING)
      throw new ConfigurationError('Too many actions are waiting already. Try again later.');
    const project = fields.get('project') ?? '';
    const begun = { at: this.runtime.now(), state: 'waiting' as const };
    this.#begin({ form, words, project, ...begun, answer: 'starts after the current action' }, work);
  }

  /** Waits until the current action has ended, once the signal of this process has aborted. */
  async close(): Promise<void> {
    if (this.runtime.signal.aborted) await Promise.all(this.#waiting.values());
  }

  #begin(request: Omit<Request, 'pid'>, work: Action['work']): void {
    const begun = { ...request, pid: process.pid };
    this.#store(begun);
    const done = this.#carryOut(begun, work).finally(() => this.#waiting.delete(begun.form));
    this.#waiting.set(begun.form, done);
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
    for (;;)
      try {
        const answer = await this.inTurn(async () => {
          signal.throwIfAborted();
          return withParts(this.workspace, this.runtime, hold, (parts) =>
            published(parts, () => work(parts, projectOf(parts.workspace, request), request.at)),
          );
        });
        this.#store({ ...request, state: 'done', answer });
        return;
      } catch (error) {
        if (error instanceof LockedError && !signal.aborted) continue;
        // What a stop cut short stays waiting: the next start looks it up.
        if (signal.aborted) this.#store({ ...request, answer: STOPPED });
        else this.#store({ ...request, state: 'failed', answer: messageOf(error) });
        return;
      }
  }

  /** The remembered requests, the newest first; none if the file is missing or damaged. */
  #read(): Request[] {
    try {
      return z.array(requestSchema).parse(JSON.parse(readFileSync(this.#file, 'utf8')));
    } catch {
      return [];
    }
  }

  /** Only pages and the next start need the file, so an action does not fail without it. */
  #store(given: Request): void {
    const request = { ...given, answer: placeless(this.workspace, given.answer) };
    const known = this.#read();
    const at = known.findIndex(({ form }) => form === request.form);
    const all = at === -1 ? [request, ...known] : known.with(at, request);
    try {
      writeWhole(this.#file, JSON.stringify(all.slice(0, KEPT)));
    } catch (error) {
      this.onError(`Cannot write ${this.#file}: ${messageOf(error)}`);
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === 'EPERM';
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
