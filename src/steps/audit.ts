import pLimit from 'p-limit';
import type { ProjectSettings } from '../config/schema.js';
import { type DayResult, errorsOfLoad } from '../export/load.js';
import { type Audit, auditHistory } from '../export/verify.js';
import { byBothClocks, eachProject, type StepContext, type StepResult, withOutage } from './step.js';

/** What the audit of a project found. */
export interface ProjectAudit {
  readonly project: ProjectSettings;
  readonly audit: Audit;
}

/** Compares the settled history of every project with the platform. A failed repair counts as an error. */
export async function auditStep(given: StepContext, repair: boolean): Promise<StepResult<ProjectAudit[]>> {
  const context = await byBothClocks(given);
  const { settings, warehouse, clientOf, now, signal, observer } = context;
  const { settleDays, concurrency } = settings.history;
  const inTurn = pLimit(concurrency);
  const { results: detail, errors } = await eachProject(context, async (project) => {
    const task = {
      warehouse,
      client: clientOf(project),
      project: project.id,
      settleDays,
      inTurn,
      now,
      signal,
      onDay: (result: DayResult) => observer.onDay?.(project, result),
    };
    return { project, audit: await auditHistory(task, repair) };
  });
  const repairs = detail.flatMap(({ audit }) => audit.repaired ?? []);
  const findings = detail.flatMap(({ project, audit: { differing, damaged } }) =>
    differing.length + damaged.length === 0 ? [] : `${project.id}: ${[...differing, ...damaged].join(', ')}`,
  );
  const summary = findings.length === 0 ? 'no days differ' : `days that differ: ${findings.join('; ')}`;
  return withOutage({ detail, summary }, [...errors, ...repairs.flatMap(errorsOfLoad)]);
}
