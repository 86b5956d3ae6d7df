import { mergedEffects } from '../agents/effect.js';
import { isRemoteJob, type Job, readJobs } from '../agents/ledger.js';
import { OPEN_MESSAGE_STATES } from '../agents/lifecycle.js';
import { readMessages } from '../agents/messages.js';
import { readSkips } from '../agents/plan.js';
import { dayOf } from '../day.js';
import { messageOf } from '../errors.js';
import { howToLook } from '../print/jobs.js';
import type { Asking } from './asked.js';
import { attemptOf, lostMessage } from './deeds.js';

/** The pages that deserve an agent, with the exact prompt; the jobs by what they need; and what was asked for here. */
export async function agents(asking: Asking): Promise<object> {
  const { reader, workspace, project, asked, now, actions, visitor } = asking;
  const { settings } = workspace;
  const jobs = (await readJobs(reader, project.id)).toReversed();
  const messages = await readMessages(reader, project.id);
  const effects = await mergedEffects(reader, project.id, jobs);
  const shown = jobs.map((job) => {
    const own = messages.filter((message) => message.job === job.id);
    const lost = job.state === 'unconfirmed' ? job : lostMessage(own);
    return {
      ...job,
      effect: effects.get(job.id) ?? null,
      look: howToLook(job),
      messages: own,
      canMessage: isRemoteJob(job) && own.every(({ state }) => !OPEN_MESSAGE_STATES.has(state)),
      isMessage: lost !== job,
      attempt: lost === undefined ? null : attemptOf(lost),
    };
  });
  const group = (title: string, fits: (job: Job) => boolean) => ({
    title,
    jobs: shown.filter((job) => fits(job)),
  });
  const hasEnded = ({ state }: Job) => ['completed', 'failed', 'archived', 'refused'].includes(state);
  const groups = [
    group('Pull requests to review', (job) => job.pr_link !== null && job.merged_on === null),
    group(
      'At work',
      (job) => ['planned', 'submitting', 'active'].includes(job.state) && job.pr_link === null,
    ),
    group('Merged', ({ merged_on }) => merged_on !== null),
    group('Ended without a pull request', (job) => hasEnded(job) && job.pr_link === null),
  ];
  return {
    ...(await proposalsOf(asking)),
    skips: await readSkips(reader, project.id, now),
    unconfirmed: shown.filter(({ attempt }) => attempt !== null),
    groups: groups.filter((one) => one.jobs.length > 0),
    // They change, and templates know a model by its identity.
    requests: actions.requests.map((request) => ({ ...request })),
    waits: actions.waiting,
    ...{ visitor, today: dayOf(now), only: asked.path },
    ...{ mode: settings.improve.mode, maxPromptLength: settings.improve.maxPromptLength },
  };
}

async function proposalsOf({ reader, project, proposals, now, asked }: Asking): Promise<object> {
  try {
    const { proposed, leftOut } = await proposals.of(reader, project, now, asked.path);
    return { proposals: proposed, leftOut: leftOut.slice(0, 20), proposalProblem: null };
  } catch (error) {
    return { proposals: [], leftOut: [], proposalProblem: messageOf(error) };
  }
}
