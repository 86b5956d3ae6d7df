import { type Job, planJob, referenceOf } from '../agents/ledger.js';
import { type IsListed, readSitemap } from '../agents/sitemap.js';
import { type ImprovePlan, planImprovement, recordChoices } from '../agents/plan.js';
import { composePrompt } from '../agents/prompt.js';
import type { ProjectSettings } from '../config/schema.js';
import type { StepContext, StepResult } from './context.js';
import { withFaults } from './runner.js';
import { submitWaiting } from './submit.js';

/** What improving a project came to. In `plan` mode nothing is submitted. */
export interface ProjectImprovement {
  readonly project: ProjectSettings;
  readonly plan: ImprovePlan;
  readonly submitted: readonly Job[];
  /** What kept the rest waiting, for a later run. */
  readonly stopped?: unknown;
}

/** Chooses the pages that deserve an agent's work and, when `apply` is set, creates their jobs. */
export async function improveStep(
  context: StepContext,
  apply: boolean,
): Promise<StepResult<ProjectImprovement[]>> {
  const { settings, projects, signal } = context;
  const listedOf = await readSitemap(settings.improve.sitemap, signal);
  const detail: ProjectImprovement[] = [];
  const faults: unknown[] = [];
  let changed = false;
  for (const project of projects) {
    if (signal.aborted) break;
    try {
      const isListed = listedOf(project.siteUrl);
      const improved = await improveProject(context, project, { apply, isListed });
      detail.push(improved.improvement);
      changed ||= improved.changed;
      const { stopped } = improved.improvement;
      if (stopped !== undefined) faults.push(stopped);
    } catch (error) {
      faults.push(error);
      // It may have stored something before.
      changed = true;
    }
  }
  const submitted = detail.flatMap((improvement) => improvement.submitted);
  const flagged = detail.flatMap(({ plan }) => plan.flagged);
  const summary = apply
    ? `${submitted.length} prompts sent`
    : `${flagged.length} pages flagged, nothing sent`;
  return withFaults({ detail, summary, changed }, faults);
}

async function improveProject(
  context: StepContext,
  project: ProjectSettings,
  { apply, isListed }: { apply: boolean; isListed: IsListed | undefined },
): Promise<{ improvement: ProjectImprovement; changed: boolean }> {
  const { settings, warehouse, workspaceDir, now } = context;
  const plan = await planImprovement(warehouse, project.id, settings.improve, { now: now(), isListed });
  const changed = await recordChoices(warehouse, project.id, plan, now());
  if (!apply) return { improvement: { project, plan, submitted: [] }, changed };
  const { maxPromptLength } = settings.improve;
  for (const page of plan.flagged) {
    const at = now();
    const reference = referenceOf(project.id, page.path, at);
    const about = { ...page, project: project.id, reference };
    const prompt = composePrompt(about, { workspaceDir, maxPromptLength });
    await planJob(warehouse, { project: project.id, page, prompt, now: at });
  }
  const { submitted, stopped } = await submitWaiting(context, project, 'all');
  const created = plan.flagged.length + submitted.length > 0;
  return { improvement: { project, plan, submitted, stopped }, changed: changed || created };
}
