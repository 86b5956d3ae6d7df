import { mergedEffects } from '../agents/effect.js';
import { type Job, readJobs } from '../agents/ledger.js';
import { readMessages } from '../agents/messages.js';
import { planImprovement } from '../agents/plan.js';
import { proposalOf } from '../agents/prompt.js';
import { wordsOf } from '../agents/reasons.js';
import { readSitemap } from '../agents/sitemap.js';
import { readSkips } from '../agents/skips.js';
import { dayOf } from '../day.js';
import { messageOf } from '../errors.js';
import { howToLook } from '../print/jobs.js';
import { attemptOf, lostMessage } from './actions.js';
import type { Asking } from './asked.js';

/** A site's list of pages does not change from click to click. */
const SITEMAP_KEPT_MS = 5 * 60_000;
let sitemap:
  { readonly at: number; readonly of: string; readonly pages: ReturnType<typeof readSitemap> } | undefined;

function recentSitemap(of = '', now: Date): ReturnType<typeof readSitemap> {
  const at = now.getTime();
  if (sitemap?.of !== of || at - sitemap.at > SITEMAP_KEPT_MS)
    sitemap = { at, of, pages: readSitemap(of === '' ? undefined : of, AbortSignal.timeout(10_000)) };
  return sitemap.pages;
}

/** The pages that deserve an agent, with the exact prompt; the jobs by what they need; and what was asked for here. */
export async function agents({ reader, workspace, project, now, actions, visitor }: Asking): Promise<object> {
  const { settings, directory: workspaceDir } = workspace;
  const rules = { workspaceDir, maxPromptLength: settings.improve.maxPromptLength };
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
    ...(await proposals()),
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

  async function proposals() {
    try {
      const isListed = (await recentSitemap(settings.improve.sitemap, now))(project.siteUrl);
      // Answers of the same minute are remembered.
      const minute = new Date(Math.floor(now.getTime() / 60_000) * 60_000);
      const plan = await planImprovement(reader, project.id, settings.improve, { now: minute, isListed });
      return {
        proposals: plan.flagged.map((page) => {
          const { path, why, digest, instruction, prompt } = proposalOf(project.id, page, rules);
          return {
            path,
            reason: wordsOf(why),
            digest,
            instruction,
            ending: prompt.slice(instruction.length).trim(),
          };
        }),
        leftOut: plan.leftOut.slice(0, 20).map(({ path, why }) => ({ path, reason: wordsOf(why) })),
        proposalProblem: null,
      };
    } catch (error) {
      return { proposals: [], leftOut: [], proposalProblem: messageOf(error) };
    }
  }
}
