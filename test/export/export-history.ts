import { exportInStages, type ExportOutcome, type ExportTask } from '../../src/export/export.js';

/** All stages at once: the export of a single project. */
export async function exportHistory(task: ExportTask): Promise<ExportOutcome> {
  const stages = exportInStages(task);
  for (;;) {
    const { done, value } = await stages.next();
    if (done === true) return value;
  }
}
