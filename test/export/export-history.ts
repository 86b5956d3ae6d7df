import { exportInStages, type ExportOutcome, type ExportTask } from '../../src/export/export.js';

/** All stages at once, and what was read is written: the export of a single project. */
export async function exportHistory(task: ExportTask): Promise<ExportOutcome> {
  const stages = exportInStages(task);
  for (;;) {
    const { done, value } = await stages.next();
    if (done !== true) continue;
    await task.history.writeWaiting();
    return value;
  }
}
