import { withParts } from '../app/open.js';
import type { Runtime, Workspace } from '../app/workspace.js';
import { type ExitCode, messageOf } from '../errors.js';
import { jobLine } from '../print/jobs.js';
import { ExportProgress } from '../print/progress.js';
import type { Job } from '../state/jobs.js';
import { findJob, sendMessage } from '../steps/job-changes.js';
import { doAndStore } from '../steps/history.js';
import { conclude } from './steps.js';

/** Sends a planned message. Throws a `LockedError` at once if another process works. */
export async function sendNow(
  workspace: Workspace,
  runtime: Runtime,
  { job: id, message }: { readonly job: number; readonly message: number },
): Promise<ExitCode> {
  const { output } = runtime;
  const progress = new ExportProgress(output).listener;
  // This job is shown only once, at the end.
  const onJob = (job: Job): void => {
    if (job.id !== id) progress.onJob?.(job);
  };
  output.goesOnUnread = true;
  const hold = { command: 'jobs message', listener: { ...progress, onJob }, maxWaitMs: 0 };
  return withParts(workspace, runtime, hold, async (parts) => {
    const { outages } = await doAndStore(parts, async () => {
      const { project } = findJob(parts.state, workspace, id);
      const { state, stopped } = await sendMessage(parts, project, message);
      const settle = `readership jobs settle ${id}`;
      if (state === 'unknown') output.note(`If the message arrived: ${settle} --sent; if not: --not-sent`);
      if (state === 'planned') output.note(`The next run sends it. To prevent that: ${settle} --ended`);
      if (stopped !== undefined) throw stopped instanceof Error ? stopped : new Error(messageOf(stopped));
      output.note(`The message was sent to job ${id}.`);
      output.data(jobLine(findJob(parts.state, workspace, id).job));
    });
    return conclude(outages, runtime);
  });
}
