import { z } from 'zod';
import { type ImprovePlan, planImprovement } from '../agents/plan.js';
import { proposalOf } from '../agents/prompt.js';
import { readRanking } from '../agents/ranking.js';
import { type Reason, storedReason } from '../agents/reasons.js';
import type { Selection } from '../agents/select.js';
import { readSitemap, type Sitemap } from '../agents/sitemap.js';
import type { ProjectSettings } from '../config/schema.js';
import { counted } from '../format/numbers.js';
import { pageOf } from '../page.js';
import { type Choice, readChoices, replaceChoices } from '../state/decisions.js';
import { readJobs } from '../state/jobs.js';
import type { State } from '../state/state.js';
import { planPageJob } from './decide-pages.js';
import { loadNotes } from './notes.js';
import { byBothClocks, eachProject, type Parts, type StepResult, withOutage } from './step.js';
import { type SentPrompts, submitWaiting } from './poll.js';

/** What improving a project did. In `plan` mode nothing is sent. */
interface ProjectImprovement extends SentPrompts {
  readonly project: ProjectSettings;
  readonly plan: ImprovePlan;
}

/** Chooses the pages for agents and, with `apply`, creates their jobs if anything may be sent now. */
export async function improveStep(
  given: Parts,
  { apply: isWanted }: { readonly apply: boolean },
): Promise<StepResult<ProjectImprovement[]>> {
  const parts = await byBothClocks(given);
  const { workspace, sender, session } = parts;
  // The report step says what is wrong with them.
  await loadNotes(workspace, parts.state);
  parts.store.refresh();
  const refusal = isWanted ? await sender.refusal() : undefined;
  const apply = isWanted && refusal === undefined;
  const sitemap = await readSitemap(workspace.settings.improve.sitemap, session.signal);
  const { results: detail, errors } = await eachProject(parts, (project) =>
    improveProject(parts, project, { sitemap, apply }),
  );
  const sent = detail.reduce((sum, outcome) => sum + outcome.sent, 0);
  const flagged = detail.flatMap(({ plan }) => plan.flagged).length;
  const summary = apply
    ? `${counted(sent, 'prompt')} sent`
    : `${counted(flagged, 'page')} flagged, nothing sent`;
  return withOutage({ detail, summary }, [...errors, ...detail.map(({ stopped }) => stopped), refusal]);
}

async function improveProject(
  parts: Parts,
  project: ProjectSettings,
  { sitemap, apply }: { readonly sitemap: Sitemap | undefined; readonly apply: boolean },
): Promise<ProjectImprovement> {
  const { workspace, state, store, session } = parts;
  const rules = workspace.settings.improve;
  const now = session.now();
  const ranking = await readRanking(store, project, rules, { sitemap, now });
  // People approve and skip pages meanwhile.
  const plan = await state.transaction(() => {
    const planned = planImprovement(state, project.id, rules, ranking, { now });
    // Chosen before its jobs are planned, so that reports leave out pages that got one.
    recordChoices(state, project.id, planned, now);
    if (apply)
      for (const page of planned.flagged)
        planPageJob(state, project.id, proposalOf(project.id, page, workspace), {
          workspace,
          isApproved: false,
          now,
        });
    return planned;
  });
  const sent = apply ? await submitWaiting(parts, project, true) : { created: 0, sent: 0 };
  return { project, plan, ...sent };
}

/**
 * In a transaction: stores which pages were flagged, are up next or were left out, and since when, for reports. A
 * decision that repeats keeps its time, unless the page got a job in between.
 */
export function recordChoices(
  state: State,
  project: string,
  { flagged, next, leftOut }: Selection,
  now: Date,
): void {
  const before = new Map(readChoices(state, project).map((choice) => [choice.path, choice]));
  const plannedAt = new Map<string, Date>();
  for (const { path, planned_at } of readJobs(state, project)) plannedAt.set(pageOf(path), planned_at);
  const choices = [...flagged, ...next, ...leftOut].map(
    ({ path, why, evidence: { weekly_human, weekly_ai } }): Choice => {
      const known = before.get(path);
      const isSame = known !== undefined && isSameDecision(known, why);
      const gotJob = isSame && (plannedAt.get(path) ?? 0) >= known.chosen_at;
      return {
        path,
        chosen_at: isSame && !gotJob ? known.chosen_at : now,
        is_flagged: why.code === 'flagged',
        ...storedReason(why),
        weekly_human,
        weekly_ai,
      };
    },
  );
  replaceChoices(state, project, choices);
}

const jobOf = (facts: string) => z.looseObject({}).parse(JSON.parse(facts))['job'];

const isSameDecision = ({ code, facts }: Choice, why: Reason): boolean =>
  code === why.code && jobOf(facts) === ('job' in why ? why.job : undefined);
