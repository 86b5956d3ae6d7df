import { type Job, planJob, referenceOf } from '../agents/ledger.js';
import { type ImprovePlan, planImprovement, recordChoices } from '../agents/plan.js';
import { composePrompt, REFERENCE_TO_COME } from '../agents/prompt.js';
import { wordsOf } from '../agents/reasons.js';
import type { FlaggedPage } from '../agents/select.js';
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
  const stops = detail.flatMap(({ stopped }) => stopped ?? []);
  return withOutage({ detail, summary }, [...errors, ...stops]);
}

async function improveProject(
  context: StepContext,
  project: ProjectSettings,
  isListed: IsListed | undefined,
  apply: boolean,
): Promise<ProjectImprovement> {
  const { settings, warehouse, now } = context;
  const plan = await planImprovement(warehouse, project.id, settings.improve, { now: now(), isListed });
  await recordChoices(warehouse, project.id, plan, now());
  if (!apply) return { project, plan, submitted: [] };
  for (const page of plan.flagged) await planPage(context, project, page);
  const { submitted, stopped } = await submitWaiting(context, project, 'all');
  return { project, plan, submitted, stopped };
}

/** Plans the job of a page, with the template's instruction or another; nothing is sent. Returns its number. */
export function planPage(
  { settings, warehouse, workspaceDir, now }: StepContext,
  { id: project }: ProjectSettings,
  { path, why, evidence }: FlaggedPage,
  instruction?: string,
): Promise<number> {
  const at = now();
  const page = { path, reason: wordsOf(why), evidence };
  const reference = referenceOf(project, path, at);
  const rules = { workspaceDir, maxPromptLength: settings.improve.maxPromptLength };
  const prompt = composePrompt(
    { ...page, project, reference },
    rules,
    instruction?.replaceAll(REFERENCE_TO_COME, reference),
  );
  return planJob(warehouse, { project, page, prompt, now: at });
}
