import { SENT_LATER, withState } from '../app/state.js';
import { readWorkspace } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import type { Day } from '../day.js';
import { ConfigurationError, type ExitCode, LockedError } from '../errors.js';
import { jobLine } from '../print/jobs.js';
import { addMessageTo, findJob } from '../steps/job-messages.js';
import { type JobFinding, settleJob } from '../steps/settle-job.js';
import { aDay, aJob, flag, PLATFORM_ENVIRONMENT, value, workspaceCommand } from './command.js';

const JOB = value('<id>', 'number of the job', aJob);

export const message = workspaceCommand('message', {
  description:
    'Send a follow-up message to a job, which reopens it. It is recorded before it is sent, and never sent twice automatically.',
  arguments: [JOB, value('<text>', 'what the agent should do now')],
  examples: `
  readership jobs message 3 "Mention the rate limits as well."`,
  environment: PLATFORM_ENVIRONMENT,
  run: async (options, runtime, id, text) => {
    const workspace = await readWorkspace(options, runtime);
    const { output, now } = runtime;
    const message = { job: id, text, now: now() };
    const number = await withState(workspace, (state) => addMessageTo(state, workspace, message));
    const { sendNow } = await import('./jobs-send.js');
    try {
      return await sendNow(workspace, runtime, { job: id, message: number });
    } catch (error) {
      if (!(error instanceof LockedError)) throw error;
      output.note(
        `The message is planned. ${SENT_LATER} To prevent that: readership jobs settle ${id} --ended`,
      );
      return 0;
    }
  },
});

export const settle = workspaceCommand('settle', {
  description:
    'Record the outcome of a job: its pull request was merged or closed, the agent is done, or the platform does or does not have it. Run it again to correct that; the history of the job shows each change. With pullRequests in readership.yaml, merges are looked up automatically.',
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
  run: async ({ merged, closed, ended, sent, notSent, ...options }, runtime, id) => {
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
    const workspace = await readWorkspace(options, runtime, finding.as === 'sent' ? undefined : 'optional');
    const { now, output } = runtime;
    return withState(workspace, async (state): Promise<ExitCode> => {
      const lookUp = async (project: ProjectSettings, remoteId: string) => {
        const { jobLookUp } = await import('../app/platform.js');
        return jobLookUp(workspace, runtime, state)(project, remoteId);
      };
      output.note(await settleJob({ state, workspace, now, lookUp }, id, finding));
      output.data(jobLine(findJob(state, workspace, id).job));
      return 0;
    });
  },
});
