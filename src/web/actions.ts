import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import { z } from 'zod';
import { withParts } from '../app/open.js';
import { jobLookUp } from '../app/platform.js';
import { whenRoom } from '../agents/reasons.js';
import { expectSendingPlace } from '../app/state.js';
import { withoutDirectories, type Runtime, type Workspace } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import { day } from '../config/values.js';
import { addDays, dayOf } from '../day.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { longDay } from '../format/days.js';
import { readHolder } from '../state/lock.js';
import type { State } from '../state/state.js';
import { type Approval, approvePages, skipPages, unskipPages } from '../steps/decide-pages.js';
import { doAndStore } from '../steps/history.js';
import { addMessageTo } from '../steps/job-messages.js';
import { loadNotes, writeNote } from '../steps/notes.js';
import { submitWaiting } from '../steps/poll.js';
import { settleJob, WAYS } from '../steps/settle-job.js';
import { byBothClocks } from '../steps/step.js';
import type { SiteRequest } from './request.js';

/** What was done, in words; with `sends`, something waits to be sent. */
interface Done {
  readonly answer: string;
  readonly sends?: boolean;
}

/** Something that a form can request. */
export interface Action {
  readonly words: string;
  readonly work: (request: SiteRequest) => Promise<Done>;
}

/** What was requested, and what was done. */
interface Answer {
  readonly words: string;
  readonly answer: string;
}

/** The answers to the last forms, by their digests. A form sent twice is carried out once; what fails may be tried again. */
export const openAnswers = () =>
  new LRUCache<string, Answer, () => Promise<Answer>>({
    max: 100,
    fetchMethod: (_form, _known, { context: carryOut }) => carryOut(),
    ignoreFetchAbort: true,
  });

const path = z.string().min(1).max(2000);
const job = z.coerce.number().int().min(1);
const text = z.string().max(100_000);

/** By the value of the button, each made from the fields of its form. */
const ACTIONS: Readonly<Record<string, z.ZodType<Action>>> = {
  approve: z
    .object({ path, digest: z.string().max(64), instruction: text })
    .transform((approval): Action => ({
      words: `Approve ${approval.path}`,
      work: (request) => approve(request, approval),
    })),
  skip: z.object({ path, days: z.enum(['28', '91', 'ever']) }).transform(({ path, days }): Action => ({
    words: `Skip ${path}`,
    work: async ({ reader, project, now }) => {
      const until = days === 'ever' ? null : addDays(dayOf(now), Number(days));
      await skipPages({ reader, state: reader.state }, project, [path], { now, until });
      return { answer: until === null ? 'skipped until you undo it' : `skipped until ${longDay(until)}` };
    },
  })),
  unskip: z.object({ path }).transform(({ path }): Action => ({
    words: `Stop skipping ${path}`,
    work: async ({ reader, project, now }) => {
      await unskipPages(reader.state, project, [path], now);
      return { answer: 'it can be flagged again' };
    },
  })),
  message: z.object({ job, text, form: z.string().max(64) }).transform(({ job, text, form }): Action => ({
    words: `Message to job ${job}`,
    work: async ({ reader, workspace, now }) => {
      await expectSendingPlace(reader.state, workspace);
      await addMessageTo(reader.state, workspace, { job, text, now, form });
      return { answer: `stored: ${whoSends(reader.state)}`, sends: true };
    },
  })),
  note: z
    .object({
      date: day,
      text: z.string().trim().min(1).max(200),
      path: z.string().trim(),
      break: z.literal('on').optional(),
    })
    .transform(({ path, ...given }): Action => ({
      words: `Add a note on ${longDay(given.date)}`,
      work: async ({ reader, workspace, project: { id } }) => {
        const isOnly = workspace.settings.projects.length === 1;
        const of = { path: path === '' ? undefined : path, project: isOnly ? undefined : id };
        const file = await writeNote(workspace, { ...given, ...of, break: given.break === 'on' });
        await loadNotes(workspace, reader.state);
        return { answer: `added to ${file}` };
      },
    })),
  settle: z
    .object({
      job,
      /** The attempt to send the job or its open message when the form was shown: it may have been sent again since. */
      attempt: z.coerce.number().int(),
      as: z.enum(WAYS),
      day: day.optional(),
      remote: z.string().trim().max(200).optional(),
    })
    .transform(({ job, attempt, as, day, remote = '' }): Action => ({
      words: `Record the outcome of job ${job}`,
      work: async ({ reader, workspace, runtime }) => {
        const finding = { as, day, remoteId: remote === '' ? undefined : remote };
        const lookUp = jobLookUp(workspace, runtime, reader.state);
        const task = { state: reader.state, workspace, now: runtime.now, lookUp, attempt };
        return { answer: await settleJob(task, job, finding) };
      },
    })),
};

async function approve(
  { reader, workspace, project, proposals, now }: SiteRequest,
  approval: Approval,
): Promise<Done> {
  const { state } = reader;
  await expectSendingPlace(state, workspace);
  const ranking = await proposals.ranking(reader, project, now);
  const [approved] = await approvePages({ reader, state, workspace, ranking, now }, project, [approval]);
  if (approved === undefined || 'refusal' in approved)
    throw new ConfigurationError(`Not approved: ${approved?.refusal ?? 'no page was named'}.`);
  const { job, waitsFor } = approved;
  const when = waitsFor === undefined ? whoSends(state) : `it comes next, ${whenRoom(waitsFor)}`;
  return { answer: `job ${job} is approved: ${when}`, sends: waitsFor === undefined };
}

const BY_NAME = new Map(Object.entries(ACTIONS));

/** What a form requests. Throws a `ConfigurationError` for a form that no page contains. */
export function actionOf(form: URLSearchParams): Action {
  const parsed = BY_NAME.get(form.get('action') ?? '')?.safeParse(Object.fromEntries(form));
  if (parsed?.success === true) return parsed.data;
  throw new ConfigurationError('This form is incomplete. Nothing was changed.');
}

/** The fields that a form has its own controls for. */
const CONTROLS = ['token', 'form', 'project', 'action', 'instruction', 'text'];

/** A form that was not carried out, to show again with what was typed in it. */
export const draftOf = (form: URLSearchParams, why: string): object => ({
  why,
  words: actionOf(form).words,
  action: form.get('action'),
  instruction: form.get('instruction'),
  text: form.get('text'),
  fields: Object.fromEntries([...form].filter(([name]) => !CONTROLS.includes(name))),
});

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
function whoSends(state: State): string {
  const holder = readHolder(state);
  if (holder === undefined) return 'it is being sent';
  if (holder.command === 'readership start') return '`readership start` sends it within a minute';
  return `it is sent after \`${holder.command}\``;
}
