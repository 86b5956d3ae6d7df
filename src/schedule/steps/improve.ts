import type { Job } from '../../agents/ledger.js';
import { planJob } from '../../agents/ledger.js';
import { type ImprovePlan, planImprovement } from '../../agents/plan.js';
import { composePrompt } from '../../agents/prompt.js';
import { settleInterrupted, submitPlanned } from '../../agents/submit.js';
import type { ProjectSettings } from '../../config/schema.js';
import type { StepContext, StepResult } from '../context.js';

/** What improving a project came to. In `plan` mode nothing is submitted. */
export interface ProjectImprovement {
  readonly project: ProjectSettings;
  readonly plan: ImprovePlan;
  readonly submitted: readonly Job[];
  /** Jobs that a killed process left half sent. */
  readonly interrupted: readonly Job[];
}

/** Chooses the pages that deserve an agent's work and, when `apply` is set, creates their jobs. */
export async function improveStep(
  context: StepContext,
  apply: boolean,
): Promise<StepResult<ProjectImprovement[]>> {
  const detail: ProjectImprovement[] = [];
  const faults: unknown[] = [];
  for (const project of context.projects) {
    if (context.signal.aborted) break;
    const { improvement, stopped } = await improveProject(context, project, apply);
    detail.push(improvement);
    if (stopped !== undefined) faults.push(stopped);
  }
  const submitted = detail.flatMap((improvement) => improvement.submitted);
  const interrupted = detail.flatMap((improvement) => improvement.interrupted);
  const flagged = detail.flatMap(({ plan }) => plan.flagged);
  const summary = apply ? `${submitted.length} jobs sent` : `${flagged.length} pages flagged, nothing sent`;
  const changed = submitted.length + interrupted.length > 0 || (apply && flagged.length > 0);
  return faults.length === 0 ? { detail, summary, changed } : { detail, summary, changed, fault: faults[0] };
}

async function improveProject(
  { settings, warehouse, clientOf, now, signal, observer }: StepContext,
  project: ProjectSettings,
  apply: boolean,
): Promise<{ improvement: ProjectImprovement; stopped?: unknown }> {
  const interrupted = await settleInterrupted(warehouse, project.id, now());
  const plan = await planImprovement(warehouse, project.id, settings.improve, now());
  if (!apply) return { improvement: { project, plan, interrupted, submitted: [] } };
  for (const page of plan.flagged) {
    const prompt = composePrompt(page, settings.improve.maxPromptLength);
    await planJob(warehouse, { project: project.id, page, prompt, now: now() });
  }
  const { submitted, stopped } = await submitPlanned({
    ...{ warehouse, now, signal, client: clientOf(project), project: project.id },
    pollDelayMs: settings.poll.minDelay,
    onJob: (job) => observer.onJob?.(job),
  });
  return { improvement: { project, plan, interrupted, submitted }, stopped };
}
