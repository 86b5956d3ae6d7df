import { type Job, planJob, referenceOf } from '../agents/ledger.js';
import { type ImprovePlan, planImprovement, recordChoices } from '../agents/plan.js';
import { composePrompt } from '../agents/prompt.js';
import { wordsOf } from '../agents/reasons.js';
import { type IsListed, readSitemap } from '../agents/sitemap.js';
import type { ProjectSettings } from '../config/schema.js';
import type { StepContext, StepResult } from './context.js';
import { eachProject, withOutage } from './runner.js';
import { submitWaiting } from './submit.js';

/** What improving a project did. In `plan` mode nothing is submitted. */
export interface ProjectImprovement {
  readonly project: ProjectSettings;
  readonly plan: ImprovePlan;
  readonly submitted: readonly Job[];
  /** What kept the rest waiting, for a later run. */
  readonly stopped?: unknown;
  readonly changed: boolean;
}

/** Chooses the pages that deserve an agent's work and, when `apply` is set, creates their jobs. */
export async function improveStep(
  context: StepContext,
  apply: boolean,
): Promise<StepResult<ProjectImprovement[]>> {
  const listedOf = await readSitemap(context.settings.improve.sitemap, context.signal);
  const { results: detail, errors } = await eachProject(context, (project) =>
    improveProject(context, project, listedOf(project.siteUrl), apply),
  );
  const sent = detail.flatMap(({ submitted }) => submitted).length;
  const flagged = detail.flatMap(({ plan }) => plan.flagged).length;
  const summary = apply ? `${sent} prompts sent` : `${flagged} pages flagged, nothing sent`;
  // A project whose work failed may have stored something before.
  const changed = errors.length > 0 || detail.some((improvement) => improvement.changed);
  const stops = detail.flatMap(({ stopped }) => stopped ?? []);
  return withOutage({ detail, summary, changed }, [...errors, ...stops]);
}

async function improveProject(
  context: StepContext,
  project: ProjectSettings,
  isListed: IsListed | undefined,
  apply: boolean,
): Promise<ProjectImprovement> {
  const { settings, warehouse, workspaceDir, now } = context;
  const plan = await planImprovement(warehouse, project.id, settings.improve, { now: now(), isListed });
  const changed = await recordChoices(warehouse, project.id, plan, now());
  if (!apply) return { project, plan, submitted: [], changed };
  const { maxPromptLength } = settings.improve;
  for (const { path, why, evidence } of plan.flagged) {
    const at = now();
    const page = { path, reason: wordsOf(why), evidence };
    const about = { ...page, project: project.id, reference: referenceOf(project.id, path, at) };
    const prompt = composePrompt(about, { workspaceDir, maxPromptLength });
    await planJob(warehouse, { project: project.id, page, prompt, now: at });
  }
  const { submitted, stopped } = await submitWaiting(context, project, 'all');
  const created = plan.flagged.length + submitted.length > 0;
  return { project, plan, submitted, stopped, changed: changed || created };
}
