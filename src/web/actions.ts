import { z } from 'zod';
import type { Job } from '../agents/ledger.js';
import type { Message } from '../agents/messages.js';
import { type Listener, withLiveDatabase } from '../app/open.js';
import { type Runtime, waitingAtMost, type Workspace } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import { addDays, dayOf, parseDay } from '../day.js';
import { ConfigurationError, LockedError, messageOf } from '../errors.js';
import { longDay } from '../format/days.js';
import { type Approval, approvePages, skipPages, unskipPages } from '../steps/approve.js';
import type { StepContext } from '../steps/context.js';
import { publishStep } from '../steps/publish.js';
import { StepRunner } from '../steps/runner.js';
import { jobToChange, recordMerge, settleJob } from '../steps/settle.js';

const path = z.string().min(1).max(2000);
const job = z.coerce.number().int().min(1);

/** Forms end their lines with two characters. */
const asWritten = (text: string): string => text.replaceAll('\r\n', '\n');

/** What a form of the page Agents asks for. */
const actionSchema = z.discriminatedUnion('action', [
  z.object({
    action: z.literal('approve'),
    ...{ path, digest: z.string().max(64), instruction: z.string().max(100_000).transform(asWritten) },
  }),
  z.object({ action: z.literal('skip'), path, days: z.enum(['28', '91', 'ever']) }),
  z.object({ action: z.literal('unskip'), path }),
  z.object({ action: z.literal('merged'), job, day: z.string() }),
  z.object({
    action: z.literal('settle'),
    ...{
      job,
      /** When what is settled was sent, as the form was made: it may have been sent again since. */
      attempt: z.string().max(40),
      finding: z.enum(['created', 'not-created', 'sent', 'not-sent']),
      remote: z.string().trim().max(200),
    },
  }),
]);
type Action = z.infer<typeof actionSchema>;

/** An action that was asked for, and what became of it. */
export interface Request {
  /** The same for the same action. */
  readonly key: string;
  readonly words: string;
  readonly at: Date;
  state: 'waiting' | 'done' | 'failed';
  /** What it waits for, what was done, or why not. */
  answer: string;
}

const KEPT = 8;
const MOST_WAITING = 50;

/** Takes turns with whatever else in this process holds the live database. */
export type InTurn = <Result>(work: () => Promise<Result>) => Promise<Result>;

/**
 * Carries out actions one after another, by the same steps as the commands. While another process holds the live
 * database, an action is kept and waits.
 */
export class Actions {
  readonly requests: Request[] = [];

  constructor(
    private readonly workspace: Workspace,
    private readonly runtime: Runtime,
    private readonly inTurn: InTurn,
  ) {}

  get waiting(): number {
    return this.requests.filter(({ state }) => state === 'waiting').length;
  }

  /** Keeps what a form asks for. Throws a `ConfigurationError` for a form that was not made here. */
  add(projectId: string, form: URLSearchParams): void {
    const parsed = actionSchema.safeParse(Object.fromEntries(form));
    if (!parsed.success) throw new ConfigurationError('This form is incomplete. Nothing was changed.');
    if (this.waiting >= MOST_WAITING)
      throw new ConfigurationError('Too many actions are waiting already. Try again later.');
    const key = JSON.stringify([projectId, parsed.data]);
    // A second click.
    if (this.requests.some((one) => one.state === 'waiting' && one.key === key)) return;
    const request: Request = {
      key,
      words: wordsOf(parsed.data),
      at: this.runtime.now(),
      state: 'waiting',
      answer: 'its turn comes once what is under way here has ended',
    };
    this.requests.unshift(request);
    while (this.requests.length > KEPT && this.requests.at(-1)?.state !== 'waiting') this.requests.pop();
    void this.#carryOut(request, projectId, parsed.data);
  }

  async #carryOut(request: Request, projectId: string, action: Action): Promise<void> {
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
        request.answer = await this.inTurn(() =>
          withLiveDatabase(workspace, this.runtime, hold, (context) => carryOut(context, projectId, action)),
        );
        request.state = 'done';
        return;
      } catch (error) {
        if (error instanceof LockedError && !this.runtime.signal.aborted) continue;
        request.state = 'failed';
        request.answer = messageOf(error);
        return;
      }
  }
}

const SILENT: Listener = {
  ...{ onWait: () => undefined, onReconciled: () => undefined, onSkew: () => undefined },
  ...{ onRequest: () => undefined, onRetry: () => undefined, observer: {} },
};

function wordsOf(action: Action): string {
  switch (action.action) {
    case 'approve':
      return `Approve ${action.path}`;
    case 'skip':
      return `Skip ${action.path}`;
    case 'unskip':
      return `Stop skipping ${action.path}`;
    case 'merged':
      return `Record that job ${action.job} was merged`;
    case 'settle':
      return `Settle job ${action.job}`;
  }
}

/** Does an action, publishes what it changed, and says what was done. */
async function carryOut(context: StepContext, projectId: string, action: Action): Promise<string> {
  const project = context.projects.find(({ id }) => id === projectId);
  if (project === undefined) throw new ConfigurationError(`There is no project ${projectId}.`);
  // It was done, whatever becomes of that.
  const publish = () =>
    publishStep(context).then(
      () => '',
      (error: unknown) => `, but could not be published: ${messageOf(error)}`,
    );
  const done = await doAction(context, project, action).catch(async (error: unknown) => {
    await publish();
    throw error;
  });
  return done + (await publish());
}

async function doAction(context: StepContext, project: ProjectSettings, action: Action): Promise<string> {
  switch (action.action) {
    case 'approve':
      return approve(context, project, action);
    case 'skip': {
      const until = action.days === 'ever' ? null : addDays(dayOf(context.now()), Number(action.days));
      await skipPages(context, project, [action.path], until);
      return until === null ? 'skipped until that is undone' : `skipped until ${longDay(until)}`;
    }
    case 'unskip':
      await unskipPages(context, project, [action.path]);
      return 'the next choice considers it again';
    case 'merged': {
      const found = await jobToChange(context, action.job);
      return `its effect is measured from ${longDay(await recordMerge(found, parseDay(action.day)))}`;
    }
    case 'settle': {
      const { finding, remote, attempt } = action;
      if (finding === 'created' && remote === '')
        throw new ConfigurationError('Give the id of the job on the platform.');
      const found = await jobToChange(context, action.job);
      const lost = ['created', 'not-created'].includes(finding) ? found.job : lostMessage(found.messages);
      if (lost === undefined || attemptOf(lost) !== attempt)
        throw new ConfigurationError('It has been settled or sent again in the meantime. Reload the page.');
      await settleJob(found, finding === 'created' ? { created: remote } : finding);
      return 'settled';
    }
  }
}

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
  if (sent.state === 'refused') return `the platform refused job ${answer.job}: ${sent.note ?? why}`;
  return `job ${answer.job} was created`;
}
