import type { JobEffect } from '../agents/job-effects.js';
import { promptLimit } from '../agents/submit.js';
import { SENT_LATER, withState } from '../app/state.js';
import { readWorkspace, type Workspace } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import type { Day } from '../day.js';
import { ConfigurationError, type ExitCode, LockedError } from '../errors.js';
import { exists } from '../files.js';
import { nextMinute } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { describeJob, jobLine, jobLines, unsettledPromptLines } from '../print/jobs.js';
import { readUnsettled } from '../service/status.js';
import { type Job, readChanges, readJobsOf } from '../state/jobs.js';
import { readMessagesOf } from '../state/messages.js';
import { addMessageTo, findJob } from '../steps/job-messages.js';
import { type JobFinding, settleJob } from '../steps/settle-job.js';
import {
  aDay,
  aDuration,
  aJob,
  flag,
  JSON_LOG,
  JSON_OUTPUT,
  PLATFORM_ENVIRONMENT,
  projectCommand,
  simpleCommand,
  value,
  workspaceCommand,
} from './command.js';

const JOB = value('<id>', 'number of the job', aJob);

const list = projectCommand('list', {
  isDefault: true,
  description: 'List the jobs.',
  options: JSON_OUTPUT,
  examples: `
  readership jobs list
  readership jobs list --json`,
  run: async (options, runtime) => {
    const workspace = await readWorkspace(options, runtime, 'optional');
    return withState(workspace, async (state): Promise<ExitCode> => {
      const { projects } = workspace;
      const { output, now } = runtime;
      const jobs = readJobsOf(state, projects);
      const messages = readMessagesOf(state, projects);
      if (options.json === true) output.json(jobs);
      else if (jobs.length === 0) output.data(`No jobs yet. Which pages would get one: readership improve`);
      else output.data((await jobLines(jobs, output.width)).join('\n'));
      for (const line of unsettledPromptLines(readUnsettled(state, projects, runtime.now())))
        output.note(line);
      for (const { id, name } of projects) {
        const planned = [...jobs, ...messages].filter((prompt) => prompt.state === 'planned');
        const waiting = planned.filter(({ project }) => project === id).length;
        const limit = waiting === 0 ? undefined : promptLimit(state, id, now());
        if (limit !== undefined)
          output.note(
            `${name}: ${counted(waiting, 'prompt')} planned: ${limit.why}; the next can be sent from ${nextMinute(limit.until)}`,
          );
      }
      return 0;
    });
  },
});

const show = workspaceCommand('show', {
  description: 'Show a job with its reason, evidence, messages, history and prompt.',
  arguments: [JOB],
  options: JSON_OUTPUT,
  examples: `
  readership jobs show 3`,
  run: async (options, runtime, id) => {
    const workspace = await readWorkspace(options, runtime, 'optional');
    return withState(workspace, async (state): Promise<ExitCode> => {
      const { job, messages } = findJob(state, workspace, id);
      const changes = readChanges(state, id);
      const effect = job.merged_on === null ? undefined : await readEffect(workspace, job);
      if (options.json === true) runtime.output.json({ ...job, messages, changes, effect });
      else runtime.output.words(describeJob({ job, messages, changes, effect }));
      return 0;
    });
  },
});

/** The views before and after the merge of a job, as of the last load. Only for them is DuckDB loaded. */
async function readEffect(workspace: Workspace, job: Job): Promise<JobEffect | undefined> {
  if (!(await exists(workspace.historyFile))) return undefined;
  const { withHistory } = await import('../app/state.js');
  const { readJobEffects } = await import('../agents/job-effects.js');
  const effects = await withHistory(workspace, ({ history }) => readJobEffects(history, job.project));
  return effects.find((effect) => effect.job === job.id);
}

const poll = projectCommand('poll', {
  description:
    'Send the waiting prompts (planned jobs only if improve.mode is apply), and poll the active jobs that are due.',
  options: {
    wait: value(
      '<time>',
      'keep polling while jobs are active, such as 30s or 10m, and then stop, even if some are still active (default: poll once)',
      { ...aDuration, conflicts: ['watch'] },
    ),
    watch: flag('keep polling, with a live view, until every job has ended'),
    json: flag(JSON_LOG),
  },
  examples: `
  readership jobs poll --wait 10m
  readership jobs poll --watch`,
  environment: PLATFORM_ENVIRONMENT,
  run: async (options, runtime) => (await import('./jobs-send.js')).pollAll(options, runtime),
});

const message = workspaceCommand('message', {
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

const settle = workspaceCommand('settle', {
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

export const jobs = simpleCommand('jobs', {
  summary: 'list, poll, message and settle the agent jobs',
  description: `Lists the agent jobs, polls them, sends them messages, and records their outcomes. A planned job can be called off: jobs settle ID --ended. One that was sent cannot be stopped; close its pull request instead. To pause new jobs, set improve.mode: plan.`,
  subcommands: [list, show, poll, message, settle],
  examples: `
  readership jobs list
  readership jobs show 3
  readership jobs poll --watch
  readership jobs message 3 "Mention the rate limits as well."
  readership jobs settle 3 --merged 2026-11-12
  readership jobs settle 4 --not-sent         after checking the platform`,
});
