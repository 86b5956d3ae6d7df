import { type Job, readJobs } from '../agents/job.js';
import type { Runtime } from '../app/workspace.js';
import type { Day } from '../day.js';
import { ConfigurationError, type ExitCode, messageOf } from '../errors.js';
import { jobLine } from '../print/jobs.js';
import { findJob, type JobToChange, jobToChange, sendMessage } from '../steps/job-changes.js';
import { type JobFinding, settleJob } from '../steps/settle-job.js';
import { aDay, aJob, flag, PLATFORM_ENVIRONMENT, value, workspaceCommand } from './command.js';
import { makeChange } from './steps.js';

const JOB = value('<id>', 'number of the job', aJob);

export const message = workspaceCommand('message', {
  description:
    'Send a follow-up message to a job, which reopens it. It is recorded before it is sent, and never sent twice automatically.',
  arguments: [JOB, value('<text>', 'what the agent should do now')],
  examples: `
  readership jobs message 3 "Mention the rate limits as well."`,
  environment: PLATFORM_ENVIRONMENT,
  run: (options, runtime, id, text) =>
    changeJob('jobs message', id, options, runtime, async (found) => {
      const { state, stopped } = await sendMessage(found, text);
      const settle = `readership jobs settle ${id}`;
      const { output } = runtime;
      if (state === 'unconfirmed')
        output.note(`If the message arrived: ${settle} --sent; if not: --not-sent`);
      if (state === 'planned') output.note(`The next run sends it. To prevent that: ${settle} --ended`);
      if (stopped !== undefined) throw stopped instanceof Error ? stopped : new Error(messageOf(stopped));
      output.note(`The message was sent to job ${id}.`);
    }),
});

export const settle = workspaceCommand('settle', {
  description:
    'Record what became of a job: its pull request was merged or closed, the agent is done, or the platform does or does not have it. Settling again changes it, and the history of the job shows each change. With pullRequests in readership.yaml, merges are looked up instead.',
  arguments: [JOB],
  options: {
    merged: value<Day | true>(
      '[day]',
      'its pull request was merged, or its work was committed, on this day, YYYY-MM-DD (default: today, UTC)',
      aDay,
    ),
    closed: flag('its pull request was closed without a merge: its page gets no other job automatically'),
    ended: flag('it is over, whatever the platform says; what was not sent yet is never sent'),
    sent: value<string | true>(
      '[remote-id]',
      'the platform has it under this id: poll it; without an id, its message arrived',
    ),
    notSent: flag('the platform does not have it, or its message did not arrive: plan it again'),
  },
  examples: `
  readership jobs settle 3 --merged 2026-11-12
  readership jobs settle 3 --closed
  readership jobs settle 3 --ended
  readership jobs settle 3 --sent job_81
  readership jobs settle 3 --not-sent`,
  environment: PLATFORM_ENVIRONMENT,
  run: ({ merged, closed, ended, sent, notSent, ...options }, runtime, id) => {
    const findings: JobFinding[] = [];
    if (merged !== undefined) findings.push({ as: 'merged', day: merged === true ? undefined : merged });
    if (closed === true) findings.push({ as: 'closed' });
    if (ended === true) findings.push({ as: 'ended' });
    if (sent !== undefined) findings.push({ as: 'sent', remoteId: sent === true ? undefined : sent });
    if (notSent === true) findings.push({ as: 'notSent' });
    const [finding, ...more] = findings;
    if (finding === undefined || more.length > 0)
      throw new ConfigurationError(
        `Give one of --merged [DAY], --closed, --ended, --sent REMOTE_ID and --not-sent. To find out which: readership jobs show ${id}`,
      );
    // Only to look up an id, the platform is asked.
    const secrets = finding.as === 'sent' ? undefined : ('optional' as const);
    return changeJob(
      'jobs settle',
      id,
      { ...options, ...(secrets && { secrets }) },
      runtime,
      async (found) => {
        runtime.output.note(await settleJob(found, finding));
      },
    );
  },
});

/** Finds the job, does the work, and shows the updated job. */
const changeJob = (
  command: string,
  id: number,
  options: Parameters<typeof makeChange>[1],
  runtime: Runtime,
  work: (found: JobToChange) => Promise<void>,
): Promise<ExitCode> =>
  makeChange(command, options, runtime, async (parts) => {
    const { store, session, workspace } = parts;
    // This job is shown only once, at the end.
    const onJob = (job: Job) => {
      if (job.id !== id) session.observer.onJob?.(job);
    };
    const quiet = { ...session, observer: { ...session.observer, onJob } };
    await work(await jobToChange({ ...parts, session: quiet }, id));
    const { job } = findJob(await readJobs(store, null), workspace, id);
    runtime.output.data(jobLine(job));
  });
