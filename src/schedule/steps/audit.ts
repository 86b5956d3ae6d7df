import type { ProjectSettings } from '../../config/schema.js';
import type { LoadOutcome } from '../../history/load.js';
import { type Audit, auditHistory, type AuditOptions } from '../../history/audit.js';
import type { StepContext, StepResult } from '../context.js';

/** What the audit of a project found. */
export interface ProjectAudit {
  readonly project: ProjectSettings;
  readonly audit: Audit;
}

/** Holds the settled history of every project against the platform. */
export async function auditStep(
  context: StepContext,
  options: AuditOptions,
): Promise<StepResult<ProjectAudit[]>> {
  const { settings, warehouse, clientOf, now, signal, observer } = context;
  const { settleDays, concurrency } = settings.history;
  const detail: ProjectAudit[] = [];
  for (const project of context.projects) {
    const task = { warehouse, client: clientOf(project), project: project.id, settleDays, concurrency };
    const onDay = (result: Parameters<NonNullable<typeof observer.onDay>>[1]) =>
      observer.onDay?.(project, result);
    detail.push({ project, audit: await auditHistory({ ...task, now, signal, onDay }, options) });
  }
  const differing = detail.reduce((sum, { audit }) => sum + audit.differing.length + audit.damaged.length, 0);
  const faults = detail.flatMap(({ audit }) => faultsOf(audit.repaired));
  const result = { detail, summary: `${differing} days differ`, changed: true };
  return faults.length === 0 ? result : { ...result, fault: faults[0] };
}

/** A day that differs and could not be loaded again is as much a fault as a repair that was stopped. */
const faultsOf = (repaired: LoadOutcome | undefined): unknown[] => [
  ...(repaired?.stopped === undefined ? [] : [repaired.stopped]),
  ...(repaired?.results ?? []).flatMap((result) => (result.outcome === 'failed' ? [result.error] : [])),
];
