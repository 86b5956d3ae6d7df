import type { ProjectSettings } from '../config/schema.js';
import { type DayResult, faultsOfLoad } from '../export/load.js';
import { type Audit, auditHistory } from '../export/verify.js';
import { byBothClocks, type StepContext, type StepResult } from './context.js';
import { withFaults } from './runner.js';

/** What the audit of a project found. */
export interface ProjectAudit {
  readonly project: ProjectSettings;
  readonly audit: Audit;
}

/**
 * Compares the settled history of every project with the platform. A day that differs and could not be loaded again is
 * as much a fault as a repair that was stopped.
 */
export async function auditStep(given: StepContext, repair: boolean): Promise<StepResult<ProjectAudit[]>> {
  const context = await byBothClocks(given);
  const detail: ProjectAudit[] = [];
  const faults: unknown[] = [];
  for (const project of context.projects) {
    if (context.signal.aborted) break;
    try {
      const audit = await auditProject(context, project, repair);
      detail.push({ project, audit });
      if (audit.repaired !== undefined) faults.push(...faultsOfLoad(audit.repaired));
    } catch (error) {
      faults.push(error);
    }
  }
  const differing = detail.reduce((sum, { audit }) => sum + audit.differing.length + audit.damaged.length, 0);
  return withFaults({ detail, summary: `${differing} days differ`, changed: true }, faults);
}

function auditProject(
  { settings, warehouse, clientOf, now, signal, observer }: StepContext,
  project: ProjectSettings,
  repair: boolean,
): Promise<Audit> {
  const { settleDays, concurrency } = settings.history;
  const onDay = (result: DayResult) => observer.onDay?.(project, result);
  const task = { warehouse, client: clientOf(project), project: project.id, settleDays, concurrency };
  return auditHistory({ ...task, now, signal, onDay }, repair);
}
