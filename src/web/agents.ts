import { z } from 'zod';
import { mergedEffects } from '../agents/effect.js';
import { isRemoteJob, type Job, readJobs } from '../agents/ledger.js';
import { OPEN_MESSAGE_STATES } from '../agents/lifecycle.js';
import { type Message, readMessages } from '../agents/messages.js';
import { isInReview, readSkips } from '../agents/plan.js';
import type { ProjectSettings } from '../config/schema.js';
import { day } from '../config/values.js';
import { addDays, dayOf, daysBetween, parseDay } from '../day.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { longDay } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { howToLook } from '../print/jobs.js';
import { type Approval, approvePages, skipPages, unskipPages } from '../steps/improve.js';
import { notesOf, writeNote } from '../steps/notes.js';
import { type StepContext, StepRunner } from '../steps/step.js';
import { jobToChange, recordReview, sendMessage, settleJob } from '../steps/jobs.js';
import type { Action } from './queue.js';
import type { SiteRequest } from './request.js';

/** The proposed pages with their prompts, the jobs by what they need, and the actions requested here. */
export async function agents(request: SiteRequest): Promise<object> {
  const { reader, workspace, project, query, now, queue, visitor } = request;
  const { settings } = workspace;
  const jobs = (await readJobs(reader, project.id)).toReversed();
  const messages = await readMessages(reader, project.id);
  const effects = await mergedEffects(reader, project.id, jobs);
  const requests = queue.requests(project.id);
  const shown = jobs.map((job) => {
    const own = messages.filter((message) => message.job === job.id);
    const lost = job.state === 'unconfirmed' ? job : lostMessage(own);
    return {
      ...job,
      effect: effects.get(job.id) ?? null,
      look: howToLook(job),
      waiting: isInReview(job)
        ? counted(daysBetween(dayOf(job.ended_at ?? job.planned_at), dayOf(now)), 'day')
        : null,
      messages: own,
      canMessage: isRemoteJob(job) && own.every(({ state }) => !OPEN_MESSAGE_STATES.has(state)),
      isMessage: lost !== job,
      attempt: lost === undefined ? null : attemptOf(lost),
    };
  });
  const isWaiting = ({ state }: Job) => ['planned', 'submitting', 'active'].includes(state);
  const hasEnded = ({ state }: Job) => ['completed', 'failed', 'archived', 'refused'].includes(state);
  const groups: readonly (readonly [title: string, fits: (job: Job) => boolean])[] = [
    ['Pull requests to review', isInReview],
    ['At work', (job) => job.pr_link === null && isWaiting(job)],
    ['Merged', ({ merged_on }) => merged_on !== null],
    ['Rejected', ({ merged_on, closed_on }) => merged_on === null && closed_on !== null],
    ['Ended without a pull request', (job) => job.pr_link === null && hasEnded(job)],
  ];
  return {
    ...(await proposalsOf(request)),
    skips: await readSkips(reader, project.id, now),
    notes: (await notesOf(reader, project.id)).toReversed(),
    unconfirmed: shown.filter(({ attempt }) => attempt !== null),
    groups: groups
      // Those that have been waiting longest come first.
      .map(([title, fits]) => ({
        title,
        jobs: fits === isInReview ? shown.filter(fits).toReversed() : shown.filter(fits),
      }))
      .filter(({ jobs }) => jobs.length > 0),
    requests,
    timezone: settings.schedule.timezone,
    waits: requests.some(({ state }) => state === 'waiting'),
    visitor,
    today: dayOf(now),
    only: query.path,
    mode: settings.improve.mode,
    maxPromptLength: settings.improve.maxPromptLength,
    draft: null,
  };
}

async function proposalsOf({ reader, project, proposals, now, query }: SiteRequest): Promise<object> {
  try {
    const { proposed, leftOut } = await proposals.of(reader, project, now, query.path);
    const isReserved = ({ code }: (typeof leftOut)[number]) => code === 'held-out' || code === 'rejected';
    return {
      proposals: proposed,
      reserved: leftOut.filter(isReserved),
      leftOut: leftOut.filter((page) => !isReserved(page)).slice(0, 20),
      proposalProblem: null,
    };
  } catch (error) {
    return { proposals: [], reserved: [], leftOut: [], proposalProblem: messageOf(error) };
  }
}

const lostMessage = (messages: readonly Message[]): Message | undefined =>
  messages.find(({ state }) => state === 'unconfirmed');

/** Identifies one attempt to send a job or message. */
const attemptOf = ({ submitted_at }: Pick<Job | Message, 'submitted_at'>): string =>
  submitted_at?.toISOString() ?? '';

type Given<Fields extends z.ZodRawShape> = z.output<z.ZodObject<Fields>>;

type Deed<Fields extends z.ZodRawShape, Extra extends unknown[] = []> = (
  given: Given<Fields>,
  context: StepContext,
  project: ProjectSettings,
  ...extra: Extra
) => Promise<string>;

/** An action made from the fields of a form. By default, all that is known of an interrupted one is below. */
const action = <Fields extends z.ZodRawShape>(
  fields: Fields,
  words: (given: Given<Fields>) => string,
  work: Deed<Fields>,
  lookUp: Deed<Fields, [since: Date]> = () =>
    Promise.reject(
      new ConfigurationError(
        'Readership was stopped meanwhile. Nothing was sent; see below whether it was recorded',
      ),
    ),
): z.ZodType<Action> =>
  z.object(fields).transform((given) => ({
    words: words(given),
    work: (context, project) => work(given, context, project),
    lookUp: (context, project, since) => lookUp(given, context, project, since),
  }));

const NOTHING_SENT = 'Readership was stopped before anything was sent. Request it again if you still want it';

const path = z.string().min(1).max(2000);
const job = z.coerce.number().int().min(1);
/** Browsers end the lines of a form with two characters. */
const text = z
  .string()
  .max(100_000)
  .transform((written) => written.replaceAll('\r\n', '\n'));

/** By the value of the button. */
const ACTIONS: Readonly<Record<string, z.ZodType<Action>>> = {
  approve: action(
    { path, digest: z.string().max(64), instruction: text },
    (given) => `Approve ${given.path}`,
    (approval, context, project) => approve(context, project, approval),
    async (given, { warehouse }, project, since) => {
      const jobs = await readJobs(warehouse, project.id);
      const job = jobs.findLast(({ path, planned_at }) => path === given.path && planned_at >= since);
      if (job === undefined) throw new ConfigurationError(NOTHING_SENT);
      return wordsOf(job, 'Readership was stopped before it was sent; the next run sends it');
    },
  ),
  skip: action(
    { path, days: z.enum(['28', '91', 'ever']) },
    (given) => `Skip ${given.path}`,
    async (given, context, project) => {
      const until = given.days === 'ever' ? null : addDays(dayOf(context.now()), Number(given.days));
      await skipPages(context, project, [given.path], until);
      return until === null ? 'skipped until you undo it' : `skipped until ${longDay(until)}`;
    },
  ),
  unskip: action(
    { path },
    (given) => `Stop skipping ${given.path}`,
    async (given, context, project) => {
      await unskipPages(context, project, [given.path]);
      return 'it can be proposed again';
    },
  ),
  message: action(
    { job, text },
    (given) => `Message to job ${given.job}`,
    async (given, context) => {
      const { state, stopped } = await sendMessage(await jobToChange(context, given.job), given.text);
      return wordsOfMessage(state, messageOf(stopped));
    },
    async (given, context, project, since) => {
      const all = await readMessages(context.warehouse, project.id);
      const message = all.findLast(({ job, planned_at }) => job === given.job && planned_at >= since);
      if (message === undefined) throw new ConfigurationError(NOTHING_SENT);
      return wordsOfMessage(message.state, message.note ?? 'the next run sends it');
    },
  ),
  merged: action(
    { job, day: z.string() },
    (given) => `Record that job ${given.job} was merged`,
    async (given, context) => {
      const found = await jobToChange(context, given.job);
      return `its effect is measured from ${longDay(await recordReview(found, 'merged', parseDay(given.day)))}`;
    },
  ),
  closed: action(
    { job, day: z.string() },
    (given) => `Record that job ${given.job} was closed without merging`,
    async (given, context) => {
      await recordReview(await jobToChange(context, given.job), 'closed', parseDay(given.day));
      return 'its page gets no other job unless you propose it again';
    },
  ),
  note: action(
    {
      date: day,
      text: z.string().trim().min(1).max(200),
      path: z
        .string()
        .trim()
        .transform((given) => (given === '' ? undefined : given)),
      break: z.literal('on').optional(),
    },
    (given) => `Add a note on ${longDay(given.date)}`,
    async (given, context, { id }) => {
      const isOnly = context.settings.projects.length === 1 && context.shard === undefined;
      const note = { ...given, project: isOnly ? undefined : id, break: given.break === 'on' };
      return `added to ${await writeNote(context, note)}`;
    },
  ),
  settle: action(
    {
      job,
      /** When the job or message had been sent when the form was shown: it may have been sent again since. */
      attempt: z.string().max(40),
      finding: z.enum(['created', 'not-created', 'sent', 'not-sent']),
      remote: z.string().trim().max(200),
    },
    (given) => `Settle job ${given.job}`,
    async ({ finding, remote, attempt, ...given }, context) => {
      if (finding === 'created' && remote === '')
        throw new ConfigurationError('Enter the id of the job on the platform.');
      const found = await jobToChange(context, given.job);
      const lost = ['created', 'not-created'].includes(finding) ? found.job : lostMessage(found.messages);
      if (lost === undefined || attemptOf(lost) !== attempt)
        throw new ConfigurationError('It has been settled or sent again in the meantime. Reload the page.');
      await settleJob(found, finding === 'created' ? { created: remote } : finding);
      return 'settled';
    },
  ),
};

async function approve(context: StepContext, project: ProjectSettings, approval: Approval): Promise<string> {
  const runner = new StepRunner(context);
  const done = await runner.aside('improve', () => approvePages(context, project, [approval]));
  const [answer] = done?.answers ?? [];
  const [outage] = runner.outages;
  const why = outage === undefined ? 'it was interrupted' : messageOf(outage.error);
  if (answer?.job === undefined) throw new ConfigurationError(answer?.refusal ?? why);
  const sent = done?.submitted.find(({ id }) => id === answer.job);
  return sent === undefined ? `job ${answer.job} is planned but not sent yet: ${why}` : wordsOf(sent, why);
}

function wordsOf({ id, state, note }: Job, why: string): string {
  if (state === 'planned' || state === 'submitting') return `job ${id} is planned but not sent yet: ${why}`;
  if (state === 'unconfirmed') return `it is unknown whether job ${id} was created: settle it below`;
  if (state === 'refused') throw new ConfigurationError(`the platform refused job ${id}: ${note ?? why}`);
  return `job ${id} was created`;
}

function wordsOfMessage(state: Message['state'], why: string): string {
  if (state === 'unconfirmed') return 'it is unknown whether it arrived: settle it below';
  if (state === 'refused') throw new ConfigurationError(why);
  return state === 'sent' ? 'sent' : `it is ${state}: ${why}`;
}

/** What a form requests. Throws a `ConfigurationError` for a form that no page contains. */
export function actionOf(form: URLSearchParams): Action {
  const name = form.get('action') ?? '';
  const parsed = Object.hasOwn(ACTIONS, name)
    ? ACTIONS[name]?.safeParse(Object.fromEntries(form))
    : undefined;
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
