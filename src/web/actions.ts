import { z } from 'zod';
import { attemptOf } from '../agents/intents.js';
import { type Job, readJobs } from '../agents/job.js';
import { type JobMessage, openMessage, readMessages } from '../agents/messages.js';
import type { ProjectSettings } from '../config/schema.js';
import { day } from '../config/values.js';
import { addDays, dayOf } from '../day.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { longDay } from '../format/days.js';
import { pageOf } from '../page.js';
import { type Approval, approvePages, skipPages, unskipPages } from '../steps/improve.js';
import { jobToChange, sendMessage } from '../steps/job-changes.js';
import { writeNote } from '../steps/notes.js';
import type { Parts } from '../steps/parts.js';
import { settleJob, WAYS } from '../steps/settle-job.js';

type ActionWork = (parts: Parts, project: ProjectSettings, since: Date) => Promise<string>;

/** Something that a form can request. */
export interface Action {
  readonly words: string;
  /** Does it, and says what was done. */
  readonly work: ActionWork;
  /**
   * Says what became of an attempt, begun at `since`, that was cut short. Throws if nothing was done. Left out if the
   * page shows it anyway.
   */
  readonly lookUp?: ActionWork;
}

const NOTHING_SENT = 'Readership was stopped before anything was sent. Request it again if you still want it';

const path = z.string().min(1).max(2000);
const job = z.coerce.number().int().min(1);
const text = z.string().max(100_000);

/** By the value of the button, each made from the fields of its form. */
const ACTIONS: Readonly<Record<string, z.ZodType<Action>>> = {
  approve: z
    .object({ path, digest: z.string().max(64), instruction: text })
    .transform((approval): Action => ({
      words: `Approve ${approval.path}`,
      work: (parts, project) => approve(parts, project, approval),
      lookUp: async ({ store }, project, since) => {
        const jobs = await readJobs(store, project.id);
        const job = jobs.findLast(
          ({ path, planned_at }) => pageOf(path) === pageOf(approval.path) && planned_at >= since,
        );
        if (job === undefined) throw new ConfigurationError(NOTHING_SENT);
        return wordsOf(job, 'Readership was stopped before it was sent; the next run sends it');
      },
    })),
  skip: z.object({ path, days: z.enum(['28', '91', 'ever']) }).transform(({ path, days }): Action => ({
    words: `Skip ${path}`,
    work: async (parts, project) => {
      const until = days === 'ever' ? null : addDays(dayOf(parts.session.now()), Number(days));
      await skipPages(parts, project, [path], until);
      return until === null ? 'skipped until you undo it' : `skipped until ${longDay(until)}`;
    },
  })),
  unskip: z.object({ path }).transform(({ path }): Action => ({
    words: `Stop skipping ${path}`,
    work: async (parts, project) => {
      await unskipPages(parts, project, [path]);
      return 'it can be flagged again';
    },
  })),
  message: z.object({ job, text }).transform(({ job, text }): Action => ({
    words: `Message to job ${job}`,
    work: async (parts) => {
      const { state, stopped } = await sendMessage(await jobToChange(parts, job), text);
      return wordsOfMessage(state, messageOf(stopped));
    },
    lookUp: async ({ store }, project, since) => {
      const all = await readMessages(store, project.id);
      const message = all.findLast((one) => one.job === job && one.planned_at >= since);
      if (message === undefined) throw new ConfigurationError(NOTHING_SENT);
      return wordsOfMessage(message.state, message.note ?? 'the next run sends it');
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
      work: async ({ workspace }, { id }) => {
        const isOnly = workspace.settings.projects.length === 1;
        const of = { path: path === '' ? undefined : path, project: isOnly ? undefined : id };
        return `added to ${await writeNote(workspace, { ...given, ...of, break: given.break === 'on' })}`;
      },
    })),
  settle: z
    .object({
      job,
      /** When the job or its open message had been sent when the form was shown: it may have been sent again since. */
      attempt: z.string().max(40),
      as: z.enum(WAYS),
      day: day.optional(),
      remote: z.string().trim().max(200).optional(),
    })
    .transform(({ job, attempt, as, day, remote = '' }): Action => ({
      words: `Settle job ${job}`,
      work: async (parts) => {
        const found = await jobToChange(parts, job);
        if (attemptOf(openMessage(found.messages) ?? found.job) !== attempt)
          throw new ConfigurationError('It has been settled or sent again in the meantime. Reload the page.');
        return settleJob(found, { as, day, remoteId: remote === '' ? undefined : remote });
      },
    })),
};

async function approve(parts: Parts, project: ProjectSettings, approval: Approval): Promise<string> {
  const { detail, error } = await approvePages(parts, project, [approval]);
  const [answer] = detail;
  const why = error === undefined ? 'it was interrupted' : messageOf(error);
  if (answer?.job === undefined) throw new ConfigurationError(answer?.refusal ?? why);
  return wordsOf(answer.job, why);
}

function wordsOf({ id, state, note }: Job, why: string): string {
  if (state === 'planned' || state === 'submitting') return `job ${id} is planned but not sent yet: ${why}`;
  if (state === 'unconfirmed') return `it is unknown whether job ${id} was created: settle it below`;
  if (state === 'refused') throw new ConfigurationError(`the platform refused job ${id}: ${note ?? why}`);
  return `job ${id} was created`;
}

function wordsOfMessage(state: JobMessage['state'], why: string): string {
  if (state === 'unconfirmed') return 'it is unknown whether it arrived: settle it below';
  if (state === 'refused') throw new ConfigurationError(why);
  return state === 'sent' ? 'sent' : `it is ${state}: ${why}`;
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
