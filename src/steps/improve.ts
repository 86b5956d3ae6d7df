import { type Job, planJob, referenceOf } from '../agents/ledger.js';
import { type ImprovePlan, planImprovement, recordChoices } from '../agents/plan.js';
import { composePrompt, REFERENCE_TO_COME } from '../agents/prompt.js';
import { wordsOf } from '../agents/reasons.js';
import type { FlaggedPage } from '../agents/select.js';
import { type IsListed, readSitemap } from '../agents/sitemap.js';
import { submitJobs, submitMessages, type SubmitOutcome } from '../agents/submit.js';
import type { ProjectSettings } from '../config/schema.js';
import { eachProject, type StepContext, type StepResult, withOutage } from './step.js';

/** What improving a project did. In `plan` mode nothing is submitted. */
export interface ProjectImprovement extends SubmitOutcome {
  readonly project: ProjectSettings;
  readonly plan: ImprovePlan;
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
  return { project, plan, ...(await submitWaiting(context, project, 'all')) };
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

/** Sends waiting prompts: messages, preceded by the planned jobs if `what` is `all`. */
export async function submitWaiting(
  context: StepContext,
  project: ProjectSettings,
  what: 'all' | 'messages',
): Promise<SubmitOutcome> {
  const { settings, warehouse, journal, clientOf, now, signal, observer } = context;
  const task = {
    ...{ warehouse, journal, now, signal, client: clientOf(project), project: project.id },
    pollDelayMs: settings.poll.minDelay,
    onJob: (job: Job) => observer.onJob?.(job),
  };
  const jobs = what === 'all' ? await submitJobs(task) : { submitted: [] };
  if (jobs.stopped !== undefined) return jobs;
  const messages = await submitMessages(task);
  return { ...messages, submitted: [...jobs.submitted, ...messages.submitted] };
}
