import { mergedEffects } from '../agents/effect.js';
import { isRemoteJob, type Job, readJobs } from '../agents/ledger.js';
import { OPEN_MESSAGE_STATES } from '../agents/lifecycle.js';
import { type Message, readMessages } from '../agents/messages.js';
import { isInReview, readSkips } from '../agents/plan.js';
import { dayOf, daysBetween } from '../day.js';
import { messageOf } from '../errors.js';
import { howToLook } from '../print/jobs.js';
import { notesOf } from '../steps/notes.js';
import type { SiteRequest } from './request.js';

const isWaiting = ({ state }: Job) => ['planned', 'submitting', 'active'].includes(state);
const hasEnded = ({ state }: Job) => ['completed', 'failed', 'archived', 'refused'].includes(state);

/** The jobs on the page, by title. */
const GROUPS: Readonly<Record<string, (job: Job) => boolean>> = {
  'Pull requests to review': isInReview,
  'At work': (job) => job.pr_link === null && isWaiting(job),
  Merged: ({ merged_on }) => merged_on !== null,
  Rejected: ({ merged_on, closed_on }) => merged_on === null && closed_on !== null,
  'Ended without a pull request': (job) => job.pr_link === null && hasEnded(job),
};

/** The proposed pages with their prompts, the jobs by what they need, and the actions requested here. */
export async function agents(request: SiteRequest): Promise<object> {
  const { reader, part, project, query, now, queue, visitor } = request;
  const { settings } = part;
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
      waiting: isInReview(job) ? daysBetween(dayOf(job.ended_at ?? job.planned_at), dayOf(now)) : null,
      messages: own,
      canMessage: isRemoteJob(job) && own.every(({ state }) => !OPEN_MESSAGE_STATES.has(state)),
      isMessage: lost !== job,
      attempt: lost === undefined ? null : attemptOf(lost),
    };
  });
  return {
    ...(await proposalsOf(request)),
    skips: await readSkips(reader, project.id, now),
    notes: (await notesOf(reader, project.id)).toReversed(),
    unconfirmed: shown.filter(({ attempt }) => attempt !== null),
    groups: Object.entries(GROUPS)
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
    const others = leftOut.filter((page) => !isReserved(page));
    return {
      proposals: proposed,
      reserved: leftOut.filter(isReserved),
      leftOut: others.slice(0, 20),
      leftOutCount: others.length,
      proposalProblem: null,
    };
  } catch (error) {
    return { proposals: [], reserved: [], leftOut: [], leftOutCount: 0, proposalProblem: messageOf(error) };
  }
}

export const lostMessage = (messages: readonly Message[]): Message | undefined =>
  messages.find(({ state }) => state === 'unconfirmed');

/** Identifies one attempt to send a job or message. */
export const attemptOf = ({ submitted_at }: Pick<Job | Message, 'submitted_at'>): string =>
  submitted_at?.toISOString() ?? '';
