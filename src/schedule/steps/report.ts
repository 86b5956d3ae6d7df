import type { ProjectSettings } from '../../config/schema.js';
import { writeIndex } from '../../reports/index-page.js';
import { renderReport } from '../../reports/render.js';
import { writePage } from '../../reports/write.js';
import type { StepContext, StepResult } from '../context.js';

/** A page that was rendered, and where it lies. */
export interface RenderedPage {
  readonly project: ProjectSettings;
  readonly subject: string;
  readonly file: string;
}

/** Renders the weekly report of every project for the last week that has ended. */
export async function reportStep(context: StepContext): Promise<StepResult<RenderedPage[]>> {
  const { projects, settings, warehouse, workspaceDir, reportsDir, now } = context;
  const calendar = settings.reports;
  const detail: RenderedPage[] = [];
  const faults: unknown[] = [];
  for (const project of projects) {
    try {
      const rendered = await renderReport({
        ...{ reader: warehouse, name: 'weekly', now: now(), calendar, workspaceDir },
        project: { id: project.id, name: project.name ?? project.id, siteUrl: project.siteUrl },
      });
      const file = await writePage(reportsDir, project.id, rendered);
      detail.push({ project, subject: rendered.subject, file });
    } catch (error) {
      faults.push(error);
    }
  }
  await writeIndex(reportsDir, { workspaceDir, calendar });
  const result = { detail, summary: `${detail.length} pages rendered`, changed: false };
  return faults.length === 0 ? result : { ...result, fault: faults[0] };
}
