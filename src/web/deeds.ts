import { z } from 'zod';
import type { Job } from '../agents/ledger.js';
import type { Message } from '../agents/messages.js';
import type { ProjectSettings } from '../config/schema.js';
import { addDays, dayOf, parseDay } from '../day.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { longDay } from '../format/days.js';
import { type Approval, approvePages, skipPages, unskipPages } from '../steps/approve.js';
import type { StepContext } from '../steps/step.js';
import { StepRunner } from '../steps/step.js';
import { jobToChange, recordMerge, sendMessage, settleJob } from '../steps/settle.js';

/** What a form of the page Agents asks for. */
interface Deed {
  readonly words: string;
  /** Does it, and says what was done. */
  readonly work: (context: StepContext, project: ProjectSettings) => Promise<string>;
}

/** Makes a deed of the fields of a form. */
const deed = <Fields extends z.ZodRawShape>(
  fields: Fields,
  words: (given: z.output<z.ZodObject<Fields>>) => string,
  work: (
    given: z.output<z.ZodObject<Fields>>,
    context: StepContext,
    project: ProjectSettings,
  ) => Promise<string>,
): z.ZodType<Deed> =>
  z.object(fields).transform((given) => ({
    words: words(given),
    work: (context, project) => work(given, context, project),
  }));

const path = z.string().min(1).max(2000);
const job = z.coerce.number().int().min(1);
/** Forms end their lines with two characters. */
const text = z
  .string()
  .max(100_000)
  .transform((written) => written.replaceAll('\r\n', '\n'));

/** By the name of the button. */
export const DEEDS: Readonly<Record<string, z.ZodType<Deed>>> = {
  approve: deed(
    { path, digest: z.string().max(64), instruction: text },
    (given) => `Approve ${given.path}`,
    (approval, context, project) => approve(context, project, approval),
  ),
  skip: deed(
    { path, days: z.enum(['28', '91', 'ever']) },
    (given) => `Skip ${given.path}`,
    async (given, context, project) => {
      const until = given.days === 'ever' ? null : addDays(dayOf(context.now()), Number(given.days));
      await skipPages(context, project, [given.path], until);
      return until === null ? 'skipped until that is undone' : `skipped until ${longDay(until)}`;
    },
  ),
  unskip: deed(
    { path },
    (given) => `Stop skipping ${given.path}`,
    async (given, context, project) => {
      await unskipPages(context, project, [given.path]);
      return 'the next choice considers it again';
    },
  ),
  message: deed(
    { job, text },
    (given) => `Message to job ${given.job}`,
    async (given, context) => {
      const { state, stopped } = await sendMessage(await jobToChange(context, given.job), given.text);
      if (state === 'unconfirmed') return 'whether it arrived is not known: settle it below';
      if (state === 'refused') throw new ConfigurationError(messageOf(stopped));
      return state === 'sent' ? 'it was sent' : `it is ${state}: ${messageOf(stopped)}`;
    },
  ),
  merged: deed(
    { job, day: z.string() },
    (given) => `Record that job ${given.job} was merged`,
    async (given, context) => {
      const day = await recordMerge(await jobToChange(context, given.job), parseDay(given.day));
      return `its effect is measured from ${longDay(day)}`;
    },
  ),
  settle: deed(
    {
      job,
      /** When what is settled was sent, as the form was made: it may have been sent again since. */
      attempt: z.string().max(40),
      finding: z.enum(['created', 'not-created', 'sent', 'not-sent']),
      remote: z.string().trim().max(200),
    },
    (given) => `Settle job ${given.job}`,
    async ({ finding, remote, attempt, ...given }, context) => {
      if (finding === 'created' && remote === '')
        throw new ConfigurationError('Give the id of the job on the platform.');
      const found = await jobToChange(context, given.job);
      const lost = ['created', 'not-created'].includes(finding) ? found.job : lostMessage(found.messages);
      if (lost === undefined || attemptOf(lost) !== attempt)
        throw new ConfigurationError('It has been settled or sent again in the meantime. Reload the page.');
      await settleJob(found, finding === 'created' ? { created: remote } : finding);
      return 'settled';
    },
  ),
};

export const lostMessage = (messages: readonly Message[]): Message | undefined =>
  messages.find(({ state }) => state === 'unconfirmed');

/** Tells the last sending of a job or message from one before or after it. */
export const attemptOf = ({ submitted_at }: Pick<Job | Message, 'submitted_at'>): string =>
  submitted_at?.toISOString() ?? '';

async function approve(context: StepContext, project: ProjectSettings, approval: Approval): Promise<string> {
  const runner = new StepRunner(context);
  const done = await runner.aside('improve', () => approvePages(context, project, [approval]));
  const [answer] = done?.answers ?? [];
  const [outage] = runner.outages;
  const why = outage === undefined ? 'it was interrupted' : messageOf(outage.error);
  if (answer?.job === undefined) throw new ConfigurationError(answer?.refusal ?? why);
  const sent = done?.submitted.find(({ id }) => id === answer.job);
  if (sent === undefined || sent.state === 'planned')
    return `job ${answer.job} is planned and not sent yet: ${why}`;
  if (sent.state === 'unconfirmed')
    return `whether job ${answer.job} was created is not known: settle it below`;
  if (sent.state === 'refused')
    throw new ConfigurationError(`the platform refused job ${answer.job}: ${sent.note ?? why}`);
  return `job ${answer.job} was created`;
}
