import { mergedEffects } from '../agents/effect.js';
import { type Job, readJobs } from '../agents/ledger.js';
import { readMessages } from '../agents/messages.js';
import { readSkips } from '../agents/skips.js';
import { dayOf } from '../day.js';
import { messageOf } from '../errors.js';
import { howToLook } from '../print/jobs.js';
import { attemptOf, lostMessage } from './actions.js';
import type { Asking } from './asked.js';

/** The pages that deserve an agent, with the exact prompt; the jobs by what they need; and what was asked for here. */
export async function agents(asking: Asking): Promise<object> {
  const { reader, workspace, project, proposals, now, actions, visitor } = asking;
  const { settings } = workspace;
  const jobs = (await readJobs(reader, project.id)).toReversed();
  const messages = await readMessages(reader, project.id);
  const effects = await mergedEffects(reader, project.id, jobs);
  const lost = messages.filter(({ state }) => state === 'unconfirmed').map(({ job }) => job);
  const shown = jobs.map((job) => ({ ...job, effect: effects.get(job.id) ?? null, look: howToLook(job) }));
  const group = (title: string, fits: (job: Job) => boolean) => ({
    title,
    jobs: shown.filter((job) => fits(job)),
  });
  const groups = [
    group('Pull requests to review', (job) => job.pr_link !== null && job.merged_on === null),
    group(
      'At work',
      ({ state, pr_link }) => ['planned', 'submitting', 'active'].includes(state) && pr_link === null,
    ),
    group('Merged', ({ merged_on }) => merged_on !== null),
    group(
      'Ended without a pull request',
      ({ state, pr_link }) =>
        ['completed', 'failed', 'archived', 'refused'].includes(state) && pr_link === null,
    ),
  ];
  return {
    ...(await proposed()),
    skips: await readSkips(reader, project.id, now),
    unconfirmed: shown
      .filter(({ state, id }) => state === 'unconfirmed' || lost.includes(id))
      .map((job) => {
        const isMessage = job.state !== 'unconfirmed';
        const message = lostMessage(messages.filter((one) => one.job === job.id));
        return { ...job, isMessage, attempt: attemptOf((isMessage ? message : undefined) ?? job) };
      }),
    groups: groups.filter((one) => one.jobs.length > 0),
    requests: actions.requests,
    waits: actions.waiting,
    ...{ visitor, today: dayOf(now), mode: settings.improve.mode, timezone: settings.schedule.timezone },
  };

  async function proposed() {
    try {
      const { proposed, leftOut } = await proposals.of(reader, project, now);
      return { proposals: proposed, leftOut: leftOut.slice(0, 20), proposalProblem: null };
    } catch (error) {
      return { proposals: [], leftOut: [], proposalProblem: messageOf(error) };
    }
  }
}
